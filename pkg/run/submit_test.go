package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// reluctant is a target that answers submissions, and questions for jobs, with
// errors before it does what it is asked for.
type reluctant struct {
	*scripted
	submissions []error // of each submission in turn; nil: it is taken
	finds       []error
	tried       []string
	asked       int
}

func (r *reluctant) Submit(ctx context.Context, a plan.Attempt) (deploy.Handle, error) {
	r.tried = append(r.tried, a.Job.ID)
	if len(r.submissions) > 0 {
		err := r.submissions[0]
		r.submissions = r.submissions[1:]
		if err != nil {
			return deploy.Handle{}, err
		}
	}
	return r.scripted.Submit(ctx, a)
}

func (r *reluctant) Find(ctx context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	r.asked++
	if len(r.finds) > 0 {
		err := r.finds[0]
		r.finds = r.finds[1:]
		if err != nil {
			return deploy.Handle{}, false, err
		}
	}
	return r.scripted.Find(ctx, a)
}

func unreachable() error { return fmt.Errorf("%w: controller is away", deploy.ErrUnavailable) }

func times(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// A submission that the target cannot take yet is tried again, later each time.
func TestSubmissionThatCannotBeTakenYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &reluctant{scripted: &scripted{write: passing(t)}, submissions: times(3, unreachable())}
		start := time.Now()
		rep, notices, _ := drive(t, &Driver{Run: newRun(t, target, 2, "a", "b"), Target: target})
		if diff := cmp.Diff(map[string]string{"a": "PASS", "b": "PASS"}, words(rep)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"a", "a", "a", "a", "b"}, target.tried); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(start); took < (2+4+8)*time.Second {
			t.Errorf("three failures took %s", took)
		}
		if len(notices) != 3 || !strings.Contains(notices[2], "(3 in a row)") || !strings.Contains(notices[2], "controller is away") {
			t.Errorf("notices %q", notices)
		}
	})
}

// While it is tried again the other jobs are looked after.
func TestJobsGoOnWhileNothingCanBeSubmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &reluctant{scripted: &scripted{write: passing(t), runs: 2}, submissions: append([]error{nil}, times(4, unreachable())...)}
		rep, _, _ := drive(t, &Driver{Run: newRun(t, target, 2, "a", "b"), Target: target})
		if diff := cmp.Diff(map[string]string{"a": "PASS", "b": "PASS"}, words(rep)); diff != "" {
			t.Error(diff)
		}
		if target.peak != 1 {
			t.Errorf("%d jobs at once, want that the first ended before the second was taken", target.peak)
		}
	})
}

// It is not tried for ever, and what the target said is the reason.
func TestSubmissionThatIsNeverTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &reluctant{scripted: &scripted{}, submissions: times(1000, unreachable())}
		start := time.Now()
		rep, _, _ := drive(t, &Driver{Run: newRun(t, target, 1, "a"), Target: target})
		got := rep.Jobs[0]
		if got.Verdict != verdict.Error || got.Reasons[0].Code != verdict.CodeLaunchRefused || !strings.Contains(got.Reasons[0].Message, "controller is away") {
			t.Errorf("verdict %s: %+v", got.Verdict, got.Reasons)
		}
		if len(target.tried) != submitTries || time.Since(start) > 5*time.Minute {
			t.Errorf("%d tries in %s", len(target.tried), time.Since(start))
		}
	})
}

// A signal while a submission waits for its next try: it is not made any more.
func TestSignalBeforeTheNextTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &reluctant{scripted: &scripted{}, submissions: times(1000, unreachable())}
		signals := make(chan os.Signal, 1)
		time.AfterFunc(3*time.Second, func() { signals <- syscall.SIGINT })
		rep, _, o := drive(t, &Driver{Run: newRun(t, target, 1, "a"), Target: target, Signals: signals})
		if o.Signal != syscall.SIGINT || len(target.tried) != 2 || rep.Jobs[0].Reasons[0].Code != verdict.CodeCancelled {
			t.Errorf("%+v after %d tries: %+v", o, len(target.tried), rep.Jobs[0].Reasons)
		}
	})
}

// When nobody ever answers, the run ends without a verdict on the job, and a later
// process settles it.
func TestAmbiguousSubmissionThatNobodySettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &reluctant{scripted: &scripted{}, submissions: []error{fmt.Errorf("%w: socket timed out", deploy.ErrAmbiguous)}, finds: times(1000, unreachable())}
		r := newRun(t, target, 1, "a")
		if _, err := (&Driver{Run: r, Target: target}).Drive(t.Context()); !errors.Is(err, deploy.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
		launch, err := rundir.ReadLaunch(r.AttemptDir("a", 1))
		if err != nil || launch.State != evidence.LaunchIntent || len(target.tried) != 1 {
			t.Errorf("%+v, %v after %d submissions", launch, err, len(target.tried))
		}
		later := &reluctant{scripted: &scripted{write: passing(t), found: map[string]bool{"a": true}}}
		if rep, _, _ := drive(t, &Driver{Run: r, Target: later}); rep.Verdict != verdict.Pass || len(later.tried) != 0 {
			t.Errorf("verdict %s after %d submissions", rep.Verdict, len(later.tried))
		}
	})
}

package run

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// away is a target that cannot be asked for jobs for a while.
type away struct {
	*scripted
	asks int // how often it does not answer
}

func (t *away) Find(ctx context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	if t.asks > 0 {
		t.asks--
		return deploy.Handle{}, false, fmt.Errorf("%w: no answer", deploy.ErrUnavailable)
	}
	return t.scripted.Find(ctx, a)
}

// A submission of a process that is gone is settled when the target is back, and
// the job runs once.
func TestSubmissionWithoutAnAnswerWhileTheTargetIsAway(t *testing.T) {
	for _, found := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			target := &away{scripted: &scripted{found: map[string]bool{"a": found}, write: passing(t)}, asks: 3}
			r := newRun(t, target, 1, "a", "b")
			intend(t, r, "a")
			rep, _, _ := drive(t, &Driver{Run: r, Target: target})
			if rep.Verdict != verdict.Pass {
				t.Errorf("found %t: verdict %s", found, rep.Verdict)
			}
			want := map[bool][]string{true: {"b"}, false: {"a", "b"}}[found]
			if !slices.Equal(target.submits, want) {
				t.Errorf("found %t: submitted %q, want %q", found, target.submits, want)
			}
		})
	}
}

// An ambiguous answer of a target that is then away is settled later too, and the
// job that is found is not submitted again; nor is one that is not.
func TestAmbiguousSubmissionWhileTheTargetIsAway(t *testing.T) {
	for _, found := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			target := &away{asks: 3, scripted: &scripted{
				submit: map[string]error{"a": fmt.Errorf("%w: timed out", deploy.ErrAmbiguous)},
				found:  map[string]bool{"a": found}, write: passing(t),
			}}
			r := newRun(t, target, 1, "a")
			rep, _, _ := drive(t, &Driver{Run: r, Target: target})
			if want := map[bool]verdict.Word{true: verdict.Pass, false: verdict.Error}[found]; rep.Verdict != want {
				t.Errorf("found %t: verdict %s, want %s", found, rep.Verdict, want)
			}
			if len(target.submits) > 0 {
				t.Errorf("found %t: submitted %q", found, target.submits)
			}
		})
	}
}

// What may have been submitted is not dropped when the run is cancelled: it is told
// to stop, or stays for a later attach where nobody can tell.
func TestCancelOfASubmissionWithoutAnAnswer(t *testing.T) {
	for _, asks := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			target := &away{scripted: &scripted{found: map[string]bool{"a": true}, runs: 1000}, asks: asks}
			r := newRun(t, target, 1, "a")
			intend(t, r, "a")
			if err := r.WriteCancel(evidence.Cancel{By: "a test", At: time.Now(), Jobs: []string{"a"}}); err != nil {
				t.Fatal(err)
			}
			_, err := (&Driver{Run: r, Target: target}).Drive(t.Context())
			launch, readErr := rundir.ReadLaunch(r.AttemptDir("a", 1))
			if readErr != nil {
				t.Fatal(readErr)
			}
			switch stopped := slices.Equal(target.cancels, []string{"a"}); {
			case asks == 1 && (!stopped || err != nil):
				t.Errorf("told to stop: %q, error %v", target.cancels, err)
			case asks > 1 && (err == nil || launch.State != evidence.LaunchIntent):
				t.Errorf("error %v, the job counts as %v, want an error and the intent", err, launch.State)
			}
		})
	}
}

// intend leaves the record of a process that was about to submit a job.
func intend(t *testing.T, r *rundir.Run, id string) {
	t.Helper()
	if err := r.WriteLaunch(r.AttemptDir(id, 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}); err != nil {
		t.Fatal(err)
	}
}

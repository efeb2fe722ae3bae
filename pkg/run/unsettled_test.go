package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// repeatable is a target that makes no second job of one that is submitted again.
type repeatable struct{ *reluctant }

func (repeatable) Resubmits() bool { return true }

// Such a target is asked again, but not for ever.
func TestAmbiguousSubmissionToBeRepeated(t *testing.T) {
	for failures, want := range map[int]verdict.Word{1: verdict.Pass, 2: verdict.Pass, 100: verdict.Error} {
		synctest.Test(t, func(t *testing.T) {
			target := repeatable{&reluctant{
				scripted: &scripted{write: passing(t)}, submissions: times(failures, fmt.Errorf("%w: connection reset", deploy.ErrAmbiguous)),
				finds: []error{unreachable()},
			}}
			r := newRun(t, target, 1, "a", "b")
			rep, _, _ := drive(t, &Driver{Run: r, Target: target})
			if rep.Jobs[0].Verdict != want {
				t.Errorf("after %d failures: %s, want %s", failures, rep.Jobs[0].Verdict, want)
			}
			if want == verdict.Pass && !slices.Equal(target.submits, []string{"a", "b"}) {
				t.Errorf("after %d failures: submitted %q", failures, target.submits)
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

// A job that ran although its submission had no answer, and that the target has
// forgotten, is judged by what its ranks left, and is not submitted again.
func TestForgottenJobWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		left func(*testing.T, plan.Attempt)
		asks int
		want verdict.Word
	}{
		"measured":  {left: func(t *testing.T, a plan.Attempt) { passing(t)(a) }, want: verdict.Pass},
		"away":      {left: func(t *testing.T, a plan.Attempt) { passing(t)(a) }, asks: 2, want: verdict.Pass},
		"no_end":    {left: func(t *testing.T, a plan.Attempt) { began(t, a) }, want: verdict.Error},
		"restarted": {left: func(t *testing.T, a plan.Attempt) { restart(t, a) }, want: verdict.Error},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := &away{scripted: &scripted{found: map[string]bool{"a": false}, write: passing(t)}, asks: c.asks}
				r := newRun(t, target, 1, "a")
				intend(t, r, "a")
				c.left(t, first(t, r))
				rep, _, _ := drive(t, &Driver{Run: r, Target: target})
				if rep.Verdict != c.want {
					t.Errorf("verdict %s, want %s: %+v", rep.Verdict, c.want, rep.Jobs[0].Reasons)
				}
				if len(target.submits) > 0 {
					t.Errorf("submitted %q", target.submits)
				}
			})
		})
	}
}

// began leaves the record of a rank that began.
func began(t *testing.T, a plan.Attempt) {
	t.Helper()
	writeFile(t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.BeginFile), evidence.Begin{Version: 1, Identity: a.Identity(0), Node: "n1"})
}

// restart leaves the directory of a second start.
func restart(t *testing.T, a plan.Attempt) {
	t.Helper()
	if _, err := rundir.MakeRestart(a, 1); err != nil {
		t.Fatal(err)
	}
}

// A job whose files cannot be read keeps the others from being cancelled no more than
// it keeps them from being judged.
func TestCancelBesideADamagedJob(t *testing.T) {
	target := &scripted{}
	r := newRun(t, target, 2, "a", "b")
	for _, id := range []string{"a", "b"} {
		h := target.handle(plan.Attempt{Job: plan.Job{ID: id}})
		if err := r.WriteLaunch(r.AttemptDir(id, 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.AttemptDir("a", 1), rundir.JobFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Cancel(t.Context(), r, target, evidence.Cancel{By: "test"}, true)
	if n != 1 || err == nil || !slices.Equal(target.cancels, []string{"b"}) {
		t.Errorf("%d jobs, told to stop %q, error %v", n, target.cancels, err)
	}
}

// Nor does it keep them from being driven to their ends.
func TestDriveBesideADamagedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{write: passing(t)}
		r := newRun(t, target, 2, "a", "b")
		if err := os.WriteFile(filepath.Join(r.AttemptDir("a", 1), rundir.JobFile), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := (&Driver{Run: r, Target: target}).Drive(t.Context())
		rep := Judge(r)
		if err == nil || rep.Jobs[0].Verdict != verdict.Error || rep.Jobs[1].Verdict != verdict.Pass {
			t.Errorf("verdicts %s and %s, error %v", rep.Jobs[0].Verdict, rep.Jobs[1].Verdict, err)
		}
	})
}

// late is a target that knows a job only after it was asked for it some times.
type late struct {
	*scripted
	asks int
}

func (t *late) Find(ctx context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	if t.asks--; t.asks >= 0 {
		return deploy.Handle{}, false, nil
	}
	return t.scripted.Find(ctx, a)
}

// A job that appears some time after an ambiguous answer is taken on; meanwhile the
// others are submitted.
func TestJobThatAppearsLate(t *testing.T) {
	for asks, want := range map[int]verdict.Word{1: verdict.Pass, settleLooks - 1: verdict.Pass, settleLooks: verdict.Error} {
		synctest.Test(t, func(t *testing.T) {
			target := &late{asks: asks, scripted: &scripted{
				submit: map[string]error{"a": fmt.Errorf("%w: timed out", deploy.ErrAmbiguous)},
				found:  map[string]bool{"a": true}, write: passing(t),
			}}
			r := newRun(t, target, 2, "a", "b")
			rep, _, _ := drive(t, &Driver{Run: r, Target: target})
			if rep.Jobs[0].Verdict != want || rep.Jobs[1].Verdict != verdict.Pass || !slices.Equal(target.submits, []string{"b"}) {
				t.Errorf("unknown for %d questions: verdicts %s and %s, submitted %q", asks, rep.Jobs[0].Verdict, rep.Jobs[1].Verdict, target.submits)
			}
		})
	}
}

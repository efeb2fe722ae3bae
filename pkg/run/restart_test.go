package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// staged is a target that says one thing after the other about each of its jobs;
// the last is repeated.
type staged struct {
	*scripted
	says    []evidence.Observation
	at      int
	observe func(context.Context) error // before each answer
	waits   int
}

func (s *staged) Observe(ctx context.Context, hs []deploy.Handle) ([]evidence.Observation, error) {
	s.observed++
	if s.observe != nil {
		if err := s.observe(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]evidence.Observation, len(hs))
	for i := range hs {
		out[i] = s.says[min(s.at, len(s.says)-1)]
		out[i].Source, out[i].At = "staged", time.Now()
	}
	s.at++
	return out, nil
}

func (s *staged) Wait(ctx context.Context, _ []deploy.Handle) error {
	s.waits++
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func said(phase evidence.Phase, word string, restarts int) evidence.Observation {
	o := evidence.Observation{Phase: phase, Word: word, Restarts: restarts}
	for range restarts {
		o.Earlier = append(o.Earlier, evidence.Earlier{Word: "NODE_FAIL", Nodes: "n1"})
	}
	return o
}

// first is the attempt of the only job that was submitted.
func first(t *testing.T, r *rundir.Run) plan.Attempt {
	t.Helper()
	a, err := rundir.ReadAttempt(r.AttemptDir(r.Ledger.Jobs[0].ID, 1))
	if err != nil {
		t.Fatal(err)
	}
	a.Dir = r.AttemptDir(a.Job.ID, 1)
	return a
}

// failing leaves the end of a rank that exited with 3.
func failing(t *testing.T, a plan.Attempt) {
	t.Helper()
	writeFile(t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.EndFile), evidence.End{
		Version: 1, Identity: a.Identity(0), Node: "n1", Outcome: evidence.OutcomeExited, ExitCode: 3,
	})
}

// The scheduler starts the job again: what the first start left is history, and
// the second decides.
func TestRestart(t *testing.T) {
	running, again := said(evidence.PhaseRunning, "RUNNING", 0), said(evidence.PhaseRunning, "RUNNING", 1)
	ended := said(evidence.PhaseEnded, "COMPLETED", 1)
	for name, c := range map[string]struct {
		before, after func(plan.Attempt)
		want          verdict.Word
	}{
		"second_passes":      {before: func(a plan.Attempt) { failing(t, a) }, after: passing(t), want: verdict.Pass},
		"second_fails":       {before: passing(t), after: func(a plan.Attempt) { failing(t, a) }, want: verdict.Fail},
		"second_is_lost":     {before: passing(t), after: func(plan.Attempt) {}, want: verdict.Error},
		"only_old_markers":   {before: passing(t), after: func(a plan.Attempt) { old := a; old.Number = 1; passing(t)(old) }, want: verdict.Fail},
		"first_left_nothing": {before: func(plan.Attempt) {}, after: passing(t), want: verdict.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := &staged{scripted: &scripted{}, says: []evidence.Observation{running, again, again, ended}}
				r := newRun(t, target, 1, "a")
				a := first(t, r)
				c.before(a)
				target.observe = func(context.Context) error {
					if target.at == 3 {
						c.after(a.Restart(1))
					}
					return nil
				}
				rep, _, _ := drive(t, &Driver{Run: r, Target: target})
				if rep.Jobs[0].Verdict != c.want || rep.Jobs[0].Attempts != 2 {
					t.Errorf("verdict %s of attempt %d: %+v", rep.Jobs[0].Verdict, rep.Jobs[0].Attempts, rep.Jobs[0].Reasons)
				}
				if len(target.submits) != 1 {
					t.Errorf("submitted %d times", len(target.submits))
				}
				for n, want := range map[int]string{1: "RUNNING", 2: "COMPLETED"} {
					o, err := rundir.LastObservation(r.AttemptDir("a", n))
					if err != nil || o == nil || o.Word != want || o.Restarts != n-1 {
						t.Errorf("attempt %d: %+v, %v", n, o, err)
					}
				}
			})
		})
	}
}

// Another process goes on with a job that was started again, whether the first one
// saw that or not.
func TestAttachAfterARestart(t *testing.T) {
	for name, seen := range map[string]bool{"seen": true, "not_seen": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal, 2)
				target := &staged{scripted: &scripted{}, says: []evidence.Observation{said(evidence.PhaseRunning, "RUNNING", 0)}}
				if seen {
					target.says = append(target.says, said(evidence.PhaseRunning, "RUNNING", 1))
				}
				r := newRun(t, target, 1, "a")
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the end of the first process
				defer cancel()
				if o, err := (&Driver{Run: r, Target: target, Signals: signals}).Drive(ctx); !errors.Is(err, context.DeadlineExceeded) || o.Running != 1 {
					t.Fatalf("%+v, %v", o, err)
				}
				a := first(t, r)
				if !seen { // the node makes it
					if _, err := rundir.MakeRestart(a, 1); err != nil {
						t.Fatal(err)
					}
				}
				failing(t, a)
				passing(t)(a.Restart(1))
				next := &staged{scripted: &scripted{}, says: []evidence.Observation{said(evidence.PhaseRunning, "RUNNING", 1), said(evidence.PhaseEnded, "COMPLETED", 1)}}
				rep, _, _ := drive(t, &Driver{Run: r, Target: next})
				if rep.Verdict != verdict.Pass || rep.Jobs[0].Attempts != 2 || len(next.submits) != 0 {
					t.Errorf("verdict %s of attempt %d after %d submissions: %+v", rep.Verdict, rep.Jobs[0].Attempts, len(next.submits), rep.Jobs[0].Reasons)
				}
			})
		})
	}
}

// A signal does not wait for the answer to a question that takes long.
func TestSignalDuringALongQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		target := &staged{scripted: &scripted{}, says: []evidence.Observation{said(evidence.PhaseEnded, "CANCELLED", 0)}}
		r := newRun(t, target, 1, "a")
		start := time.Now()
		asked := 0
		target.observe = func(ctx context.Context) error {
			if asked++; asked > 1 {
				return nil
			}
			signals <- syscall.SIGTERM
			<-ctx.Done() // a command that hangs
			return ctx.Err()
		}
		target.seen = map[string]int{}
		rep, notices, o := drive(t, &Driver{Run: r, Target: target, Signals: signals})
		if o.Signal != syscall.SIGTERM || o.Detached || len(target.cancels) != 1 || time.Since(start) > time.Second {
			t.Errorf("%+v, cancelled %q after %s", o, target.cancels, time.Since(start))
		}
		if rep.Verdict != verdict.Error || rep.Jobs[0].Reasons[0].Code != verdict.CodeCancelled {
			t.Errorf("verdict %s: %+v", rep.Verdict, rep.Jobs[0].Reasons)
		}
		for _, n := range notices {
			if strings.Contains(n, "could not be asked") {
				t.Errorf("the signal counts as a failure to ask: %s", n)
			}
		}
	})
}

// The second signal leaves the job alone, in the middle of a question too.
func TestSecondSignalDuringALongQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		target := &staged{scripted: &scripted{}}
		r := newRun(t, target, 1, "a")
		target.seen = map[string]int{}
		target.observe = func(ctx context.Context) error {
			signals <- syscall.SIGINT
			<-ctx.Done()
			return ctx.Err()
		}
		_, _, o := drive(t, &Driver{Run: r, Target: target, Signals: signals})
		if !o.Detached || o.Running != 1 || len(target.cancels) != 1 {
			t.Errorf("%+v, cancelled %q", o, target.cancels)
		}
	})
}

func TestMaxPending(t *testing.T) {
	waiting := said(evidence.PhasePending, "PENDING", 0)
	waiting.Detail = "reason PartitionConfig"
	synctest.Test(t, func(t *testing.T) {
		target := &staged{scripted: &scripted{}, says: []evidence.Observation{waiting}}
		r := newRun(t, target, 1, "a")
		a := first(t, r)
		a.Job.MaxPendingSeconds = 60
		writeFile(t, filepath.Join(a.Dir, rundir.JobFile), a)
		target.seen = map[string]int{}
		target.observe = func(context.Context) error {
			if len(target.cancels) > 0 {
				target.says = []evidence.Observation{said(evidence.PhaseEnded, "CANCELLED", 0)}
			}
			return nil
		}
		start := time.Now()
		rep, _, _ := drive(t, &Driver{Run: r, Target: target})
		if took := time.Since(start); took < time.Minute || took > time.Minute+3*time.Second {
			t.Errorf("it waited for %s", took)
		}
		got := rep.Jobs[0]
		if got.Verdict != verdict.Error || got.Reasons[0].Code != verdict.CodeLaunchPending || !strings.Contains(got.Reasons[0].Message, "reason PartitionConfig") {
			t.Errorf("verdict %s: %+v", got.Verdict, got.Reasons)
		}
		if diff := cmp.Diff([]string{"a"}, target.cancels); diff != "" {
			t.Error(diff)
		}
	})
}

// A job waits for a minute at most for a node that the run names and that takes no jobs;
// for others as long as it takes.
func TestWaitsForANodeThatIsAway(t *testing.T) {
	waiting := said(evidence.PhasePending, "PENDING", 0)
	away := waiting
	away.Away, away.Detail = true, "reason ReqNodeNotAvail, UnavailableNodes:n2"
	for _, tt := range []struct {
		name    string
		nodes   []string
		says    []evidence.Observation
		givesUp bool
	}{
		{"named", []string{"n2"}, slices.Repeat([]evidence.Observation{away}, 2000), true},
		{"not named", nil, slices.Repeat([]evidence.Observation{away}, 2000), false},
		{"busy", []string{"n2"}, slices.Repeat([]evidence.Observation{waiting}, 2000), false},
		{"away now and then", []string{"n2"}, slices.Repeat([]evidence.Observation{away, waiting}, 1000), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			target := &staged{scripted: &scripted{write: passing(t)}, says: append(tt.says, said(evidence.PhaseEnded, "COMPLETED", 0))}
			r := newRun(t, target, 1, "a")
			a := first(t, r)
			passing(t)(a)
			a.Job.Nodes = tt.nodes
			writeFile(t, filepath.Join(a.Dir, rundir.JobFile), a)
			target.observe = func(context.Context) error {
				if len(target.cancels) > 0 {
					target.says = []evidence.Observation{said(evidence.PhaseEnded, "CANCELLED", 0)}
				}
				return nil
			}
			target.seen = map[string]int{}
			rep, _, _ := drive(t, &Driver{Run: r, Target: target})
			if got := len(target.cancels) > 0; got != tt.givesUp {
				t.Errorf("%s: cancelled %q, verdict %s", tt.name, target.cancels, rep.Verdict)
			}
		})
	}
}

// A job that waits, runs, and waits again has waited anew; and without a limit it
// may wait for ever.
func TestMaxPendingCountsOneWait(t *testing.T) {
	waiting, running := said(evidence.PhasePending, "PENDING", 0), said(evidence.PhaseRunning, "RUNNING", 0)
	for _, limit := range []int{0, 60} {
		synctest.Test(t, func(t *testing.T) {
			target := &staged{scripted: &scripted{write: passing(t)}}
			n := 50
			if limit == 0 {
				n = 5000
			}
			for range 3 {
				for range n {
					target.says = append(target.says, waiting)
				}
				target.says = append(target.says, running)
			}
			target.says = append(target.says, said(evidence.PhaseEnded, "COMPLETED", 0))
			r := newRun(t, target, 1, "a")
			a := first(t, r)
			passing(t)(a)
			a.Job.MaxPendingSeconds = limit
			writeFile(t, filepath.Join(a.Dir, rundir.JobFile), a)
			if rep, _, _ := drive(t, &Driver{Run: r, Target: target}); rep.Verdict != verdict.Pass || len(target.cancels) != 0 {
				t.Errorf("limit %d: verdict %s, cancelled %q", limit, rep.Verdict, target.cancels)
			}
		})
	}
}

// Records that may still appear are waited for, if that is wanted.
func TestRefreshSettles(t *testing.T) {
	ending, ended := said(evidence.PhaseEnding, "FAILED", 0), said(evidence.PhaseEnded, "FAILED", 0)
	for _, c := range []struct {
		settle          bool
		observed, waits int
		word            evidence.Phase
	}{{true, 3, 2, evidence.PhaseEnded}, {false, 1, 0, evidence.PhaseEnding}} {
		synctest.Test(t, func(t *testing.T) {
			target := &staged{scripted: &scripted{}, says: []evidence.Observation{ending, ending, ended}}
			r := newRun(t, target, 1, "a")
			h := deploy.Handle{Target: "scripted", ID: "a"}
			if err := r.WriteLaunch(r.AttemptDir("a", 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h}); err != nil {
				t.Fatal(err)
			}
			if err := Refresh(t.Context(), r, target, true, c.settle); err != nil {
				t.Fatal(err)
			}
			o, err := rundir.LastObservation(r.AttemptDir("a", 1))
			if err != nil || o == nil || o.Phase != c.word || target.observed != c.observed || target.waits != c.waits {
				t.Errorf("settle %t: %+v, %v after %d questions and %d waits", c.settle, o, err, target.observed, target.waits)
			}
			target.observe = func(context.Context) error { return deploy.ErrUnavailable }
			if err := Refresh(t.Context(), r, target, true, c.settle); !errors.Is(err, deploy.ErrUnavailable) {
				t.Errorf("nobody could be asked: %v", err)
			}
		})
	}
}

// What was seen by a process that only looks is about the newest start.
func TestRefreshAfterARestart(t *testing.T) {
	target := &staged{scripted: &scripted{}, says: []evidence.Observation{said(evidence.PhaseRunning, "RUNNING", 2)}}
	r := newRun(t, target, 1, "a")
	h := deploy.Handle{Target: "scripted", ID: "a"}
	if err := r.WriteLaunch(r.AttemptDir("a", 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Refresh(t.Context(), r, target, false, false); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := r.LastAttempt("a"); n != 3 || err != nil {
		t.Errorf("newest attempt %d, %v; want 3", n, err)
	}
	if o, err := rundir.LastObservation(r.AttemptDir("a", 3)); err != nil || o == nil || o.Restarts != 2 {
		t.Errorf("%+v, %v", o, err)
	}
}

// A process that is killed after it was told of the end, and before the verdict, has
// kept what it was told; the next one may be told less.
func TestEndThatWasSeenBeforeAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := said(evidence.PhaseGone, "", 0)
		target := &staged{scripted: &scripted{}, says: []evidence.Observation{gone}}
		r := newRun(t, target, 1, "a")
		a := first(t, r)
		h := target.handle(a)
		if err := r.WriteLaunch(a.Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h}); err != nil {
			t.Fatal(err)
		}
		timeout := said(evidence.PhaseEnded, "TIMEOUT", 0)
		timeout.Source, timeout.Bad = "staged", true
		if err := r.AppendObservation(a.Dir, timeout); err != nil {
			t.Fatal(err)
		}
		rep, _, _ := drive(t, &Driver{Run: r, Target: target})
		if j := rep.Jobs[0]; j.Verdict != verdict.Fail || j.Scheduler == nil || j.Scheduler.State != "TIMEOUT" {
			t.Errorf("verdict %s, scheduler %+v, reasons %+v", j.Verdict, j.Scheduler, j.Reasons)
		}
	})
}

package batch

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// slow is a scheduler whose accounting fails after a while.
type slow struct {
	*fake
	answers time.Duration
}

func (s slow) History(ctx context.Context, refs []Ref) ([]Answer, error) {
	time.Sleep(s.answers)
	_, _ = s.fake.History(ctx, refs)
	return nil, errors.New("sacct gave no answer")
}

// An accounting that hangs for longer than it may lag is asked once: its time counts.
func TestAccountingThatHangsIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{"a": isFailed()}}
		target := New(slow{f, historyLag + time.Second}, time.Now)
		handles := submitted(t, target, "a")
		leave(t, handles[0], 1, 0)
		leave(t, handles[0], 1, 1)
		seen, err := target.Observe(t.Context(), handles)
		if err != nil {
			t.Fatal(err)
		}
		if o := seen[0]; o.Phase != evidence.PhaseEnded || o.Source != "squeue" || len(f.histories) != 1 {
			t.Errorf("%+v after %d questions to the accounting", o, len(f.histories))
		}
	})
}

// A process that comes after the scheduler has forgotten the job judges it by its
// newest start, not by what an earlier one left.
func TestNewestStartOfAForgottenJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := New(&fake{histErr: ErrNoHistory}, time.Now)
		handles := submitted(t, target, "a")
		leave(t, handles[0], 1, 0)
		leave(t, handles[0], 1, 1)
		j, err := target.decode(handles[0])
		if err != nil {
			t.Fatal(err)
		}
		again, err := rundir.MakeRestart(plan.Attempt{Version: plan.AttemptVersion, Number: j.Attempt, Dir: j.Dir, Job: plan.Job{ID: "a", WorldSize: 2}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if o := observe(t, target, handles...)[0]; o.Phase.Over() {
			t.Errorf("the records of the first start in place of those of %s: %+v", again.Dir, o)
		}
		leave(t, handles[0], 2, 0)
		leave(t, handles[0], 2, 1)
		if o := observe(t, target, handles...)[0]; o.Phase != evidence.PhaseEnded || o.Source != "markers" {
			t.Errorf("with the records of the second: %+v", o)
		}
	})
}

// A job that left the queue in its second start did not end as the first one did,
// which is all that the accounting has.
func TestEndOfAnEarlierStartIsNotThatOfTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := isRunning()
		again.Restarts = 1
		f := &fake{queue: map[string]Answer{"a": again}}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		observe(t, target, handles...)
		f.queue = nil
		f.history = map[string]Answer{"a": {Known: true, Phase: evidence.PhaseEnded, Word: "NODE_FAIL", Bad: true, Again: true, Started: true, Nodes: "n[1-2]"}}
		o := observe(t, target, handles...)[0]
		if o.Phase != evidence.PhaseEnding || o.Word != "" || o.Restarts != 1 || len(o.Earlier) != 1 || o.Earlier[0].Word != "NODE_FAIL" {
			t.Errorf("%+v", o)
		}
		leave(t, handles[0], 2, 0)
		leave(t, handles[0], 2, 1)
		time.Sleep(historyLag)
		if o := observe(t, target, handles...)[0]; o.Source != "markers" || o.Restarts != 1 || len(o.Earlier) != 1 {
			t.Errorf("with the records of the second start: %+v", o)
		}
	})
}

// Nodes that write down a new start while the scheduler does not answer, or has
// forgotten the job, are heard: the records of the first start are not its end.
func TestStartThatTheSchedulerDoesNotTellOf(t *testing.T) {
	for name, forget := range map[string]func(*fake){
		"silent":    func(f *fake) { f.queueErr = errors.New("controller is away") },
		"forgotten": func(f *fake) { f.queue = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{queue: map[string]Answer{"a": isRunning()}, histErr: ErrNoHistory}
				target := New(f, time.Now)
				handles := submitted(t, target, "a")
				observe(t, target, handles...)
				leave(t, handles[0], 1, 0)
				leave(t, handles[0], 1, 1)
				forget(f)
				j, err := target.decode(handles[0])
				if err != nil {
					t.Fatal(err)
				}
				if _, err := rundir.MakeRestart(plan.Attempt{Version: plan.AttemptVersion, Number: j.Attempt, Dir: j.Dir, Job: plan.Job{ID: "a", WorldSize: 2}}, 1); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(time.Minute, func() {
					leave(t, handles[0], 2, 0)
					leave(t, handles[0], 2, 1)
				})
				if o := until(t, target, handles); o.Restarts != 1 {
					t.Errorf("%+v", o)
				}
			})
		})
	}
}

// A rank that was told to stop cannot say why: while the scheduler may, it is waited
// for, longer than for ranks that ended by themselves.
func TestStoppedRankAndASchedulerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queueErr: errors.New("controller is away"), histErr: errors.New("accounting is away")}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		leave(t, handles[0], 1, 0)
		leave(t, handles[0], 1, 1)
		j, err := target.decode(handles[0])
		if err != nil {
			t.Fatal(err)
		}
		end := evidence.End{Version: evidence.MarkerVersion, Outcome: evidence.OutcomeStopped, ExitCode: 143, Signal: "SIGTERM"}
		if err := durable.WriteJSON(filepath.Join(rundir.RankDir(j.Dir, 1), rundir.EndFile), end, 0o600); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.AfterFunc(5*time.Minute, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.queueErr, f.queue = nil, map[string]Answer{"a": {Known: true, Phase: evidence.PhaseEnded, Word: "CANCELLED", Bad: true, Started: true}}
		})
		if o := until(t, target, handles); o.Word != "CANCELLED" {
			t.Errorf("%+v after %s", o, time.Since(start))
		}
	})
}

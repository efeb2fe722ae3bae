package deploytest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// awaitAll waits until all jobs are over, with one question for all of them.
func (h Harness) awaitAll(t *testing.T, target deploy.Target, handles []deploy.Handle) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	defer cancel()
	rest := handles
	for len(rest) > 0 && ctx.Err() == nil {
		seen, err := target.Observe(ctx, rest)
		if err != nil || len(seen) != len(rest) {
			t.Errorf("observe gave %d answers for %d handles, and %v", len(seen), len(rest), err)
			return
		}
		var still []deploy.Handle
		for i, o := range seen {
			if !o.Phase.Over() {
				still = append(still, rest[i])
			}
		}
		if rest = still; len(rest) > 0 {
			wait(ctx, target, rest...)
		}
	}
	if len(rest) > 0 {
		t.Errorf("%d of %d jobs did not end within %s", len(rest), len(handles), h.Patience)
	}
}

// endedWell runs a job that measures something.
func (h Harness) endedWell(t *testing.T) (plan.Attempt, deploy.Handle) {
	t.Helper()
	target := h.New(t)
	a, handle := h.start(t, target, bash(`echo "performance: 5 triadGBs"`, 1))
	h.await(t, target, handle)
	return a, handle
}

// awaitForgotten waits for the last word on a job that the target has forgotten,
// which must not say how it ended.
func (h Harness) awaitForgotten(t *testing.T, handle deploy.Handle) evidence.Observation {
	t.Helper()
	if err := h.New(t).Cancel(t.Context(), handle); err != nil {
		t.Errorf("cancel of a job that is forgotten: %v", err)
	}
	seen := h.await(t, h.New(t), handle)
	if seen.Bad || seen.NotLaunched != "" {
		t.Errorf("of a job that is forgotten it is said how it ended: %+v", seen)
	}
	return seen
}

func purged(t *testing.T, h Harness) {
	a, handle := h.endedWell(t)
	handle = h.Purged(t, handle)
	wantVerdict(t, judge(t, a, handle, h.awaitForgotten(t, handle), false), verdict.Pass)
}

// purgedAndLost asks about a job that nothing but a begin is left of. A target
// that cannot tell how it ended says so, and then nobody is blamed; one whose jobs
// are their processes knows that the rank was lost.
func purgedAndLost(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bash(untilGo, 1))
	h.awaitUp(t, a, 0)
	h.KillRank(t, a, 0)
	h.await(t, target, handle)
	handle = h.Purged(t, handle)
	seen := h.awaitForgotten(t, handle)
	v := judge(t, a, handle, seen, false)
	if seen.Phase == evidence.PhaseGone {
		wantVerdict(t, v, verdict.Error, verdict.CodeSchedUnknown)
		return
	}
	wantVerdict(t, v, verdict.Fail, verdict.CodeRankLost)
}

// recycled asks about a job that ended well, and whose id is another's by now,
// which runs and has to go on.
func recycled(t *testing.T, h Harness) {
	a, handle := h.endedWell(t)
	handle, runs := h.Recycled(t, handle)
	wantVerdict(t, judge(t, a, handle, h.awaitForgotten(t, handle), false), verdict.Pass)
	if !runs() {
		t.Error("cancel ended something else, to which the id belongs now")
	}
}

// answersInOrder asks about two jobs, of which one has ended, and about one of
// another target.
func answersInOrder(t *testing.T, h Harness) {
	target := h.New(t)
	_, ended := h.endedWell(t)
	a, running := h.start(t, target, bash(untilGo, 1))
	h.awaitUp(t, a, 0)
	h.await(t, target, ended)
	for _, handles := range [][]deploy.Handle{{ended, running, ended}, {running, ended, running}} {
		seen, err := target.Observe(t.Context(), handles)
		if err != nil || len(seen) != len(handles) {
			t.Fatalf("observe gave %d answers for %d handles, and %v", len(seen), len(handles), err)
		}
		for i, o := range seen {
			if over := handles[i].ID == ended.ID; o.Phase.Over() != over {
				t.Errorf("answer %d of %d is %+v, want one of a job that has ended: %t", i+1, len(seen), o, over)
			}
		}
	}
	letGo(t, a, 0)
	h.await(t, target, running)
	if seen, err := target.Observe(t.Context(), nil); err != nil || len(seen) > 0 {
		t.Errorf("asked about nothing, observe gave %+v and %v", seen, err)
	}
	foreign := deploy.Handle{Target: "another", ID: running.ID, Data: running.Data}
	if seen, err := target.Observe(t.Context(), []deploy.Handle{foreign}); err == nil {
		t.Errorf("asked about a job of another target, observe gave %+v", seen)
	}
	if err := target.Cancel(t.Context(), foreign); err == nil {
		t.Error("a job of another target was cancelled")
	}
}

// muted asks a target that cannot ask: no answer is no state, and nothing has been
// asked for. Then it can again.
func muted(t *testing.T, h Harness, way Way) {
	target, job, mute := h.Mute(t, way, bash(untilGo+`echo "performance: 5 triadGBs"`, 1))
	a, handle := h.start(t, target, job)
	h.awaitUp(t, a, 0)
	learnNothing := func(when string) {
		t.Helper()
		seen, err := target.Observe(t.Context(), []deploy.Handle{handle})
		if !errors.Is(err, deploy.ErrUnavailable) {
			t.Errorf("%s, with a tool that %s, observe gave the error %v, want one of the kind unavailable", when, way, err)
		}
		if len(seen) > 0 {
			t.Errorf("%s, with a tool that %s, observe gave states: %+v", when, way, seen)
		}
	}
	mute(true)
	learnNothing("while the job runs")
	learnNothing("asked again")
	if err := target.Cancel(t.Context(), handle); err == nil {
		t.Errorf("with a tool that %s, cancel says that it has asked", way)
	}
	mute(false)
	if seen := observe(t, target, handle); seen.Phase.Over() || seen.Phase == evidence.PhaseUnknown {
		t.Errorf("a job that runs is said to be %+v as soon as the tool answers again", seen)
	}
	mute(true)
	letGo(t, a, 0)
	h.awaitFile(t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.EndFile))
	learnNothing("when the job has just ended")
	endWhileAsking(t, target, handle, way)
	mute(false)
	wantVerdict(t, judge(t, a, handle, h.await(t, target, handle), false), verdict.Pass)
}

// endWhileAsking ends the context of a question that has no answer.
func endWhileAsking(t *testing.T, target deploy.Target, handle deploy.Handle, way Way) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := target.Observe(ctx, []deploy.Handle{handle})
	if err == nil || way == Hangs && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a tool that %s, a question whose context ended gave the error %v", way, err)
	}
}

// contextEnd ends the context of a process that submitted a job and waits for it.
func contextEnd(t *testing.T, h Harness) {
	target := h.New(t)
	a := h.prepare(t, target, bash(untilGo+"exit 4", 1))
	ctx, cancel := context.WithCancel(t.Context())
	handle, err := target.Submit(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.abandon(t, handle) })
	waited := make(chan error, 1)
	if w, ok := target.(deploy.Waiter); ok {
		go func() {
			var err error
			for err == nil {
				err = w.Wait(ctx, []deploy.Handle{handle})
			}
			waited <- err
		}()
	} else {
		waited <- context.Canceled
	}
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with an ended context gave %v", err)
	}
	if late, err := target.Submit(ctx, h.prepare(t, target, bash("true", 1))); !errors.Is(err, context.Canceled) {
		t.Errorf("submitting with an ended context gave handle %+v and %v", late, err)
	}
	if end := observe(t, target, handle); end.Phase.Over() {
		t.Errorf("the end of the context ended the job: %+v", end)
	}
	h.awaitUp(t, a, 0)
	letGo(t, a, 0)
	h.await(t, target, handle)
	if m := mustEnd(t, a, 0); m.ExitCode != 4 {
		t.Errorf("exit code %d, want 4: the end of the context touched the job", m.ExitCode)
	}
}

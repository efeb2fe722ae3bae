package batch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
)

func TestAccountingIsAskedAboutWhoNeedsIt(t *testing.T) {
	f := &fake{queue: map[string]Answer{"runs": isRunning(), "clean": isCompleted(), "late": isCompleted(), "failed": isFailed()}}
	target := New(f, time.Now)
	handles := submitted(t, target, "runs", "clean", "late", "failed", "missing")
	for rank := range 2 {
		leave(t, handles[1], 1, rank)
	}
	seen := observe(t, target, handles...)
	if f.queues != 1 {
		t.Errorf("%d questions to the queue, want 1", f.queues)
	}
	if diff := cmp.Diff([][]string{{"late", "failed", "missing"}}, f.histories); diff != "" {
		t.Error(diff)
	}
	var phases []string
	for i, o := range seen {
		phases = append(phases, o.Phase.String())
		if o.JobID != handles[i].ID || o.At.IsZero() {
			t.Errorf("observation %d is of job %q at %s", i, o.JobID, o.At)
		}
	}
	if diff := cmp.Diff([]string{"running", "ended", "ending", "ending", "ending"}, phases); diff != "" {
		t.Error(diff)
	}
}

// Nobody could be asked: that is no observation.
func TestNobodyAnswers(t *testing.T) {
	down := errors.New("queue is down")
	f := &fake{queueErr: down, histErr: errors.New("accounting is down")}
	target := New(f, time.Now)
	handles := submitted(t, target, "a", "b")
	_, err := target.Observe(t.Context(), handles)
	if !errors.Is(err, down) || !strings.Contains(err.Error(), "accounting is down") {
		t.Errorf("error %v", err)
	}
	// One job's end is known to the accounting: that is learned, and of the other
	// nothing is said.
	f.histErr, f.history = nil, map[string]Answer{"a": {Known: true, Phase: evidence.PhaseEnded, Word: "TIMEOUT", Bad: true}}
	seen := observe(t, target, handles...)
	if seen[0].Word != "TIMEOUT" || seen[0].Phase != evidence.PhaseEnded {
		t.Errorf("the first: %+v", seen[0])
	}
	if seen[1].Phase != evidence.PhaseUnknown || seen[1].Word != "" || seen[1].Bad {
		t.Errorf("the second: %+v", seen[1])
	}
}

// An accounting that hangs holds nobody up whose context has ended.
func TestAccountingThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{hang: true}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		seen, err := target.Observe(ctx, handles)
		if !errors.Is(err, context.DeadlineExceeded) || seen != nil || time.Since(start) != time.Second {
			t.Errorf("%v, %v after %s", seen, err, time.Since(start))
		}
	})
}

// The accounting fails all the time: the queue is enough, after the time that the
// accounting may take.
func TestAccountingThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{"a": isFailed()}, histErr: errors.New("slurmdbd is away")}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		leave(t, handles[0], 1, 0)
		leave(t, handles[0], 1, 1)
		start := time.Now()
		o := until(t, target, handles)
		if o.Word != "FAILED" || !o.Bad || o.Source != "squeue" {
			t.Errorf("observation %+v", o)
		}
		if took := time.Since(start); took < historyLag || took > historyLag+settleMost {
			t.Errorf("it took %s", took)
		}
	})
}

// until waits and asks until the first job is over, as a driver does.
func until(t *testing.T, target *Target, handles []deploy.Handle) evidence.Observation {
	t.Helper()
	for end := time.Now().Add(24 * time.Hour); time.Now().Before(end); {
		seen, err := target.Observe(t.Context(), handles)
		switch {
		case err != nil:
			time.Sleep(time.Second) // a driver pauses
			continue
		case seen[0].Phase.Over():
			return seen[0]
		}
		if err := target.Wait(t.Context(), handles); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it is not over after a day")
	return evidence.Observation{}
}

// Nobody can be asked for long, and every rank has left its end.
func TestMarkersAreEnoughWhenNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queueErr: errors.New("controller is away"), histErr: errors.New("accounting is away")}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		leave(t, handles[0], 1, 0)
		start := time.Now()
		time.AfterFunc(time.Minute, func() { leave(t, handles[0], 1, 1) })
		o := until(t, target, handles)
		if o.Source != "markers" || o.Phase != evidence.PhaseEnded || o.Bad || o.Word != "" || !strings.Contains(o.Detail, "controller is away") {
			t.Errorf("observation %+v", o)
		}
		if took := time.Since(start); took < time.Minute+silentAfter || took > time.Minute+silentAfter+3*time.Second {
			t.Errorf("it took %s, want %s after the last record", took, silentAfter)
		}
	})
}

// A job that nobody has heard of ends as gone, never as a state.
func TestNobodyKnowsTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := New(&fake{}, time.Now)
		start := time.Now()
		o := until(t, target, submitted(t, target, "a"))
		if o.Phase != evidence.PhaseGone || o.Word != "" || o.Bad {
			t.Errorf("observation %+v", o)
		}
		if took := time.Since(start); took < goneAfter || took > goneAfter+settleMost {
			t.Errorf("it took %s", took)
		}
	})
}

// A queue that fails in between does not add up to a job that is gone.
func TestPatienceStartsAgainAfterAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		observe(t, target, handles...)
		time.Sleep(goneAfter - time.Second)
		f.queue = map[string]Answer{"a": isRunning()}
		observe(t, target, handles...)
		f.queue = nil
		time.Sleep(goneAfter)
		if o := observe(t, target, handles...)[0]; o.Phase != evidence.PhaseEnding {
			t.Errorf("observation %+v", o)
		}
	})
}

// After a restart only the records of the newest start count.
func TestRecordsOfAnEarlierStart(t *testing.T) {
	f := &fake{queue: map[string]Answer{"a": isCompleted()}}
	again := isCompleted()
	again.Restarts = 1
	f.queue["a"] = again
	target := New(f, time.Now)
	handles := submitted(t, target, "a")
	leave(t, handles[0], 1, 0)
	leave(t, handles[0], 1, 1)
	if o := observe(t, target, handles...)[0]; o.Phase != evidence.PhaseEnding || o.Restarts != 1 {
		t.Errorf("records of the first start counted for the second: %+v", o)
	}
	leave(t, handles[0], 2, 0)
	leave(t, handles[0], 2, 1)
	if o := observe(t, target, handles...)[0]; o.Phase != evidence.PhaseEnded {
		t.Errorf("records of the second start: %+v", o)
	}
}

func TestBatchScriptThatCouldNotStart(t *testing.T) {
	f := &fake{queue: map[string]Answer{"a": isFailed()}, histErr: ErrNoHistory}
	target := New(f, time.Now)
	a := plan.Attempt{Number: 1, Dir: t.TempDir(), Job: plan.Job{ID: "a", WorldSize: 1}}
	h, err := target.Submit(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(a.Dir, OutputFile)
	var j job
	if err := json.Unmarshal(h.Data, &j); err != nil {
		t.Fatal(err)
	}
	j.Output = out
	h.Data, _ = json.Marshal(j)
	if err := os.WriteFile(out, []byte("one\ntwo\nassay: cannot be executed\x1b[31m\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := observe(t, target, h)[0]
	if o.Phase != evidence.PhaseEnded || !strings.Contains(o.NotLaunched, "assay: cannot be executed") || strings.ContainsAny(o.NotLaunched, "\x1b\n") {
		t.Errorf("observation %+v", o)
	}
}

package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"assay/pkg/rundir"
)

// fake is a scheduler that says what a test wants, and counts what it is asked.
type fake struct {
	queue     map[string]Answer // by id
	history   map[string]Answer
	queueErr  error
	histErr   error
	hang      bool // History gives no answer until its context ends
	submitErr error

	submitted int
	queues    int
	queuedAt  []time.Time
	histories [][]string // the ids of each question
	cancelled []string
}

func (f *fake) Name() string                        { return "fake" }
func (f *fake) Sources() (string, string)           { return "squeue", "sacct" }
func (f *fake) Script(plan.Attempt) ([]byte, error) { return []byte("#!/bin/sh\n"), nil }

func (f *fake) Submit(_ context.Context, a plan.Attempt) (Ref, error) {
	f.submitted++
	return Ref{ID: a.Job.ID, Name: "n-" + a.Job.ID}, f.submitErr
}

func (f *fake) Find(_ context.Context, a plan.Attempt) (Ref, bool, error) {
	_, found := f.queue[a.Job.ID]
	return Ref{ID: a.Job.ID}, found, f.queueErr
}

func (f *fake) Queue(_ context.Context, refs []Ref) ([]Answer, error) {
	f.queues++
	f.queuedAt = append(f.queuedAt, time.Now())
	out := make([]Answer, len(refs))
	for i, r := range refs {
		out[i] = f.queue[r.ID]
	}
	return out, f.queueErr
}

func (f *fake) History(ctx context.Context, refs []Ref) ([]Answer, error) {
	var ids []string
	out := make([]Answer, len(refs))
	for i, r := range refs {
		ids = append(ids, r.ID)
		out[i] = f.history[r.ID]
	}
	f.histories = append(f.histories, ids)
	if f.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return out, f.histErr
}

func (f *fake) Cancel(_ context.Context, r Ref) error {
	f.cancelled = append(f.cancelled, r.ID)
	return nil
}

// What the queue and the accounting say in these tests.
func isRunning() Answer {
	return Answer{Known: true, Phase: evidence.PhaseRunning, Word: "RUNNING", Started: true}
}

func isCompleted() Answer {
	return Answer{Known: true, Phase: evidence.PhaseEnded, Word: "COMPLETED", Clean: true, Started: true}
}

func isFailed() Answer {
	return Answer{Known: true, Phase: evidence.PhaseEnded, Word: "FAILED", Bad: true, Script: true, Started: true}
}

// submitted submits jobs of two ranks.
func submitted(t *testing.T, target *Target, ids ...string) []deploy.Handle {
	t.Helper()
	dir := t.TempDir()
	handles := make([]deploy.Handle, len(ids))
	for i, id := range ids {
		a := plan.Attempt{Number: 1, Dir: filepath.Join(dir, id, "1"), Job: plan.Job{ID: id, WorldSize: 2, MarkerGraceSeconds: 10}}
		if err := os.MkdirAll(a.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		h, err := target.Submit(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		handles[i] = h
	}
	return handles
}

// leave leaves the end of a rank.
func leave(t *testing.T, h deploy.Handle, attempt, rank int) {
	t.Helper()
	var j job
	err := json.Unmarshal(h.Data, &j)
	dir := rundir.RankDir(filepath.Join(filepath.Dir(j.Dir), fmt.Sprint(attempt)), rank)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, rundir.EndFile), []byte("{}"), 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

func observe(t *testing.T, target *Target, handles ...deploy.Handle) []evidence.Observation {
	t.Helper()
	seen, err := target.Observe(t.Context(), handles)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func many(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(1000 + i)
	}
	return ids
}

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

func TestSubmit(t *testing.T) {
	f := &fake{}
	target := New(f, time.Now)
	a := plan.Attempt{Number: 1, Dir: t.TempDir(), Job: plan.Job{ID: "a", WorldSize: 1}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := target.Submit(ended, a); !errors.Is(err, context.Canceled) || f.submitted != 0 {
		t.Errorf("%v after %d submissions", err, f.submitted)
	}
	if err := os.WriteFile(filepath.Join(a.Dir, "ranks"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Submit(t.Context(), a); !errors.Is(err, deploy.ErrRefused) || f.submitted != 0 {
		t.Errorf("%v after %d submissions", err, f.submitted)
	}
	a.Dir = t.TempDir()
	if err := os.Chmod(a.Dir, 0o770|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	f.submitErr = fmt.Errorf("%w: no", deploy.ErrRefused)
	if _, err := target.Submit(t.Context(), a); !errors.Is(err, deploy.ErrRefused) {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(a.Dir, "ranks"))
	if err != nil || info.Mode().Perm() != 0o770 || info.Mode()&os.ModeSetgid == 0 {
		t.Errorf("the directory of the ranks is %v, %v", info.Mode(), err)
	}
}

// A handle is good in another process, and only for its target.
func TestHandle(t *testing.T) {
	f := &fake{queue: map[string]Answer{"a": isRunning()}}
	data, err := json.Marshal(submitted(t, New(f, time.Now), "a")[0])
	if err != nil {
		t.Fatal(err)
	}
	var h deploy.Handle
	if err := json.Unmarshal(data, &h); err != nil {
		t.Fatal(err)
	}
	other := New(f, time.Now)
	if o := observe(t, other, h)[0]; o.Word != "RUNNING" {
		t.Errorf("observation %+v", o)
	}
	if err := other.Cancel(t.Context(), h); err != nil || len(f.cancelled) != 1 {
		t.Errorf("%v, cancelled %q", err, f.cancelled)
	}
	for _, bad := range []deploy.Handle{{Target: "local", ID: "7", Data: h.Data}, {Target: "fake", ID: "7", Data: []byte(`[`)}, {Target: "fake", ID: "7"}} {
		if _, err := other.Observe(t.Context(), []deploy.Handle{bad}); err == nil || !strings.Contains(err.Error(), `"7"`) {
			t.Errorf("%+v: %v", bad, err)
		}
		if err := other.Cancel(t.Context(), bad); err == nil {
			t.Errorf("%+v could be cancelled", bad)
		}
	}
}

func TestFind(t *testing.T) {
	f := &fake{queue: map[string]Answer{"a": isRunning()}}
	target := New(f, time.Now)
	a := plan.Attempt{Number: 1, Dir: t.TempDir(), Job: plan.Job{ID: "a", WorldSize: 2}}
	h, found, err := target.Find(t.Context(), a)
	if err != nil || !found || h.ID != "a" {
		t.Errorf("%+v, %t, %v", h, found, err)
	}
	if o := observe(t, target, h)[0]; o.Word != "RUNNING" {
		t.Errorf("observation %+v", o)
	}
	a.Job.ID = "b"
	if _, found, err := target.Find(t.Context(), a); found || err != nil {
		t.Errorf("%t, %v", found, err)
	}
	f.queueErr = errors.New("away")
	if _, found, err := target.Find(t.Context(), a); found || err == nil {
		t.Errorf("%t, %v", found, err)
	}
}

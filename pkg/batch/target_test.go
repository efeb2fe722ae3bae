package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	mu        sync.Mutex // for a change of the answers while a question is asked
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
	f.mu.Lock()
	defer f.mu.Unlock()
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

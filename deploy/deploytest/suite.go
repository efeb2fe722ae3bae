// Package deploytest is the suite that every target passes against the real
// thing. A target's own test is a Harness and a call of Run.
package deploytest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// Harness is what the suite needs of a target.
type Harness struct {
	// New returns a target as a new process would make it: it knows nothing of jobs
	// that another one submitted.
	New func(t *testing.T) deploy.Target
	// Dir returns an empty directory that every rank sees under the same path.
	Dir func(t *testing.T) string
	// KillRank ends the wrapper of a rank with SIGKILL.
	KillRank func(t *testing.T, a plan.Attempt, rank int)
	// Patience is how long a job of no length may take to end.
	Patience time.Duration
}

// Run runs every case of the suite.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"render is pure", renderIsPure},
		{"handle survives JSON and a new process", handleSurvives},
		{"ranks keep their exit codes", exitCodes},
		{"death by signal", deathBySignal},
		{"killed wrapper leaves no end marker", killedWrapper},
		{"output is complete", outputIsComplete},
		{"arguments and environment arrive unchanged", hostileWords},
		{"rank environment", rankEnvironment},
		{"cancel while running, twice and after the end", cancelRunning},
		{"time limit", timeLimit},
		{"refused submission", refused},
		{"the end of the context leaves the job", contextEnd},
		{"twenty submissions at once", manyAtOnce},
		{"nothing is left behind", nothingLeft},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) { c.run(t, h) })
	}
}

// bash is a job whose ranks run a script.
func bash(script string, ranks int) plan.Job {
	return plan.Job{
		Key: "job", ID: "job", Model: "job", Scope: "job", NNodes: 1, NProcPerNode: ranks, RanksPerNode: ranks,
		WorldSize: ranks, Launcher: "none", Deployment: "test",
		Program: plan.Program{Command: []string{"bash", "-c", script}},
	}
}

// prepare gives a job an identity and writes its rendered files.
func (h Harness) prepare(t *testing.T, target deploy.Target, job plan.Job) plan.Attempt {
	t.Helper()
	dir := h.Dir(t)
	if job.ModelDir == "" {
		job.ModelDir = dir
	}
	a := plan.Attempt{
		Version: 1, RunID: "run", Nonce: "nonce-" + filepath.Base(dir) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36),
		ManifestDigest: "sha256:0", Number: 1, Dir: dir, KillGraceMS: 500, Job: job,
	}
	files, err := target.Render(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := durable.WriteFile(filepath.Join(dir, f.Name), f.Data, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// start submits a job.
func (h Harness) start(t *testing.T, target deploy.Target, job plan.Job) (plan.Attempt, deploy.Handle) {
	t.Helper()
	a := h.prepare(t, target, job)
	handle, err := target.Submit(t.Context(), a)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	t.Cleanup(func() { _ = target.Cancel(context.WithoutCancel(t.Context()), handle) })
	return a, handle
}

// run submits a job and waits for its end.
func (h Harness) run(t *testing.T, job plan.Job) plan.Attempt {
	t.Helper()
	target := h.New(t)
	a, handle := h.start(t, target, job)
	h.await(t, target, handle)
	return a
}

// await waits until the target says that the job has ended.
func (h Harness) await(t *testing.T, target deploy.Target, handle deploy.Handle) evidence.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	defer cancel()
	for {
		seen, err := target.Observe(ctx, []deploy.Handle{handle})
		if err != nil {
			t.Fatalf("observe: %v", err)
		}
		if len(seen) != 1 {
			t.Fatalf("observe gave %d answers for one handle", len(seen))
		}
		if seen[0].Phase.Over() {
			return seen[0]
		}
		wait(ctx, target, handle)
		if ctx.Err() != nil {
			t.Fatalf("the job did not end within %s; last seen: %+v", h.Patience, seen[0])
		}
	}
}

func wait(ctx context.Context, target deploy.Target, handle deploy.Handle) {
	if w, ok := target.(deploy.Waiter); ok {
		_ = w.Wait(ctx, []deploy.Handle{handle})
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

// awaitFile waits until a rank has made a file in its results directory.
func (h Harness) awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(h.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			return
		}
	}
	t.Fatalf("%s did not appear within %s", path, h.Patience)
}

// end reads the end marker of a rank; ok is false when there is none.
func end(t *testing.T, a plan.Attempt, rank int) (m evidence.End, ok bool) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), rundir.EndFile))
	if errors.Is(err, os.ErrNotExist) {
		return m, false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("end marker of rank %d: %v", rank, err)
	}
	return m, true
}

// mustEnd reads the end marker of a rank that has to have one.
func mustEnd(t *testing.T, a plan.Attempt, rank int) evidence.End {
	t.Helper()
	m, ok := end(t, a, rank)
	if !ok {
		log, _ := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), rundir.WrapperLog))
		t.Fatalf("rank %d has no end marker; its wrapper said: %s", rank, log)
	}
	return m
}

// output reads a file of a rank.
func output(t *testing.T, a plan.Attempt, rank int, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

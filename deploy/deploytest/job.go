package deploytest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// bash is a job whose ranks run a script on one node.
func bash(script string, ranks int) plan.Job { return bashOn(1, ranks, script) }

// bashOn is a job whose ranks run a script on several nodes.
func bashOn(nodes, ranksPerNode int, script string) plan.Job {
	world := nodes * ranksPerNode
	return plan.Job{
		Key: "job", ID: "job", Model: "job", Scope: "job", NNodes: nodes, NProcPerNode: ranksPerNode, RanksPerNode: ranksPerNode,
		WorldSize: world, Launcher: "none", Deployment: "test", MarkerGraceSeconds: 1,
		Program: plan.Program{Command: []string{"bash", "-c", script}},
		Expect:  verdict.Expectation{WorldSize: world},
	}
}

// untilGo begins a script that says that it is up and then waits to be told to go.
const untilGo = `echo up > "$ASSAY_RESULTS_DIR/up"; until [ -e "$ASSAY_RESULTS_DIR/go" ]; do sleep 0.02; done; `

// awaitUp waits until the script of a rank says that it is up.
func (h Harness) awaitUp(t *testing.T, a plan.Attempt, rank int) {
	t.Helper()
	h.awaitFile(t, resultFile(a, rank, "up"))
}

// letGo lets the script of a rank that is up go on.
func letGo(t *testing.T, a plan.Attempt, rank int) {
	t.Helper()
	if err := os.WriteFile(resultFile(a, rank, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// resultFile is a file that a rank has or makes in its results directory.
func resultFile(a plan.Attempt, rank int, name string) string {
	return filepath.Join(rundir.RankDir(a.Dir, rank), rundir.ResultsDir, name)
}

// prepare gives a job an identity and a place in a run directory of its own, and
// writes its rendered files.
func (h Harness) prepare(t *testing.T, target deploy.Target, job plan.Job) plan.Attempt {
	t.Helper()
	return h.prepareIn(t, target, job, h.Dir(t))
}

func (h Harness) prepareIn(t *testing.T, target deploy.Target, job plan.Job, run string) plan.Attempt {
	t.Helper()
	dir := rundir.AttemptDir(run, job.ID, 1)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if job.ModelDir == "" {
		job.ModelDir = dir
	}
	if h.Adapt != nil {
		h.Adapt(&job)
	}
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails
	a := plan.Attempt{
		Version: plan.AttemptVersion, RunID: "run", Nonce: hex.EncodeToString(nonce), ManifestDigest: "sha256:0", Number: 1, Dir: dir,
		KillGraceMS: 500, Job: job,
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
	return a, h.submit(t, target, a)
}

func (h Harness) submit(t *testing.T, target deploy.Target, a plan.Attempt) deploy.Handle {
	t.Helper()
	handle, err := target.Submit(t.Context(), a)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	t.Cleanup(func() { h.abandon(t, handle) })
	return handle
}

// abandon ends a job that a case left running because it failed.
func (h Harness) abandon(t *testing.T, handle deploy.Handle) {
	if !t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), h.Patience)
	defer cancel()
	target := h.New(t)
	if err := target.Cancel(ctx, handle); err != nil {
		t.Logf("the job that is left could not be cancelled: %v", err)
		return
	}
	for ctx.Err() == nil {
		if seen, err := target.Observe(ctx, []deploy.Handle{handle}); err == nil && seen[0].Phase.Over() {
			return
		}
		wait(ctx, target, handle)
	}
}

// run submits a job and waits for its end.
func (h Harness) run(t *testing.T, job plan.Job) (plan.Attempt, verdict.Verdict) {
	t.Helper()
	target := h.New(t)
	a, handle := h.start(t, target, job)
	return a, judge(t, a, handle, h.await(t, target, handle), false)
}

// observe asks about one job.
func observe(t *testing.T, target deploy.Target, handle deploy.Handle) evidence.Observation {
	t.Helper()
	seen, err := target.Observe(t.Context(), []deploy.Handle{handle})
	if err != nil {
		t.Fatalf("observe: %v", err)
	}
	if len(seen) != 1 {
		t.Fatalf("observe gave %d answers for one handle", len(seen))
	}
	return seen[0]
}

// await waits until the target says that the job is over.
func (h Harness) await(t *testing.T, target deploy.Target, handle deploy.Handle) evidence.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	defer cancel()
	for {
		seen := observe(t, target, handle)
		if seen.Phase.Over() {
			return seen
		}
		wait(ctx, target, handle)
		if ctx.Err() != nil {
			t.Fatalf("the job did not end within %s; last seen: %+v", h.Patience, seen)
		}
	}
}

func wait(ctx context.Context, target deploy.Target, handles ...deploy.Handle) {
	if w, ok := target.(deploy.Waiter); ok {
		_ = w.Wait(ctx, handles)
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(200 * time.Millisecond):
	}
}

// awaitFile waits until a rank has written a file.
func (h Harness) awaitFile(t *testing.T, path string) {
	t.Helper()
	h.eventually(t, func() string {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			return path + " is not there"
		}
		return ""
	})
}

// eventually waits until a condition is "", which is what is wrong.
func (h Harness) eventually(t *testing.T, wrong func() string) {
	t.Helper()
	for deadline := time.Now().Add(h.Patience); ; time.Sleep(10 * time.Millisecond) {
		what := wrong()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", h.Patience, what)
		}
	}
}

package local

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// prepared is an attempt of two ranks whose files are written.
func prepared(t *testing.T, target *Target, script string) plan.Attempt {
	t.Helper()
	dir := t.TempDir()
	a := plan.Attempt{
		Version: 1, RunID: "run", Nonce: "nonce", ManifestDigest: "sha256:0", Number: 1, Dir: dir, KillGraceMS: 500,
		Job: plan.Job{
			Key: "job", ID: "job", Model: "job", NNodes: 1, NProcPerNode: 2, RanksPerNode: 2, WorldSize: 2, Launcher: "none", ModelDir: dir,
			Program: plan.Program{Command: []string{"bash", "-c", script}},
		},
	}
	files, err := target.Render(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func target(t *testing.T) *Target {
	t.Helper()
	local, ok := newTarget(t).(*Target)
	if !ok {
		t.Fatal("another type")
	}
	return local
}

// What a submission that was cut short left is found by its job file, and told
// from a whole one.
func TestFind(t *testing.T) {
	local := target(t)
	a := prepared(t, local, "sleep 300")
	if _, found, err := local.Find(t.Context(), a); found || err != nil {
		t.Fatalf("before anything was started: found %t, %v", found, err)
	}
	first, err := local.start(a, 0, 20000)
	if err != nil {
		t.Fatal(err)
	}
	_, found, err := target(t).Find(t.Context(), a)
	if !found || !errors.Is(err, deploy.ErrIncomplete) {
		t.Errorf("one of two ranks: found %t, %v", found, err)
	}
	second, err := local.start(a, 1, 20000)
	if err != nil {
		t.Fatal(err)
	}
	h, found, err := target(t).Find(t.Context(), a)
	if !found || err != nil {
		t.Fatalf("both ranks: found %t, %v", found, err)
	}
	if err := target(t).Cancel(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for _, p := range []process{first, second} {
		for p.Alive() {
			_ = waitAny(t.Context(), []process{p})
		}
	}
}

// A submission that fails half-way leaves nothing running.
func TestHalfASubmissionIsUndone(t *testing.T) {
	local := target(t)
	a := prepared(t, local, "sleep 300")
	if err := os.MkdirAll(filepath.Join(a.Dir, "ranks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rundir.RankDir(a.Dir, 1), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Submit(t.Context(), a); !errors.Is(err, deploy.ErrRefused) {
		t.Fatalf("submit gave %v", err)
	}
	procs, err := wrappers(filepath.Join(a.Dir, rundir.JobFile))
	if err != nil || len(procs) != 0 {
		t.Errorf("still running: %v, %v", procs, err)
	}
}

// A wrapper that cannot keep its evidence says so by its exit code, and the
// target passes it on.
func TestEvidenceThatCannotBeKept(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("only root may mount")
		}
		t.Skip("only root may mount")
	}
	local := target(t)
	a := prepared(t, local, "true")
	full(t, rundir.RankDir(a.Dir, 1))
	h, err := local.Submit(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	var seen evidence.Observation
	for deadline := time.Now().Add(time.Minute); seen.Phase != evidence.PhaseEnded; {
		if time.Now().After(deadline) {
			t.Fatal("the job did not end")
		}
		_ = local.Wait(t.Context(), []deploy.Handle{h})
		all, err := local.Observe(t.Context(), []deploy.Handle{h})
		if err != nil {
			t.Fatal(err)
		}
		seen = all[0]
	}
	if seen.Note(1) == "" || seen.Note(0) != "" {
		data, _ := json.Marshal(seen)
		log, _ := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, 1), rundir.WrapperLog))
		t.Errorf("observation is %s; the wrapper said %s", data, log)
	}
}

// full mounts a file system without room.
func full(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 64<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the file system gave %v", err)
	}
}

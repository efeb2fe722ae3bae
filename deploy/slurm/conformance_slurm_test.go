//go:build slurm

package slurm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/deploy"
	"assay/deploy/deploytest"
	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/templates"
)

// TestSlurmConformance runs the suite of all targets against a real cluster. The
// cases spend their time waiting for it, so give `go test` more than its default:
// -parallel 16.
func TestSlurmConformance(t *testing.T) {
	h := harness{binary: filepath.Join(slurmtest.Open(t).SharedDir(), "assay")}
	build := exec.Command("go", "build", "-o", h.binary, "assay/cmd/assay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	deploytest.Run(t, deploytest.Harness{
		New:      func(t *testing.T) deploy.Target { return h.target(slurmtest.Open(t).Env()) },
		Dir:      func(t *testing.T) string { return slurmtest.Open(t).SharedDir() },
		Patience: slurmtest.Patience,
		Adapt: func(j *plan.Job) {
			if j.Slurm == nil {
				j.Slurm = &plan.Slurm{}
			}
			if j.Slurm.Time = "5"; j.Slurm.Partition == "" {
				j.Slurm.Partition = "main"
			}
		},
		Nodes:    true,
		KillRank: killRank,
		Left:     left,
		Waiting:  h.waiting,
		Refused:  h.refused,
		Lacking:  h.lacking,
		Purged:   purged,
		Recycled: recycled,
		Mute:     h.mute,
	})
}

// harness makes targets that wrap ranks with one binary.
type harness struct{ binary string }

func (h harness) target(env []string) *Target {
	return New(Options{Binary: h.binary, Env: env, Templates: templates.Files()})
}

// killRank kills the wrapper that a begin marker names: the "nodes" are this
// machine.
func killRank(t *testing.T, a plan.Attempt, rank int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), rundir.BeginFile))
	if err != nil {
		t.Fatal(err)
	}
	var b evidence.Begin
	if err := json.Unmarshal(data, &b); err != nil || b.PID <= 1 {
		t.Fatalf("the begin marker of rank %d names process %d: %v", rank, b.PID, err)
	}
	if err := syscall.Kill(b.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// left is what squeue lists of a job that has not ended, and of its steps.
func left(t *testing.T, h deploy.Handle) []string {
	t.Helper()
	c := slurmtest.Open(t)
	var found []string
	for _, list := range []string{"--jobs", "--steps"} {
		// squeue fails for a job that is not known any more.
		if out, err := c.Try("squeue", "--noheader", list+"="+h.ID); err == nil && strings.TrimSpace(out) != "" {
			found = append(found, "squeue "+list+" lists "+strings.TrimSpace(out))
		}
	}
	return found
}

// waiting submits jobs that are held.
func (h harness) waiting(t *testing.T, job plan.Job) (deploy.Target, plan.Job) {
	t.Helper()
	bin := t.TempDir()
	standIn(t, bin, "sbatch", `exec "$real" --hold "$@"`)
	return h.target(inFront(slurmtest.Open(t).Env(), bin)), job
}

// refused asks for a partition that does not exist.
func (h harness) refused(t *testing.T, job plan.Job) (deploy.Target, plan.Job, string) {
	t.Helper()
	job.Slurm = &plan.Slurm{Partition: "nowhere"}
	return h.target(slurmtest.Open(t).Env()), job, "invalid partition specified: nowhere"
}

// lacking is a machine without the commands of SLURM.
func (h harness) lacking(t *testing.T) (deploy.Target, string) {
	t.Helper()
	return h.target(append(slurmtest.Open(t).Env(), "PATH="+t.TempDir())), "sbatch"
}

// noID is an id that the cluster does not reach: the largest before it starts
// again with the first.
const noID = "67043327"

// purged is a job that neither the queue nor the accounting lists.
func purged(t *testing.T, h deploy.Handle) deploy.Handle {
	t.Helper()
	return withID(t, h, noID)
}

// recycled gives the id of a job to a job of somebody else's.
func recycled(t *testing.T, h deploy.Handle) (deploy.Handle, func() bool) {
	t.Helper()
	c := slurmtest.Open(t)
	id := c.Sbatch("#!/bin/bash\nexec sleep 300\n", "--job-name=other", "--output=/dev/null")
	t.Cleanup(func() { c.Run("scancel", id) })
	c.Await("the other job runs", func() bool { return c.JobState(id) == "RUNNING" })
	return withID(t, h, id), func() bool { return c.JobState(id) == "RUNNING" }
}

// withID is the handle of a job with another id.
func withID(t *testing.T, h deploy.Handle, id string) deploy.Handle {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal(h.Data, &data); err != nil {
		t.Fatal(err)
	}
	if data["id"] != h.ID {
		t.Fatalf("the handle of job %s has no id: %s", h.ID, h.Data)
	}
	data["id"] = id
	var err error
	if h.Data, err = json.Marshal(data); err != nil {
		t.Fatal(err)
	}
	h.ID = id
	return h
}

// mute puts a squeue and a sacct in front of the real ones, which go wrong while
// a file is there.
func (h harness) mute(t *testing.T, way deploytest.Way) (deploy.Target, func(bool)) {
	t.Helper()
	bin := t.TempDir()
	flag := filepath.Join(bin, "mute")
	wrong := "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"
	if way == deploytest.Hangs {
		wrong = "sleep 300; exit 0" // as a child, which has to go with its parent
	}
	for _, tool := range []string{"squeue", "sacct"} {
		standIn(t, bin, tool, fmt.Sprintf("if [ -e %q ]; then %s; fi; exec \"$real\" \"$@\"", flag, wrong))
	}
	t.Cleanup(func() { noneWith(t, bin) })
	target := h.target(inFront(slurmtest.Open(t).Env(), bin))
	target.s.tools.limit = 2 * time.Second
	return target, func(on bool) {
		var err error
		if on {
			err = os.WriteFile(flag, nil, 0o600)
		} else {
			err = os.Remove(flag)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// noneWith fails the test when a process still has a directory in its PATH: what
// hangs is ended with all that it started.
func noneWith(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && strings.Contains(string(env), "PATH="+dir) {
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline")) // empty when it has just ended
			t.Errorf("a command that hung left a process: %q", args)
		}
	}
}

// standIn writes a script that takes the place of a command; $real is the command.
func standIn(t *testing.T, dir, name, script string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/bash\nreal=%q\n%s\n", path, script)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// inFront is an environment whose PATH has a directory in front.
func inFront(env []string, dir string) []string {
	return append(env, "PATH="+dir+":"+lookupEnv(env, "PATH"))
}

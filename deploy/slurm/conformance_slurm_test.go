//go:build slurm

package slurm

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/deploy"
	"assay/deploy/deploytest"
	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/hostlist"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/templates"
)

// The cases of these suites spend their time waiting for the cluster, so give
// `go test` more than its default: -parallel 16.

// TestSlurmConformance runs the suite of all targets against a real cluster, with
// the commands of SLURM.
func TestSlurmConformance(t *testing.T) {
	t.Parallel()
	h := newHarness(t, slurmtest.Open(t), "closed")
	deploytest.Run(t, h.suite())
}

// TestSlurmConformanceWithoutAccounting runs it where only the queue and the
// records of ranks tell how a job ended.
func TestSlurmConformanceWithoutAccounting(t *testing.T) {
	t.Parallel()
	h := newHarness(t, slurmtest.Start(t, map[string]string{"ACCOUNTING": "none"}), "closed")
	deploytest.Run(t, h.suite())
}

// TestSlurmConformanceREST runs it through slurmrestd.
func TestSlurmConformanceREST(t *testing.T) {
	t.Parallel()
	h := newHarness(t, slurmtest.Open(t), "closedtorest")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	h.url, h.token = h.REST, filepath.Join(h.SharedDir(), "token")
	if err := os.WriteFile(h.token, []byte(h.Token(me.Username, time.Hour)), 0o600); err != nil {
		t.Fatal(err)
	}
	suite := h.suite()
	suite.Mute = h.muteServer
	suite.Lacking = nil
	suite.Cannot = map[string]string{"missing tool is named": "slurmrestd is asked, which is no tool of this machine"}
	deploytest.Run(t, suite)
}

// harness makes targets that use one cluster, in one way.
type harness struct {
	*slurmtest.Cluster
	binary     string // that wraps ranks
	closed     string // a partition that starts nothing
	url, token string // of slurmrestd; empty: the commands of SLURM are used
}

func newHarness(t *testing.T, c *slurmtest.Cluster, closed string) *harness {
	t.Helper()
	h := &harness{Cluster: c, binary: filepath.Join(c.SharedDir(), "assay"), closed: closed}
	build := exec.Command("go", "build", "-o", h.binary, "assay/cmd/assay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // it runs on every node
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	c.Scontrol("create", "PartitionName="+closed, "Nodes=ALL", "State=DOWN")
	t.Cleanup(func() { c.Scontrol("delete", "PartitionName="+closed) })
	return h
}

func (h *harness) suite() deploytest.Harness {
	return deploytest.Harness{
		New:      func(*testing.T) deploy.Target { return h.target(h.Env()) },
		Dir:      func(t *testing.T) string { return h.In(t).SharedDir() },
		Patience: slurmtest.Patience,
		Adapt:    h.adapt,
		Nodes:    true,
		Named:    []string{"node1", "node3", "node4"},
		KillRank: killRank,
		Left:     h.left,
		Waiting:  h.waiting,
		Refused:  h.refused,
		Lacking:  h.lacking,
		Purged:   purged,
		Recycled: h.recycled,
		Mute:     h.muteCommands,
	}
}

func (h *harness) target(env []string) *Target {
	return New(Options{Binary: h.binary, Env: env, Templates: templates.Files()})
}

// adapt says where a job runs and who is asked, unless a case has said so.
func (h *harness) adapt(j *plan.Job) {
	if j.Slurm == nil {
		j.Slurm = &plan.Slurm{Partition: "main"}
	}
	j.Slurm.Time = "5"
	if len(j.Nodes) > 0 {
		j.Slurm.Nodelist = hostlist.Compress(j.Nodes)
	}
	if h.url != "" && j.Slurm.API == "" {
		j.Slurm.API, j.Slurm.RestURL, j.Slurm.RestTokenFile = "rest", h.url, h.token
	}
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
func (h *harness) left(t *testing.T, handle deploy.Handle) []string {
	t.Helper()
	var found []string
	for _, list := range []string{"--jobs", "--steps"} {
		// squeue fails for a job that is not known any more.
		if out, err := h.In(t).Try("squeue", "--noheader", list+"="+handle.ID); err == nil && strings.TrimSpace(out) != "" {
			found = append(found, "squeue "+list+" lists "+strings.TrimSpace(out))
		}
	}
	return found
}

// waiting asks for a partition that starts nothing.
func (h *harness) waiting(_ *testing.T, job plan.Job) (deploy.Target, plan.Job) {
	job.Slurm = &plan.Slurm{Partition: h.closed}
	return h.target(h.Env()), job
}

// refused asks for a partition that does not exist.
func (h *harness) refused(_ *testing.T, job plan.Job) (deploy.Target, plan.Job, string) {
	job.Slurm = &plan.Slurm{Partition: "nowhere"}
	return h.target(h.Env()), job, "Invalid partition name specified"
}

// lacking is a machine without the commands of SLURM.
func (h *harness) lacking(t *testing.T) (deploy.Target, string) {
	t.Helper()
	return h.target(append(h.Env(), "PATH="+t.TempDir())), "sbatch"
}

// noID is an id that the cluster does not reach: the largest before it starts
// again with the first.
const noID = "67043327"

// purged is a job that neither the queue nor the accounting lists.
func purged(t *testing.T, handle deploy.Handle) deploy.Handle {
	t.Helper()
	return withID(t, handle, noID)
}

// recycled gives the id of a job to another job.
func (h *harness) recycled(t *testing.T, handle deploy.Handle) (deploy.Handle, func() bool) {
	t.Helper()
	c := h.In(t)
	id := c.Sbatch("#!/bin/bash\nexec sleep 300\n", "--job-name=other", "--output=/dev/null")
	t.Cleanup(func() { c.Run("scancel", id) })
	c.Await("the other job runs", func() bool { return c.JobState(id) == "RUNNING" })
	return withID(t, handle, id), func() bool { return c.JobState(id) == "RUNNING" }
}

// withID is the handle of a job with another id.
func withID(t *testing.T, handle deploy.Handle, id string) deploy.Handle {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal(handle.Data, &data); err != nil {
		t.Fatal(err)
	}
	if data["id"] != handle.ID {
		t.Fatalf("the handle of job %s has no id: %s", handle.ID, handle.Data)
	}
	data["id"] = id
	changed, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return deploy.Handle{Target: handle.Target, ID: id, Data: changed}
}

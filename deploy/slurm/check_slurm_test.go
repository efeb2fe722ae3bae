//go:build slurm

package slurm

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay/deploy"
	"assay/deploy/slurm/slurmtest"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/templates"
)

// checkHere returns a target of the cluster and a request about two nodes of it.
func checkHere(t *testing.T) (*Target, deploy.CheckRequest, *slurmtest.Cluster) {
	t.Helper()
	c := slurmtest.Open(t)
	dir := c.SharedDir()
	binary := filepath.Join(dir, "assay")
	build := exec.Command("go", "build", "-o", binary, "assay/cmd/assay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	j := plan.Job{
		Key: "job", ID: "job", NNodes: 2, RanksPerNode: 1, WorldSize: 2, ModelDir: dir,
		Program: plan.Program{Command: []string{"true"}}, Slurm: &plan.Slurm{Partition: "main", Time: "5"},
	}
	target := New(Options{Binary: binary, Env: c.Env(), Templates: templates.Files()})
	return target, deploy.CheckRequest{Jobs: []plan.Job{j}, Runs: filepath.Join(dir, "runs")}, c
}

// of returns the findings about a subject, one a line.
func of(found []deploy.Finding, subject string) string {
	var lines []string
	for _, f := range found {
		if f.Subject == subject || strings.HasPrefix(f.Subject, subject+" ") {
			lines = append(lines, f.State.String()+": "+f.Text())
		}
	}
	return strings.Join(lines, "\n")
}

func TestSlurmCheck(t *testing.T) {
	target, req, c := checkHere(t)
	for _, f := range target.Check(t.Context(), req) {
		if f.State != deploy.FindingOK {
			t.Errorf("%s: %s: %s", f.Subject, f.State, f.Text())
		}
	}
	for _, case1 := range []struct {
		name, subject, want string
		change              func(*plan.Job)
	}{
		{"partition", "partition nowhere", `problem: entry "job": there is no partition "nowhere"`, func(j *plan.Job) { j.Slurm.Partition = "nowhere" }},
		{"nodes", "partition main", `problem: entry "job" asks for 9 nodes, and partition main has 4`, func(j *plan.Job) { j.NNodes = 9 }},
		{"nodelist", "nodelist", `problem: entry "job": slurm.nodelist names node9`, func(j *plan.Job) { j.Slurm.Nodelist = "node[1,9]" }},
		{"mem", "partition main", `problem: entry "job" asks for 2 nodes with 9T of memory, and 0 of the 4 of partition main have that`, func(j *plan.Job) { j.Slurm.Mem = "9T" }},
		{"gpus", "partition main", `problem: entry "job" asks for 2 nodes with 8 GPUs, and 0 of the 4`, func(j *plan.Job) { j.Slurm.GPUsPerNode = 8 }},
		{"test-only", "sbatch --test-only", "warning: of the script of entry \"job\" it says: ", func(j *plan.Job) { j.Slurm.Mem = "9T" }},
		{"account", "account nope", `warning: entry "job": the accounting knows no account "nope"; the site does not enforce it`, func(j *plan.Job) { j.Slurm.Account = "nope" }},
	} {
		t.Run(case1.name, func(t *testing.T) {
			changed := req
			j := req.Jobs[0]
			own := *j.Slurm
			j.Slurm = &own
			case1.change(&j)
			changed.Jobs, changed.Thorough = []plan.Job{j}, true
			found := target.Check(t.Context(), changed)
			if got := of(found, case1.subject); !strings.HasPrefix(got, case1.want) {
				t.Errorf("%q, want %q", got, case1.want)
			}
		})
	}
	t.Run("drained", func(t *testing.T) {
		c.Scontrol("update", "NodeName=node[1-3]", "State=DRAIN", "Reason=test")
		t.Cleanup(func() { c.Scontrol("update", "NodeName=node[1-3]", "State=RESUME") })
		if got := of(target.Check(t.Context(), req), "partition main"); !strings.HasPrefix(got, `warning: entry "job" asks for 2 nodes, and 1 of partition main can take jobs now`) {
			t.Error(got)
		}
	})
	t.Run("partition that is down", func(t *testing.T) {
		c.Scontrol("update", "PartitionName=main", "State=DOWN")
		t.Cleanup(func() { c.Scontrol("update", "PartitionName=main", "State=UP") })
		if got := of(target.Check(t.Context(), req), "partition main"); !strings.HasPrefix(got, "problem: partition main is DOWN") {
			t.Error(got)
		}
	})
	t.Run("time", func(t *testing.T) {
		c.Scontrol("update", "PartitionName=main", "MaxTime=3")
		t.Cleanup(func() { c.Scontrol("update", "PartitionName=main", "MaxTime=INFINITE") })
		if got := of(target.Check(t.Context(), req), "partition main"); !strings.HasPrefix(got, `problem: entry "job" asks for a time of 5, and partition main allows 3m00s`) {
			t.Error(got)
		}
	})
}

// TestSlurmCheckLowersGrace: after Check the ranks' grace ends before SLURM kills.
func TestSlurmCheckLowersGrace(t *testing.T) {
	target, req, c := checkHere(t)
	target.Check(t.Context(), req)
	files, err := target.Render(plan.Attempt{Version: plan.AttemptVersion, Nonce: "0123456789abcdef", Number: 1, Dir: req.Runs, Job: req.Jobs[0]})
	if err != nil {
		t.Fatal(err)
	}
	wait, known := configSeconds(parseConfig(c.Scontrol("show", "config"))["KillWait"])
	for _, f := range files {
		if f.Name != rundir.JobFile {
			continue
		}
		var a plan.Attempt
		if err := json.Unmarshal(f.Data, &a); err != nil {
			t.Fatal(err)
		}
		if want := int(grace(wait).Milliseconds()); !known || want == 0 || a.KillGraceMS != want {
			t.Errorf("KillWait is %s, the grace %d ms, want %d", wait, a.KillGraceMS, want)
		}
	}
}

func TestSlurmCheckOnNode(t *testing.T) {
	target, req, c := checkHere(t)
	req.OnNode = true
	seen := filepath.Join(filepath.Dir(req.Runs), "seen.sh")
	if err := os.WriteFile(seen, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	req.Jobs[0].Program = plan.Program{Script: "seen.sh"}
	found := target.Check(t.Context(), req)
	if got := of(found, "node"); !strings.HasPrefix(got, "ok: executes "+filepath.Join(req.Runs, ".assay")) || strings.Contains(got, "\n") {
		t.Error(got)
	}
	left, err := os.ReadDir(req.Runs)
	if err != nil || len(left) != 1 || left[0].Name() != ".assay" {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Run("what nodes cannot execute", func(t *testing.T) {
		binary := filepath.Join(filepath.Dir(req.Runs), "other")
		if err := os.WriteFile(binary, []byte("not a program"), 0o755); err != nil {
			t.Fatal(err)
		}
		broken := req
		broken.RankBinary = binary
		if got := of(target.Check(t.Context(), broken), "node"); !strings.HasPrefix(got, "problem: "+binary+" cannot be executed on a node") {
			t.Error(got)
		}
	})
	t.Run("inside an allocation", func(t *testing.T) {
		cmd := c.Command("salloc", "--quiet", "--nodes=2", "bash", "-c", "echo $SLURM_JOB_ID; exec sleep 60")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		id := make([]byte, 32)
		n, err := out.Read(id)
		if err != nil {
			t.Fatal(err)
		}
		job := strings.TrimSpace(string(id[:n]))
		t.Cleanup(func() { c.Run("scancel", job) })
		nodes := c.Squeue("--jobs="+job, "--format=%N")
		inside := New(Options{Binary: target.s.opt.Binary, Env: append(c.Env(), "SLURM_JOB_ID="+job, "SLURM_JOB_NODELIST="+nodes), Templates: templates.Files()})
		found := inside.Check(t.Context(), req)
		if got := of(found, "node"); !strings.HasPrefix(got, "ok: executes ") {
			t.Error(got)
		}
		if got := of(found, "allocation "+job); !strings.HasPrefix(got, "ok: jobs run in place on its nodes ("+nodes+")") {
			t.Error(got)
		}
	})
}

// TestSlurmCheckWithoutAllocation: SLURM_JOB_ID is left over from an allocation
// that has ended.
func TestSlurmCheckWithoutAllocation(t *testing.T) {
	_, req, c := checkHere(t)
	id := c.Sbatch("#!/bin/bash\n", "--output=/dev/null")
	c.Await("the end of the job", func() bool { return c.JobState(id) == "COMPLETED" })
	target := New(Options{Env: append(c.Env(), "SLURM_JOB_ID="+id, "SLURM_JOB_NODELIST=node1"), Templates: templates.Files()})
	got := of(target.Check(context.Background(), req), "allocation "+id)
	if !strings.HasPrefix(got, "problem: SLURM_JOB_ID names allocation "+id+", which is ") {
		t.Error(got)
	}
}

//go:build slurm

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/verdict"
)

// losingNodes are the options of a cluster on which jobs lose their nodes, each in a
// partition of its own.
func losingNodes() map[string]string {
	return map[string]string{"NODES": "11", "CONF": strings.Join([]string{
		"PreemptType=preempt/partition_prio",
		"PreemptMode=REQUEUE",
		"PartitionName=lost Nodes=node[1-2]",
		"PartitionName=again Nodes=node[3-5]",
		"PartitionName=first Nodes=node[6-7]",
		"PartitionName=step Nodes=node[8-9]",
		"PartitionName=low Nodes=node[10-11] PriorityTier=1",
		"PartitionName=high Nodes=node[10-11] PriorityTier=9",
	}, "\n")}
}

// faultyNodes takes nodes away from jobs, all at the same time.
func faultyNodes(t *testing.T, c *slurmtest.Cluster) {
	together(t,
		scenario{"step daemon killed", func(t *testing.T) { stepdKilled(t, c) }},
		scenario{"lost", func(t *testing.T) { nodeLost(t, c) }},
		scenario{"lost and started again", func(t *testing.T) { nodeLostRequeued(t, c) }},
		scenario{"batch host lost", func(t *testing.T) { batchHostLost(t, c) }},
		scenario{"preempted", func(t *testing.T) { preempted(t, c) }},
	)
}

// block is the slurm block of a job in a partition.
func block(partition string, requeue bool) map[string]any {
	return map[string]any{"partition": partition, "requeue": requeue}
}

// A node dies under rank 1, and the job is not to be started again.
func nodeLost(t *testing.T, c *slurmtest.Cluster) {
	bare, measured := on(t, c), on(t, c)
	bare.manifest(block("lost", false), workload{name: "t", script: "sleep 120"})
	measured.manifest(block("lost", false), workload{name: "t", script: measure + "; sleep 120"})
	a, b := bare.startRun(), measured.startRun()
	bare.begun("t", 1, 0, 1)
	measured.begun("t", 1, 0, 1)
	c.KillNode("node2")

	r := a.wait().want(verdict.Fail).state("NODE_FAIL").attempts(1).
		reason("RANK_LOST", "rank 1 (node2)").
		reason("SCHED_STATE", "NODE_FAIL", "sacct").
		reason("RANK_SIGNAL", "rank 0 (node1)", "SIGTERM")
	blames(r, "rank 1 (node2)")
	bare.saw(1, evidence.PhaseEnded, "NODE_FAIL")

	b.wait().want(verdict.Pass).state("NODE_FAIL").
		warning("RANK_LOST", "rank 1 (node2)").
		warning("SCHED_STATE", "NODE_FAIL")
}

// once is the beginning of a script whose first start never ends.
func once(s *site) string {
	return "mkdir " + filepath.Join(s.dir, "first-$RANK") + " 2>/dev/null && sleep 120; "
}

// startNow waits until SLURM has a job for its second start, and shortens the pause
// of two minutes that it makes before that. Some of it has to be: a node refuses what
// starts in the second in which it ended the first start.
func startNow(s *site, c *slurmtest.Cluster, id string) {
	s.t.Helper()
	s.eventually("job "+id+" to be queued again", func() bool { return c.JobState(id) == "PENDING" })
	s.tool("scontrol", "update", "JobId="+id, "StartTime=now+3")
}

// A node dies under rank 1, and SLURM starts the job again on those that are left.
func nodeLostRequeued(t *testing.T, c *slurmtest.Cluster) {
	s := on(t, c)
	s.manifest(block("again", true), workload{name: "t", script: once(s) + measure})
	run := s.startRun()
	id := s.begun("t", 1, 0, 1)
	lost := s.nodeOf("t", 1, 1)
	c.KillNode(lost)
	startNow(s, c, id)
	r := run.wait().want(verdict.Pass).attempts(2).state("COMPLETED").
		warning("RESTARTED", "start 1", "NODE_FAIL", "node[3-4]")
	if r.Jobs[0].Scheduler.Restarts != 1 {
		t.Errorf("%d restarts, want 1", r.Jobs[0].Scheduler.Restarts)
	}
	for _, node := range r.Jobs[0].Nodes {
		if node == lost {
			t.Errorf("the second start ran on %s, which is down: %q", lost, r.Jobs[0].Nodes)
		}
	}
	s.saw(2, evidence.PhaseEnded, "COMPLETED")
	for _, o := range s.observations("t", 1) {
		if o.Phase.Over() {
			t.Errorf("the first start was taken for the end of the job: %+v", o)
		}
	}
}

// The node dies that runs the batch script, and with it rank 0.
func batchHostLost(t *testing.T, c *slurmtest.Cluster) {
	s := on(t, c)
	s.manifest(block("first", false), workload{name: "t", script: "sleep 120"})
	run := s.startRun()
	s.begun("t", 1, 0, 1)
	c.KillNode("node6")
	r := run.wait().want(verdict.Fail).state("NODE_FAIL").
		reason("RANK_LOST", "rank 0 (node6)").
		reason("SCHED_STATE", "NODE_FAIL", "sacct")
	blames(r, "rank 0 (node6)")
}

// Nobody tells SLURM when a slurmstepd dies: the job runs until its time limit ends
// it, and what the ranks left says how they ended.
func stepdKilled(t *testing.T, c *slurmtest.Cluster) {
	alone, whole := on(t, c), on(t, c)
	limit := map[string]any{"partition": "step", "requeue": false, "time": "1"}
	gate := alone.gate("killed")
	alone.manifest(limit, workload{name: "t", script: until(gate) + measure})
	whole.manifest(limit, workload{name: "t", script: "[ $RANK = 0 ] || sleep 120"})
	a, b := alone.startRun(), whole.startRun()
	first, second := alone.begun("t", 1, 0, 1), whole.begun("t", 1, 0, 1)
	kill(t, stepds(t, c, first, "node9"))
	alone.open(gate)
	stepd := stepds(t, c, second, "node9")
	kill(t, append(stepd, below(t, stepd)...))

	// The rank went on without its stepd and left its end.
	r := a.wait().want(verdict.Pass).state("TIMEOUT").
		warning("SCHED_STATE", "TIMEOUT")
	for n := range 2 {
		if got := r.rank(n); got.State != evidence.RankEnded || got.ExitCode == nil || *got.ExitCode != 0 {
			t.Errorf("rank %d: %+v", n, got)
		}
	}
	// The rank went with it.
	r = b.wait().want(verdict.Fail).state("TIMEOUT").
		reason("RANK_LOST", "rank 1 (node9)").
		reason("SCHED_STATE", "TIMEOUT")
	blames(r, "rank 1 (node9)")
}

// stepds lists the slurmstepds of the step of a job on a node.
func stepds(t *testing.T, c *slurmtest.Cluster, job, node string) []int {
	t.Helper()
	var found []int
	for _, pid := range pids(t) {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		title, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		if !bytes.HasPrefix(title, []byte("slurmstepd: ["+job+".0]")) {
			continue
		}
		fds, _ := filepath.Glob(filepath.Join(proc, "fd", "*"))
		for _, fd := range fds {
			if file, err := os.Readlink(fd); err == nil && file == filepath.Join(c.Dir, "log", node+".log") {
				found = append(found, pid)
				break
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no slurmstepd of job %s on %s", job, node)
	}
	return found
}

// below lists all descendants of processes.
func below(t *testing.T, roots []int) []int {
	t.Helper()
	parent := map[int]int{}
	for _, pid := range pids(t) {
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 {
			parent[pid], _ = strconv.Atoi(f[1])
		}
	}
	var found []int
	for pid := range parent {
		for p := parent[pid]; p > 1; p = parent[p] {
			if p == roots[0] {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

func pids(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// None of them sees the end of another: they are stopped before.
func kill(t *testing.T, pids []int) {
	t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, pid := range pids {
			if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
				t.Fatal(err)
			}
		}
	}
}

// A job of more weight takes the nodes away: a job that may be started again is,
// the other one has ended.
func preempted(t *testing.T, c *slurmtest.Cluster) {
	again, ended := on(t, c), on(t, c)
	again.manifest(block("low", true), workload{name: "t", script: once(again) + measure})
	ended.manifest(block("low", false), workload{name: "t", script: "sleep 120"})
	a, b := again.startRun(), ended.startRun()
	id := again.begun("t", 1, 0, 1)
	ended.begun("t", 1, 0, 1)
	c.Sbatch("#!/bin/bash\nsleep 2\n", "--partition=high", "--nodes=2", "--exclusive", "--output=/dev/null")

	b.wait().want(verdict.Fail).state("PREEMPTED").attempts(1).
		reason("SCHED_STATE", "PREEMPTED").
		reason("RANK_SIGNAL", "rank 0 (node10)", "SIGTERM").
		reason("RANK_SIGNAL", "rank 1 (node11)", "SIGTERM")

	startNow(again, c, id)
	a.wait().want(verdict.Pass).attempts(2).state("COMPLETED").
		warning("RESTARTED", "start 1", "PREEMPTED", "node[10-11]")
}

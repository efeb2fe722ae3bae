//go:build slurm

package main

import (
	"strings"
	"testing"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/verdict"
)

// TestSlurmSuiteNodesAway has a cluster of its own, without accounting, on which nodes
// are away that runs name.
func TestSlurmSuiteNodesAway(t *testing.T) {
	t.Parallel()
	bin, err := staticAssay()
	if err != nil {
		t.Fatal(err)
	}
	c := slurmtest.Start(t, map[string]string{
		"ACCOUNTING": "none", "NODES": "6",
		"CONF": "ReturnToService=1", // a node that an administrator has set down stays so
	})
	c.Scontrol("update", "NodeName=node2", "State=DRAIN", "Reason=fans")
	c.Scontrol("update", "NodeName=node3", "State=DOWN", "Reason=burnt")
	at := func(t *testing.T) *session {
		s := &session{T: t, Cluster: c.In(t), bin: bin, dir: c.In(t).SharedDir(), env: append(c.Env(), "NO_COLOR=1")}
		t.Cleanup(s.endJobs)
		return s
	}
	together(t,
		scenario{"unknown", func(t *testing.T) { at(t).refusedOn("node1,elsewhere", "elsewhere") }},
		scenario{"drained", func(t *testing.T) { at(t).refusedOn("node[1-2]", "node2 (drained)") }},
		scenario{"down", func(t *testing.T) { at(t).refusedOn("node1,node3", "node3 (down)") }},
		scenario{"lost", func(t *testing.T) { at(t).nodeLost() }},
	)
}

// refusedOn runs a suite on nodes of which one is away, which is refused before anything
// is submitted.
func (s *session) refusedOn(nodes, says string) {
	s.cards(script{name: "good", run: "echo valueCount=1"})
	s.write("s.yaml", "max_concurrent_nodes: all\ntests: [good]\n")
	r := s.assay(suiteArgs("s.yaml", nodes)...)
	if r.code != 4 || !strings.Contains(r.stderr, "--nodes names "+says) {
		s.Errorf("exit code %d, want 4, and %s named\n%s", r.code, says, r.stderr)
	}
	if n := s.submitted(); n != 0 || exists(s.path()) {
		s.Errorf("%d jobs were submitted, and there is a run: %v", n, exists(s.path()))
	}
}

// nodeLost lets a node die under a test. SLURM does not start the job again behind the
// suite's back, the retry does not wait for the node for ever, and the other node goes on.
func (s *session) nodeLost() {
	s.cards(script{name: "waits", run: s.arrives() + until(s.gate()) + "echo valueCount=1", more: object{"retries": 1}})
	s.write("s.yaml", "max_concurrent_nodes: all\ntests: [waits]\n")
	p := s.start(suiteArgs("s.yaml", "node[5-6]")...)
	s.awaitArrival("node5", "node6")
	s.KillNode("node6")
	s.write("gate", "")
	s.Await("node6 is down", func() bool { return strings.HasPrefix(s.NodeState("node6"), "down") })
	r := p.wait().words("waits.node5 PASS", "waits.node6 ERROR")
	if r.code != 6 || r.run.Verdict != verdict.Error {
		s.Errorf("exit code %d and %v, want 6 and ERROR", r.code, r.run.Verdict)
	}
	j := r.jobOf("waits.node6")
	if got := history(j); got != "1 ERROR, 2 retry ERROR" {
		s.Fatalf("the history is %q\n%s", got, r.stderr)
	}
	matchAll(s, "reasons of the first attempt", texts(j.History[0].Reasons), []string{
		`RANK_LOST rank 0 \(node6\): .*`, `SCHED_STATE squeue: squeue said NODE_FAIL.*`,
	})
	matchAll(s, "reasons of the second", texts(j.Reasons), []string{`LAUNCH_PENDING .*: .*node6.*`})
	if left := s.queued(); left != "" {
		s.Errorf("left in the queue: %s", left)
	}
}

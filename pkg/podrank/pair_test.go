package podrank_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/rundir"
)

// newPair gives the two pods of a pair, which share nothing but a network.
func newPair(t *testing.T, ready plan.Ready, server, client string) (s, c *fixture) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port + 1 // the pods meet at the one below
	pods := make([]*fixture, 2)
	for n := range pods {
		f := newFixture(t, fmt.Sprintf("if [ $RANK = 0 ]; then %s\nelse %s\nfi", server, client))
		f.attempt.Dir = "/of/the/client"
		f.attempt.Job.Scope, f.attempt.Job.Ready, f.attempt.KillGraceMS = "pair", &ready, 500
		f.call.MasterPort = port
		for i, kv := range f.call.Env {
			switch kv {
			case pod.IndexVariable + "=1":
				f.call.Env[i] = fmt.Sprintf("%s=%d", pod.IndexVariable, n)
			case pod.NodeVariable + "=node-b":
				f.call.Env[i] = fmt.Sprintf("%s=node%d", pod.NodeVariable, n)
			}
		}
		pods[n] = f
	}
	return pods[0], pods[1]
}

func (f *fixture) begin() *exec.Cmd {
	f.t.Helper()
	cmd := f.command()
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func (f *fixture) end(rank int) evidence.End {
	f.t.Helper()
	var e evidence.End
	if err := json.Unmarshal([]byte(f.read(filepath.Join(rundir.RankDir(f.call.AttemptDir, rank), rundir.EndFile))), &e); err != nil {
		f.t.Fatal(err)
	}
	return e
}

// The pods of a pair wait for each other over the network alone.
func TestPair(t *testing.T) {
	for name, tt := range map[string]struct {
		ready          plan.Ready
		server, client string
		want           [2]evidence.Outcome
		code, message  string // of the client
		said           string
	}{
		"served, and released": {
			plan.Ready{Kind: plan.ReadyFile, TimeoutSeconds: 60},
			`sleep 0.5; touch "$ASSAY_READY_FILE"; sleep 300`, `echo "$ASSAY_PEER_NODE $BURNIN_PEER_NODE $ASSAY_ROOT_NODE"`,
			[2]evidence.Outcome{evidence.OutcomeReleased, evidence.OutcomeExited},
			"", "", "node0 node0 node0\n",
		},
		"never ready": {
			plan.Ready{Kind: plan.ReadyLine, Pattern: "x", TimeoutSeconds: 1},
			"sleep 300", "echo began",
			[2]evidence.Outcome{evidence.OutcomeReleased, evidence.OutcomeRefused},
			"ROOT_NOT_READY", "the server on node0 was not ready within 1 s (line:x)", "",
		},
		"ends early": {
			plan.Ready{Kind: plan.ReadyFile, TimeoutSeconds: 60},
			"exit 0", "echo began",
			[2]evidence.Outcome{evidence.OutcomeExited, evidence.OutcomeRefused},
			"ROOT_ENDED", "the server on node0 ended with exit code 0 before the client began", "",
		},
		"killed early": {
			plan.Ready{Kind: plan.ReadyFile, TimeoutSeconds: 60},
			"kill -9 $$", "echo began",
			[2]evidence.Outcome{evidence.OutcomeSignaled, evidence.OutcomeRefused},
			"ROOT_ENDED", "the server on node0 ended by a signal (exit code 137) before the client began", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newPair(t, tt.ready, tt.server, tt.client)
			server := s.begin()
			client := c.begin()
			_, _ = exitCode(t, client.Wait()), exitCode(t, server.Wait())
			se, ce := s.end(0), c.end(1)
			if se.Outcome != tt.want[0] || ce.Outcome != tt.want[1] || ce.Code != tt.code || ce.Message != tt.message {
				t.Errorf("server %v %d, client %v %d %s %q", se.Outcome, se.ExitCode, ce.Outcome, ce.ExitCode, ce.Code, ce.Message)
			}
			if said, _, _, _ := c.received(); said != tt.said {
				t.Errorf("the client said %q", said)
			}
		})
	}
}

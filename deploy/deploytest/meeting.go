package deploytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// defaultServe listens on MASTER_PORT for the one connection that it ever takes, and
// says hello.
const defaultServe = `exec python3 -c '
import socket, sys
s = socket.socket(); s.bind(("", int(sys.argv[1]))); s.listen(1)
c, _ = s.accept(); s.close(); c.sendall(b"hello\n"); c.close()' "$MASTER_PORT"`

// pairOf is a job of two nodes, one of which serves the other.
func pairOf(ready plan.Ready, server, client string) plan.Job {
	job := bashOn(2, 1, fmt.Sprintf("if [ \"$ASSAY_ROLE\" = server ]; then\n%s\nelse\n%s\nfi", server, client))
	job.Scope, job.Expect.Scope = "pair", "pair"
	if ready.TimeoutSeconds == 0 {
		ready.TimeoutSeconds = 60
	}
	job.Ready = &ready
	return job
}

// served ends what the server of a pair does: it goes on until its client is done.
const served = `until [ -e "$ASSAY_RESULTS_DIR/../../1/results/done" ]; do sleep 0.05; done`

// open is a file that the server makes just before it is ready, as the client sees it.
const open = `"$ASSAY_RESULTS_DIR/../../0/results/open"`

// greeted reads the word of the server, which takes one connection. It is asked for
// again where a name could not be looked up; that takes no connection.
const greeted = `for try in 1 2 3; do if read -r word < /dev/tcp/$ASSAY_PEER_HOST/$MASTER_PORT; then break; fi; sleep 1; done; echo "$word"`

// clientWaits starts the client of a pair in each of the ways in which a server says
// that it is ready.
func clientWaits(t *testing.T, h Harness) {
	serve := h.Serve
	if serve == "" {
		serve = defaultServe
	}
	const soon, unlessOpen = `sleep 1; : > "$ASSAY_RESULTS_DIR/open"; `, `[ -e ` + open + ` ] || exit 7; `
	const hello = `echo hello; : > "$ASSAY_RESULTS_DIR/done"`
	target := h.New(t)
	type running struct {
		a      plan.Attempt
		handle deploy.Handle
	}
	jobs := map[string]running{}
	for name, c := range map[string]struct {
		ready          plan.Ready
		server, client string
	}{
		"tcp":  {plan.Ready{Kind: plan.ReadyTCP}, soon + serve, unlessOpen + greeted},
		"line": {plan.Ready{Kind: plan.ReadyLine, Pattern: `^ready for \w+$`}, `echo "not ready for you"; ` + soon + `echo "ready for you"; ` + served, unlessOpen + hello},
		"file": {plan.Ready{Kind: plan.ReadyFile}, soon + `: > "$ASSAY_READY_FILE"; ` + served, unlessOpen + hello},
	} {
		job := pairOf(c.ready, c.server, c.client)
		job.ID, job.Key = name, name
		a, handle := h.start(t, target, job)
		jobs[name] = running{a: a, handle: handle}
	}
	for name, r := range jobs {
		h.await(t, target, r.handle)
		for rank := range 2 {
			if m := mustEnd(t, r.a, rank); m.Outcome != evidence.OutcomeExited || m.ExitCode != 0 {
				t.Errorf("%s: rank %d: %s with code %d (%s %s), want exited with 0; it said %q", name, rank, m.Outcome, m.ExitCode, m.Code, m.Message,
					output(t, r.a, rank, rundir.StderrFile))
			}
		}
		if said := output(t, r.a, 1, rundir.StdoutFile); said != "hello\n" {
			t.Errorf("%s: the client said %q", name, said)
		}
	}
}

// neverReady has a server that runs and is never ready: its client is not started, and
// it is ended.
func neverReady(t *testing.T, h Harness) {
	a, v := h.run(t, pairOf(plan.Ready{Kind: plan.ReadyFile, TimeoutSeconds: 2}, "sleep 300", "echo began"))
	server, client := mustEnd(t, a, 0), mustEnd(t, a, 1)
	want := fmt.Sprintf("the server on %s was not ready within 2 s (file)", server.Node)
	wantRefused(t, client, verdict.CodeRootNotReady, want)
	if server.Outcome != evidence.OutcomeReleased || server.ExitCode != 0 {
		t.Errorf("the server: %s with code %d, want released with 0", server.Outcome, server.ExitCode)
	}
	wantVerdict(t, v, verdict.Error, verdict.CodeRootNotReady)
}

// endsEarly has a server that ends before its client may begin.
func endsEarly(t *testing.T, h Harness) {
	a, v := h.run(t, pairOf(plan.Ready{Kind: plan.ReadyFile}, "exit 0", "echo began"))
	server, client := mustEnd(t, a, 0), mustEnd(t, a, 1)
	wantRefused(t, client, verdict.CodeRootEnded, fmt.Sprintf("the server on %s ended with exit code 0 before the client began", server.Node))
	if server.Outcome != evidence.OutcomeExited || server.ExitCode != 0 {
		t.Errorf("the server: %s with code %d, want exited with 0", server.Outcome, server.ExitCode)
	}
	wantVerdict(t, v, verdict.Error, verdict.CodeRootEnded)
}

func wantRefused(t *testing.T, m evidence.End, code, message string) {
	t.Helper()
	if m.Outcome != evidence.OutcomeRefused || m.Code != code || m.Message != message {
		t.Errorf("rank %d: %s, %s %q, want refused, %s %q", m.Rank, m.Outcome, m.Code, m.Message, code, message)
	}
}

// lingers has a server that goes on when its client has ended.
func lingers(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, pairOf(plan.Ready{Kind: plan.ReadyStarted}, "sleep 300", `echo "performance: 5 linkGBs"`))
	seen := h.await(t, target, handle)
	server, client := mustEnd(t, a, 0), mustEnd(t, a, 1)
	if server.Outcome != evidence.OutcomeReleased || server.ExitCode != 0 || client.Outcome != evidence.OutcomeExited || client.ExitCode != 0 {
		t.Errorf("the server: %s with code %d, want released with 0; the client: %s with code %d, want exited with 0",
			server.Outcome, server.ExitCode, client.Outcome, client.ExitCode)
	}
	wantVerdict(t, judge(t, a, handle, seen, false), verdict.Pass)
	h.wantNothingLeft(t, a, handle)
}

// namedNodes has the ranks of a job on the nodes that it names, and on no other.
func namedNodes(t *testing.T, h Harness) {
	n := min(len(h.Named), 2)
	nodes := h.Named[len(h.Named)-n:] // not those that it would get anyway
	job := bashOn(n, 1, `echo "$ASSAY_NODE"`)
	job.Nodes = nodes
	a, _ := h.run(t, job)
	var got []string
	for rank := range n {
		m := mustEnd(t, a, rank)
		got = append(got, m.Node)
		if said := strings.TrimSpace(output(t, a, rank, rundir.StdoutFile)); said != m.Node {
			t.Errorf("the workload of rank %d is on node %q, and its marker says %q", rank, said, m.Node)
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(nodes)); !slices.Equal(got, want) {
		t.Errorf("the job ran on %q, want %q", got, want)
	}
}

package rank_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// newPair gives both ends of a pair. They run scripts of their own.
func newPair(t *testing.T, ready plan.Ready, server, client string) (s, c *fixture) {
	t.Helper()
	s = newFixture(t, fmt.Sprintf("if [ $RANK = 0 ]; then %s\nelse %s\nfi", server, client))
	job := &s.attempt.Job
	job.Scope, job.NNodes, job.WorldSize, job.Ready, job.Nodes = "pair", 2, 2, &ready, []string{"node1", "node2"}
	if ready.TimeoutSeconds == 0 {
		ready.TimeoutSeconds = 60
	}
	s.call.Node = "node1"
	both := *s
	c = &both
	c.call.Rank, c.call.Node = 1, "node2"
	return s, c
}

// begin starts the wrapper of a rank.
func (f *fixture) begin() *exec.Cmd {
	f.t.Helper()
	cmd := f.command()
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	})
	return cmd
}

// meet runs both ends, the client first, and returns how they ended.
func meet(t *testing.T, s, c *fixture) (server, client evidence.End) {
	t.Helper()
	client1 := c.begin()
	server1 := s.begin()
	_ = exitCode(t, client1.Wait())
	_ = exitCode(t, server1.Wait())
	return s.end(), c.end()
}

func freePort(t *testing.T) (int, net.Listener) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port, l
}

// needs skips a test for want of a program.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
}

// server1 is a server that takes one connection, and nothing after it.
const server1 = `exec python3 -c '
import socket, sys, time
time.sleep(0.3)
s = socket.socket(socket.%s); s.bind(("%s", %d)); s.listen(1)
c, _ = s.accept(); s.close(); c.sendall(b"hello\n"); c.close()'`

// The client begins once the server listens, and the one connection is left for it.
func TestReadyTCP(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	for _, tt := range []struct{ family, addr string }{{"AF_INET", "127.0.0.1"}, {"AF_INET6", "::"}} {
		port, l := freePort(t)
		_ = l.Close()
		client := fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%d; read -r word <&3; echo "$word $ASSAY_PEER_NODE"`, port)
		s, c := newPair(t, plan.Ready{Kind: plan.ReadyTCP, Port: port}, fmt.Sprintf(server1, tt.family, tt.addr, port), client)
		se, ce := meet(t, s, c)
		if se.ExitCode != 0 || se.Outcome != evidence.OutcomeExited || ce.ExitCode != 0 || c.read("stdout") != "hello node1\n" {
			t.Errorf("%s: server %v %d, client %v %d %q: %q %s", tt.family, se.Outcome, se.ExitCode, ce.Outcome, ce.ExitCode, ce.Message, c.read("stdout"), s.read("stderr"))
		}
		if ce.ElapsedSeconds >= ce.FinishedAt.Sub(ce.StartedAt).Seconds()-0.2 {
			t.Errorf("the client's time of %g s counts that of waiting", ce.ElapsedSeconds)
		}
	}
}

// MASTER_PORT is the port where none is named.
func TestReadyAtMasterPort(t *testing.T) {
	t.Parallel()
	needs(t, "python3")
	port, l := freePort(t)
	_ = l.Close()
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyTCP}, fmt.Sprintf(server1, "AF_INET", "127.0.0.1", port), `read -r word < /dev/tcp/127.0.0.1/$MASTER_PORT; echo $word`)
	s.call.MasterPort, c.call.MasterPort = port, port
	if _, ce := meet(t, s, c); ce.ExitCode != 0 || c.read("stdout") != "hello\n" {
		t.Errorf("client %v %d %q", ce.Outcome, ce.ExitCode, ce.Message)
	}
}

// What listened before the server began is another's.
func TestStrangerOnThePort(t *testing.T) {
	t.Parallel()
	port, _ := freePort(t)
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyTCP, Port: port, TimeoutSeconds: 1}, "sleep 300", "echo began")
	_, ce := meet(t, s, c)
	want := fmt.Sprintf("the server on node1 was not ready within 1 s (tcp:%d): something else listened on port %d before its workload began, and does not count", port, port)
	if ce.Outcome != evidence.OutcomeRefused || ce.Code != "ROOT_NOT_READY" || ce.Message != want || ce.ExitCode != 6 {
		t.Errorf("client %+v", ce)
	}
}

func TestReadyByAWord(t *testing.T) {
	t.Parallel()
	go1 := filepath.Join(t.TempDir(), "go")
	for name, tt := range map[string]struct {
		ready  plan.Ready
		server string
	}{
		"line of stdout": {plan.Ready{Kind: plan.ReadyLine, Pattern: `^listening on \d+$`}, `echo not listening on 5; sleep 0.2; touch %s; printf 'list'; sleep 0.1; printf 'ening on 80\r\nmore\n'; sleep 2`},
		"line of stderr": {plan.Ready{Kind: plan.ReadyLine, Pattern: `ready`}, `sleep 0.2; touch %s; echo "it is ready" >&2; sleep 2`},
		"file":           {plan.Ready{Kind: plan.ReadyFile}, `sleep 0.2; touch %s "$ASSAY_READY_FILE"; sleep 2`},
	} {
		s, c := newPair(t, tt.ready, fmt.Sprintf(tt.server, go1), "[ -e "+go1+" ] && echo in time")
		se, ce := meet(t, s, c)
		if se.ExitCode != 0 || ce.ExitCode != 0 || c.read("stdout") != "in time\n" {
			t.Errorf("%s: server %v %d, client %v %d %q", name, se.Outcome, se.ExitCode, ce.Outcome, ce.ExitCode, ce.Message)
		}
		_ = os.Remove(go1)
	}
}

// Words of a pre-script are none of the workload's, and what an earlier run left is
// no sign.
func TestNotReady(t *testing.T) {
	t.Parallel()
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyLine, Pattern: "ready", TimeoutSeconds: 1}, "sleep 300", "echo began")
	s.attempt.Job.PreScripts = []plan.Script{{Path: "pre.sh"}}
	c.attempt = s.attempt
	s.file("pre.sh", "echo ready", 0o600)
	se, ce := meet(t, s, c)
	if want := "the server on node1 was not ready within 1 s (line:ready)"; ce.Outcome != evidence.OutcomeRefused || ce.Code != "ROOT_NOT_READY" || ce.Message != want {
		t.Errorf("client %+v", ce)
	}
	if se.Outcome != evidence.OutcomeReleased || se.ExitCode != 0 || se.Message != "" {
		t.Errorf("server %+v", se)
	}

	s, c = newPair(t, plan.Ready{Kind: plan.ReadyFile, TimeoutSeconds: 1}, "sleep 300", "echo began")
	left := filepath.Join(s.dir(), rundir.ReadyFile)
	if err := os.MkdirAll(s.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	state := `{"run_id":"r0","nonce":"n0","job":"job","attempt":1,"rank":0,"world_size":2,"stage":"ready"}`
	if err := os.WriteFile(filepath.Join(s.dir(), rundir.StateFile), []byte(state), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ce := meet(t, s, c); ce.Code != "ROOT_NOT_READY" {
		t.Errorf("client %+v", ce)
	}
}

// A client never begins once its server has ended, however that was.
func TestRootEnded(t *testing.T) {
	t.Parallel()
	for script, how := range map[string]string{
		"exit 0": "with exit code 0", "exit 3": "with exit code 3", "kill -9 $$": "by a signal (exit code 137)",
	} {
		for _, kind := range []string{plan.ReadyStarted, plan.ReadyFile} {
			s, c := newPair(t, plan.Ready{Kind: kind}, script, "echo began")
			if code := exitCode(t, s.begin().Wait()); code != s.end().ExitCode {
				t.Errorf("exit code %d", code)
			}
			_, ce := c.run()
			if want := "the server on node1 ended " + how + " before the client began"; ce.Outcome != evidence.OutcomeRefused || ce.Code != "ROOT_ENDED" || ce.Message != want {
				t.Errorf("%s, %s: client %+v", script, kind, ce)
			}
		}
	}
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyStarted}, "true", "echo began")
	s.attempt.Job.Program.Command = []string{"/nowhere/at/all"}
	c.attempt = s.attempt
	if code := exitCode(t, s.begin().Wait()); code != 127 {
		t.Errorf("exit code %d", code)
	}
	if _, ce := c.run(); ce.Message != "the server on node1 ended without having been started before the client began" {
		t.Errorf("client %+v", ce)
	}
}

// A server whose workload has ended is no server, whatever its wrapper still does.
func TestServerIsInItsPostScript(t *testing.T) {
	t.Parallel()
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyStarted}, "exit 0", "echo began")
	s.attempt.Job.PostScripts = []plan.Script{{Path: "post.sh"}}
	c.attempt = s.attempt
	s.file("post.sh", `[ $RANK = 1 ] || { echo up > "$ASSAY_RESULTS_DIR/up"; sleep 60; }`, 0o600)
	server := s.begin()
	waitFor(t, filepath.Join(s.dir(), "results/up"))
	if _, ce := c.run(); ce.Code != "ROOT_ENDED" || !strings.Contains(ce.Message, "with exit code 0") {
		t.Errorf("client %+v", ce)
	}
	_ = server.Process.Signal(syscall.SIGTERM)
	_ = server.Wait()
}

// A wrapper that was killed holds nobody up.
func TestOtherEndIsKilled(t *testing.T) {
	t.Parallel()
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyFile}, "sleep 300", "echo began")
	server := s.begin()
	kill := func(f *fixture, cmd *exec.Cmd) {
		t.Helper()
		waitFor(t, filepath.Join(f.dir(), rundir.StateFile))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	kill(s, server)
	if _, ce := c.run(); ce.Code != "ROOT_ENDED" || ce.Message != "the server on node1 ended without a record of how before the client began" {
		t.Errorf("client %+v", ce)
	}

	s, c = newPair(t, plan.Ready{Kind: plan.ReadyStarted}, "sleep 300", "sleep 300")
	server = s.begin()
	kill(c, c.begin())
	_ = server.Wait()
	if se := s.end(); se.Outcome != evidence.OutcomeReleased {
		t.Errorf("server %+v", se)
	}
}

func TestRootNeverBegins(t *testing.T) {
	t.Parallel()
	_, c := newPair(t, plan.Ready{Kind: plan.ReadyStarted, TimeoutSeconds: 1}, "true", "echo began")
	if _, ce := c.run(); ce.Code != "ROOT_NOT_READY" || ce.Message != "the server on node1 did not begin within 1 s" {
		t.Errorf("client %+v", ce)
	}
}

// A server that goes on is ended a while after its client. How it ends counts, unless it
// only does as it is told; and one that ends by itself meanwhile was not told.
func TestServerIsReleased(t *testing.T) {
	t.Parallel()
	const on = "while :; do sleep 0.1; done"
	client := "until [ -e $ASSAY_RESULTS_DIR/../../1/end.json ]; do sleep 0.1; done; "
	told := "it ended so when it was told to, for whom it served had ended"
	for name, tt := range map[string]struct {
		server  string
		linger  int
		outcome evidence.Outcome
		code    int
		message string
	}{
		"does as it is told":    {on, 1, evidence.OutcomeReleased, 0, ""},
		"ends well":             {"trap 'exit 0' TERM; " + on, 1, evidence.OutcomeReleased, 0, ""},
		"says that it was told": {"trap 'exit 143' TERM; " + on, 1, evidence.OutcomeReleased, 0, ""},
		"finds errors":          {"trap 'echo corrupt; exit 1' TERM; " + on, 1, evidence.OutcomeUnknown, 1, told},
		"could not measure":     {"trap 'exit 3' TERM; " + on, 1, evidence.OutcomeUnknown, 3, told},
		"says it was killed":    {"trap 'exit 137' TERM; " + on, 1, evidence.OutcomeUnknown, 137, told},
		"crashes":               {"trap 'trap - ABRT; kill -ABRT $$' TERM; " + on, 1, evidence.OutcomeSignaled, 134, told},
		"is deaf":               {"trap '' TERM; " + on, 1, evidence.OutcomeReleased, 0, "it had to be killed 1.00 s after it was told to end, for whom it served had ended"},
		"ends itself":           {client + "exit 4", 0, evidence.OutcomeExited, 4, ""},
		"still verifies":        {client + "sleep 2.5; exit 1", 60, evidence.OutcomeExited, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newPair(t, plan.Ready{Kind: plan.ReadyStarted, LingerSeconds: tt.linger}, tt.server, "echo served; exit 1")
			s.attempt.KillGraceMS = 1000
			se, ce := meet(t, s, c)
			if se.Outcome != tt.outcome || se.ExitCode != tt.code || se.Message != tt.message || ce.ExitCode != 1 {
				t.Errorf("server %+v, client %v %d", se, ce.Outcome, ce.ExitCode)
			}
			if tt.outcome == evidence.OutcomeReleased && se.ElapsedSeconds < 1 {
				t.Errorf("the server had %g s", se.ElapsedSeconds)
			}
		})
	}
}

// The root of a group goes on when the others have ended.
func TestGroupWaitsForItsRoot(t *testing.T) {
	t.Parallel()
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyFile}, `sleep 0.3; touch "$ASSAY_READY_FILE"; sleep 3; echo done`, "echo began")
	s.attempt.Job.Scope = "group"
	c.attempt = s.attempt
	se, ce := meet(t, s, c)
	if se.Outcome != evidence.OutcomeExited || se.ExitCode != 0 || ce.ExitCode != 0 || s.read("stdout") != "done\n" {
		t.Errorf("root %+v, other %+v", se, ce)
	}
}

func TestToldToStopWhileWaiting(t *testing.T) {
	t.Parallel()
	_, c := newPair(t, plan.Ready{Kind: plan.ReadyStarted}, "true", "echo began")
	client := c.begin()
	for range 500 {
		if _, err := os.Stat(filepath.Join(c.dir(), rundir.BeginFile)); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = client.Process.Signal(syscall.SIGTERM)
	if code := exitCode(t, client.Wait()); code != 143 {
		t.Errorf("exit code %d", code)
	}
	if ce := c.end(); ce.Outcome != evidence.OutcomeStopped || ce.Message != "stopped by SIGTERM before the workload started" {
		t.Errorf("client %+v", ce)
	}
}

// The time that a rank waits does not count against its limit.
func TestWaitingIsNotLimited(t *testing.T) {
	t.Parallel()
	s, c := newPair(t, plan.Ready{Kind: plan.ReadyFile}, `sleep 1.5; touch "$ASSAY_READY_FILE"; sleep 3`, "echo began")
	c.call.JobFile += ".client"
	c.attempt.Job.TimeoutSeconds = 1
	if se, ce := meet(t, s, c); se.ExitCode != 0 || ce.ExitCode != 0 || c.read("stdout") != "began\n" {
		t.Errorf("server %+v, client %+v", se, ce)
	}
}

// Who was quiet for how long when it ran out of time.
func TestQuiet(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][2]float64{
		"sleep 300": {1.9, 300},
		"while :; do echo word; sleep 0.05; done":                                      {0, 1.5},
		"echo word; sleep 0.7; while :; do echo word >&2; sleep 0.05; done >/dev/null": {0, 1.5},
	} {
		f := newFixture(t, script)
		f.attempt.Job.TimeoutSeconds = 2
		_, end := f.run()
		if end.Outcome != evidence.OutcomeTimedOut || end.QuietSeconds < want[0] || end.QuietSeconds > want[1] {
			t.Errorf("%s: %v, quiet for %g s, want %v", script, end.Outcome, end.QuietSeconds, want)
		}
	}
}

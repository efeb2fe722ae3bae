package podrank

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rank"
)

// waiting is a rank of a pair, or of a group, that waits for others.
func waiting(t *testing.T, scope string, n, world, port int) *meeting {
	t.Helper()
	p := member(n, world)
	p.attempt.Job.Scope, p.attempt.Job.Ready = scope, &plan.Ready{Kind: plan.ReadyStarted, TimeoutSeconds: 60}
	opt := &rank.Options{MasterAddr: "127.0.0.1", MasterPort: port + 1, Node: "node" + string(rune('0'+n))}
	m := p.meet(t.Context(), opt)
	t.Cleanup(m.leave)
	if opt.Meeting != m || opt.RootFound != nil {
		t.Errorf("rank %d meets at %v", n, opt.Meeting)
	}
	return m
}

func tell(t *testing.T, m *meeting, s rank.State) {
	t.Helper()
	if err := m.Tell(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func wantState(t *testing.T, m *meeting, of int, want rank.State) {
	t.Helper()
	got, err := m.Ask(t.Context(), of)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("rank %d: %v (-want +got):\n%s", of, err, d)
	}
}

// lingering says whether a rank stays, and ends the stay.
func lingering(m *meeting) bool {
	gone := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		m.linger(ctx, nil)
		close(gone)
	}()
	defer func() {
		cancel()
		<-gone
	}()
	select {
	case <-gone:
		return false
	case <-time.After(300 * time.Millisecond):
		return true
	}
}

func TestTalk(t *testing.T) {
	port := freePort(t)
	client := waiting(t, "pair", 1, 2, port)
	if _, err := client.Ask(t.Context(), 0); err == nil {
		t.Error("somebody answers before rank 0 is there")
	}
	root := waiting(t, "pair", 0, 2, port)
	wantState(t, client, 0, rank.State{Stage: rank.StageBegun, Node: "node0"})
	wantState(t, root, 1, rank.State{})
	if !lingering(root) {
		t.Error("rank 0 goes, and nobody knows more than that it has begun")
	}
	ended := rank.State{Stage: rank.StageDone, Node: "node0", Outcome: evidence.OutcomeExited, ExitCode: 3, Note: strings.Repeat("é", 300)}
	ready := rank.State{Stage: rank.StageReady, Node: "node0"}
	tell(t, root, ready)
	wantState(t, client, 0, ready)
	tell(t, root, ended)
	if !lingering(root) {
		t.Error("the server goes while its client runs, which will look for it")
	}
	tell(t, client, rank.State{Stage: rank.StageDone, Node: "node1"})
	wantState(t, root, 1, rank.State{})
	over := rank.State{Stage: rank.StageOver, Node: "node1", Outcome: evidence.OutcomeExited, ExitCode: 6}
	tell(t, client, over)
	wantState(t, root, 1, over)
	if lingering(root) || lingering(client) {
		t.Error("somebody stays, although the end of the client is known")
	}
}

// A client that learns of the end of its server has nobody to tell of its own.
func TestClientKnowsThatItsServerEnded(t *testing.T) {
	port := freePort(t)
	root, client := waiting(t, "pair", 0, 2, port), waiting(t, "pair", 1, 2, port)
	ended := rank.State{Stage: rank.StageOver, Outcome: evidence.OutcomeExited}
	tell(t, root, ended)
	wantState(t, client, 0, ended)
	if lingering(root) {
		t.Error("the server stays, although its client will not begin")
	}
	root.leave()
	tell(t, client, rank.State{Stage: rank.StageOver, Outcome: evidence.OutcomeRefused})
	if lingering(client) {
		t.Error("the client stays")
	}
}

// The root of a group goes once the others have begun, and they tell it nothing.
func TestTalkOfAGroup(t *testing.T) {
	port := freePort(t)
	root, other := waiting(t, "group", 0, 2, port), waiting(t, "group", 1, 2, port)
	tell(t, root, rank.State{Stage: rank.StageReady})
	if !lingering(root) {
		t.Error("the root goes before anybody knows that it is ready")
	}
	wantState(t, other, 0, rank.State{Stage: rank.StageReady})
	tell(t, other, rank.State{Stage: rank.StageOver})
	if lingering(root) || lingering(other) {
		t.Error("somebody stays")
	}
	wantState(t, root, 1, rank.State{})
}

// The end of a client is told once rank 0 can be told, and to nobody for long.
func TestEndIsToldLate(t *testing.T) {
	port := freePort(t)
	client := waiting(t, "pair", 1, 2, port)
	tell(t, client, rank.State{Stage: rank.StageOver})
	root := waiting(t, "pair", 0, 2, port)
	client.linger(t.Context(), nil)
	wantState(t, root, 1, rank.State{Stage: rank.StageOver})

	alone := waiting(t, "pair", 1, 2, freePort(t))
	tell(t, alone, rank.State{Stage: rank.StageOver})
	alone.linger(t.Context(), nil) // returns before the test's own limit
}

// A rank that was killed stays until the others know; one that was told to stop does
// not.
func TestWhoStays(t *testing.T) {
	m := waiting(t, "pair", 0, 2, freePort(t))
	for outcome, want := range map[evidence.Outcome]bool{evidence.OutcomeSignaled: true, evidence.OutcomeTimedOut: true, evidence.OutcomeStopped: false} {
		tell(t, m, rank.State{Stage: rank.StageOver, Outcome: outcome})
		if m.stays() != want {
			t.Errorf("%v: stays %t", outcome, !want)
		}
	}
	if idle, _ := open(t, 0, 2, freePort(t), time.Minute); idle.stays() {
		t.Error("a rank that nobody waits for stays")
	}
}

// Nobody else is answered.
func TestStrangersGetNoAnswer(t *testing.T) {
	port := freePort(t)
	root := waiting(t, "pair", 0, 2, port)
	for _, words := range []string{
		"assay 9999 job 2 1 ask\n", "assay 0123 job 2 0 ask\n", "assay 0123 job 2 2 ask\n", "assay 0123 job 2 1 asks\n", "assay 0123 job 2 1 tell {\n",
		"assay 0123 job 2 1 tell\n", "assay 0123 job 2 x tell {}\n", "assay 0123 job 1 1 tell {}\n",
	} {
		if answer, _, err := exchange(t.Context(), root.addr, words); err == nil {
			t.Errorf("%q is answered: %q", words, answer)
		}
	}
	if len(root.told) > 0 {
		t.Errorf("told %v", root.told)
	}
}

// The name of rank 0 is looked up once, and again when nobody answers there.
func TestNameIsLookedUpOnce(t *testing.T) {
	port := freePort(t)
	root, client := waiting(t, "pair", 0, 2, port), waiting(t, "pair", 1, 2, port)
	wantState(t, client, 0, rank.State{Stage: rank.StageBegun, Node: "node0"})
	door := client.addr
	client.addr = "nowhere.invalid:1"
	wantState(t, client, 0, rank.State{Stage: rank.StageBegun, Node: "node0"})
	client.addr, client.at = door, "127.0.0.1:1"
	tell(t, client, rank.State{Stage: rank.StageOver})
	wantState(t, root, 1, rank.State{Stage: rank.StageOver})
}

// A client of an earlier attempt, which ends late, does not release the server of the
// next one.
func TestEarlierAttemptIsAStranger(t *testing.T) {
	port := freePort(t)
	root, late := waiting(t, "pair", 0, 2, port), waiting(t, "pair", 1, 2, port)
	earlier := member(1, 2)
	earlier.attempt.Number--
	late.hello = strings.TrimSuffix(earlier.greeting(1), "\n")
	if s, err := late.Ask(t.Context(), 0); err == nil {
		t.Errorf("it is answered: %+v", s)
	}
	tell(t, late, rank.State{Stage: rank.StageOver})
	late.leave()
	late.linger(t.Context(), nil)
	wantState(t, root, 1, rank.State{})
}

package podrank

import (
	"context"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"assay/pkg/plan"
	"assay/pkg/rank"
)

func member(n, world int) *inPod {
	return &inPod{rank: n, o: Options{Err: os.Stderr}, attempt: plan.Attempt{Nonce: "0123", Number: 2, Job: plan.Job{ID: "job", WorldSize: world}}}
}

func open(t *testing.T, n, world, port int, stay time.Duration) (*meeting, *rank.Options) {
	t.Helper()
	opt := &rank.Options{MasterAddr: "127.0.0.1", MasterPort: port + 1, RootWait: stay}
	m := member(n, world).meet(t.Context(), opt)
	t.Cleanup(m.leave)
	return m, opt
}

func freePort(t *testing.T) int {
	t.Helper()
	l := listenOn(t, 0)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Rank 0 stays until the others have come by, also one that comes late.
func TestRankZeroStaysForTheOthers(t *testing.T) {
	port := freePort(t)
	root, _ := open(t, 0, 3, port, time.Minute)
	gone := make(chan struct{})
	go func() {
		root.linger(context.Background(), nil)
		close(gone)
	}()
	for n := 1; n < 3; n++ {
		select {
		case <-gone:
			t.Fatalf("rank 0 went before rank %d had come by", n)
		case <-time.After(50 * time.Millisecond):
		}
		_, opt := open(t, n, 3, port, time.Minute)
		opt.RootFound()
	}
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Fatal("rank 0 stays although all have come by")
	}
}

func TestRankZeroGoes(t *testing.T) {
	for name, tt := range map[string]struct {
		stay time.Duration
		told bool
	}{"after a while": {50 * time.Millisecond, false}, "when it is told to": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			root, _ := open(t, 0, 2, freePort(t), tt.stay)
			signals := make(chan os.Signal, 1)
			if tt.told {
				signals <- syscall.SIGTERM
			}
			root.linger(t.Context(), signals) // else the test's own limit ends it
		})
	}
}

// Who is of another job, or says something else, does not count.
func TestStrangersDoNotCount(t *testing.T) {
	port := freePort(t)
	root, _ := open(t, 0, 2, port, time.Minute)
	addr := "127.0.0.1:" + strconv.Itoa(port)
	for _, words := range []string{"", "\n", "assay 9999 job 2 1\n", "assay 0123 other 2 1\n", "assay 0123 job 2 x\n", "assay 0123 job 2 1 2\n", "assay 0123 job 1 1\n", "assay 0123 job 1\n"} {
		if saidHello(t.Context(), addr, words) {
			t.Errorf("%q is welcome", words)
		}
	}
	root.mu.Lock()
	defer root.mu.Unlock()
	if len(root.missing) != 1 {
		t.Errorf("missing: %v", root.missing)
	}
}

// A job of one rank has nobody to meet, and a port that is taken is no reason not to run.
func TestNoMeeting(t *testing.T) {
	if m, opt := open(t, 0, 1, 1000, time.Minute); m.door != nil || opt.RootFound != nil {
		t.Error("a single rank opens a door")
	}
	l := listenOn(t, 0)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n, _ := strconv.Atoi(port)
	m, _ := open(t, 0, 2, n, time.Hour)
	m.linger(t.Context(), nil) // returns at once
}

// A rank that is done before the process of rank 0 has begun comes by all the same.
func TestFastRanksWaitForTheDoor(t *testing.T) {
	port := freePort(t)
	fast, opt := open(t, 1, 2, port, time.Minute)
	opt.RootFound()
	gone := make(chan struct{})
	go func() {
		fast.linger(context.Background(), nil)
		close(gone)
	}()
	select {
	case <-gone:
		t.Fatal("it went, and nobody has seen it")
	case <-time.After(150 * time.Millisecond):
	}
	root, _ := open(t, 0, 2, port, time.Minute)
	root.linger(t.Context(), nil) // until it has come by
	<-gone
}

func listenOn(t *testing.T, port int) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

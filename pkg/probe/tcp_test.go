package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/pkg/exitcode"
)

// link runs both sides of a link in this process. change may adapt the options of a
// side; what it leaves alone is quick.
func link(t *testing.T, change func(opt *TCPOptions)) (report string, server, client error) {
	t.Helper()
	options := func(role string) TCPOptions {
		o := TCPOptions{Role: role, Token: "run-1", Duration: 20 * time.Millisecond, Pings: 20, ConnectTimeout: 20 * time.Second, StallTimeout: 20 * time.Second}
		if change != nil {
			change(&o)
		}
		return o
	}
	ports, served := make(chan int, 1), make(chan error, 1)
	serves, asks := options(RoleServer), options(RoleClient)
	serves.listening = func(port int) { ports <- port }
	go func() { served <- TCP(t.Context(), serves, nil) }()
	asks.Port = <-ports
	var b strings.Builder
	client = TCP(t.Context(), asks, &b)
	return b.String(), <-served, client
}

func TestTCPMeasuresAndVerifies(t *testing.T) {
	for _, streams := range []int{1, 3} {
		for _, chunk := range []int{64, 1000, patternBytes} {
			t.Run(fmt.Sprintf("%d of %d", streams, chunk), func(t *testing.T) {
				report, server, client := link(t, func(o *TCPOptions) { o.Streams, o.ChunkBytes = streams, chunk })
				if err := errors.Join(server, client); err != nil {
					t.Fatal(err)
				}
				send, receive := metricIn(t, report, MetricTCPSend), metricIn(t, report, MetricTCPReceive)
				if send <= 0 || receive <= 0 || metricIn(t, report, MetricTCPLatency) <= 0 || !strings.Contains(report, "verified: every byte") {
					t.Error(report)
				}
				if got := metricIn(t, report, MetricTCPBandwidth); got != min(send, receive) {
					t.Errorf("bandwidth %v of %v and %v", got, send, receive)
				}
				if !strings.Contains(report, "\n"+MetricTCPErrors+"=0\n") {
					t.Error(report)
				}
			})
		}
	}
}

func TestTCPFindsDamageInEachDirection(t *testing.T) {
	for _, bad := range []string{RoleServer, RoleClient} {
		report, server, client := link(t, func(o *TCPOptions) {
			if o.Role == bad {
				first := true
				o.tamper = func(chunk []byte) {
					if first {
						chunk[len(chunk)-1] ^= 1
					}
					first = false
				}
			}
		})
		if server != nil || exitcode.Of(client) != exitcode.Fail || !strings.Contains(report, "\n"+MetricTCPErrors+"=1\n") {
			t.Errorf("%s damages: server %v, client %v\n%s", bad, server, client, report)
		}
	}
}

// A chunk that is lost, repeated or moved is none that was sent there.
func TestTCPChunksDiffer(t *testing.T) {
	p := newPattern()
	for _, size := range []int{64, 4096} {
		seen := map[string]int64{}
		for n := range int64(2000) {
			data := string(p.chunk(n, size))
			if was, ok := seen[data]; ok {
				t.Fatalf("chunks %d and %d of %d bytes are the same", was, n, size)
			}
			seen[data] = n
		}
	}
}

func TestTCPSendsStrangersAway(t *testing.T) {
	ports, served := make(chan int, 1), make(chan error, 1)
	o := TCPOptions{Role: RoleServer, Token: "mine", listening: func(port int) { ports <- port }}
	go func() { served <- TCP(t.Context(), o, nil) }()
	port := <-ports
	for range 3 { // somebody who only looks
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c := TCPOptions{Role: RoleClient, Port: port, Token: "another", Duration: time.Millisecond, Pings: 1}
	if err := TCP(t.Context(), c, nil); exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a client of another run: %v", err)
	}
	c.Token = "mine"
	if err := TCP(t.Context(), c, &strings.Builder{}); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestTCPEndsWithoutItsPeer(t *testing.T) {
	o := TCPOptions{Role: RoleServer, ConnectTimeout: 50 * time.Millisecond, listening: func(int) {}}
	if err := TCP(t.Context(), o, nil); exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "no client came") {
		t.Errorf("a server without a client: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o = TCPOptions{Role: RoleClient, Port: port, ConnectTimeout: 50 * time.Millisecond}
	if err := TCP(t.Context(), o, nil); exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("a client without a server: %v", err)
	}
}

// A client that dies in the middle leaves a server that ends, too.
func TestTCPServerEndsWhenItsClientIsGone(t *testing.T) {
	ports, served := make(chan int, 1), make(chan error, 1)
	o := TCPOptions{Role: RoleServer, ConnectTimeout: 300 * time.Millisecond, listening: func(port int) { ports <- port }}
	go func() { served <- TCP(t.Context(), o, nil) }()
	ctx, cancel := context.WithCancel(t.Context())
	c := TCPOptions{Role: RoleClient, Port: <-ports, Duration: time.Hour, Pings: 10}
	sent := make(chan struct{})
	once := true
	c.tamper = func([]byte) {
		if once {
			close(sent)
		}
		once = false
	}
	ended := make(chan error, 1)
	go func() { ended <- TCP(ctx, c, nil) }()
	<-sent
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the client: %v", err)
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "the client is gone") {
		t.Errorf("the server: %v", err)
	}
}

func TestTCPRefusesOptions(t *testing.T) {
	for _, o := range []TCPOptions{
		{},
		{Role: "both"},
		{Role: RoleClient, Port: 70000},
		{Role: RoleClient, Streams: -1},
		{Role: RoleClient, ChunkBytes: 1},
		{Role: RoleClient, ChunkBytes: patternBytes + 1},
		{Role: RoleClient, Pings: -1},
		{Role: RoleClient, Duration: -1},
	} {
		if err := TCP(t.Context(), o, nil); exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

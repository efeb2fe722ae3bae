package probe

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"assay/pkg/exitcode"
)

// server is the server's side of a link. Each connection of the client asks for one
// thing; a stranger's is closed.
type server struct {
	opt    TCPOptions
	data   pattern
	change chan int      // 1 for a connection of the client that begins, -1 for one that ends
	bye    chan struct{} // the client is done
	once   sync.Once
}

// serve serves a client until it says that it is done. Somebody who only looks whether
// there is a listener does not end it.
func serve(ctx context.Context, opt TCPOptions) error {
	port := opt.Port
	if opt.listening != nil {
		port = 0
	}
	l, err := bind(ctx, opt.Addr, port)
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "the server cannot listen: %w: if the port is taken, give both sides another MASTER_PORT", err)
	}
	if opt.listening != nil {
		opt.listening(l.Addr().(*net.TCPAddr).Port)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer l.Close() //nolint:errcheck // nothing was written to it
	s := &server{opt: opt, data: newPattern(), change: make(chan int), bye: make(chan struct{})}
	go acceptEach(l, func(conn net.Conn) { s.greet(ctx, conn) })
	return s.await(ctx)
}

// await waits until the client is done, or has no connection for too long.
func (s *server) await(ctx context.Context) error {
	active, came := 0, false
	limit := time.NewTimer(s.opt.ConnectTimeout)
	defer limit.Stop()
	for {
		select {
		case d := <-s.change:
			active, came = active+d, true
			if limit.Stop(); active == 0 {
				limit.Reset(s.opt.ConnectTimeout)
			}
		case <-s.bye:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			if came {
				return exitcode.Errorf(exitcode.Error, "the client is gone: nothing of it for %s", s.opt.ConnectTimeout)
			}
			return exitcode.Errorf(exitcode.Error, "no client came within %s", s.opt.ConnectTimeout)
		}
	}
}

// greet serves a connection that speaks like a client of this run.
func (s *server) greet(ctx context.Context, conn net.Conn) {
	defer conn.Close()                                          //nolint:errcheck // what was written is acknowledged, or lost with the client
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // the end of the server ends it
	_ = conn.SetReadDeadline(time.Now().Add(controlTimeout))
	m, err := readMessage(conn)
	switch {
	case err != nil:
		return
	case m.Version != protocolVersion:
		_ = writeMessage(conn, message{Type: msgRefuse, Text: "the server is of another version: use one build on both nodes"})
		return
	case !sameToken(m.Token, s.opt.Token):
		_ = writeMessage(conn, message{Type: msgRefuse, Text: "the server belongs to another run: its run token differs"})
		return
	case (m.Type == msgTake || m.Type == msgStream) && !validChunk(m.Chunk):
		_ = writeMessage(conn, message{Type: msgRefuse, Text: "the server takes no chunks of that size"})
		return
	case m.Type != msgBye && writeMessage(conn, message{Type: msgWelcome}) != nil:
		return
	}
	s.tell(ctx, 1)
	defer s.tell(ctx, -1)
	s.answer(conn, m)
}

func (s *server) tell(ctx context.Context, d int) {
	select {
	case s.change <- d:
	case <-ctx.Done():
	}
}

// answer does what a connection asks for. What goes wrong shows on the other side too,
// which tells it.
func (s *server) answer(conn net.Conn, m message) {
	switch m.Type { //nolint:exhaustive // nothing else is asked of a server
	case msgBye:
		s.once.Do(func() { close(s.bye) })
	case msgPings:
		s.echo(conn)
	case msgTake:
		count, damaged, err := s.data.take(conn, m.Chunk, s.opt.StallTimeout)
		reply := message{Type: msgResult, Bytes: count, Damaged: damaged}
		if err != nil {
			reply = message{Type: msgAbort, Text: err.Error()}
		}
		_ = writeMessage(conn, reply)
	case msgStream:
		d := time.Duration(m.Seconds * float64(time.Second))
		if d <= maxTCPDuration {
			_, _ = s.data.send(conn, m.Chunk, d, s.opt.StallTimeout, s.opt.tamper)
		}
	}
}

// echo sends back what comes until the client closes.
func (s *server) echo(conn net.Conn) {
	buf := make([]byte, pingBytes)
	for {
		_ = conn.SetDeadline(time.Now().Add(s.opt.StallTimeout))
		if _, err := io.ReadFull(conn, buf); err != nil {
			return
		}
		if _, err := conn.Write(buf); err != nil {
			return
		}
	}
}

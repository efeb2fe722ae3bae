package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"assay/pkg/exitcode"
)

// measure is the client's side of a link.
func measure(ctx context.Context, opt TCPOptions, w io.Writer) error {
	c := &client{opt: opt, data: newPattern()}
	median, err := c.pings(ctx)
	if err != nil {
		return c.failed(ctx, err)
	}
	send, err := c.flow(ctx, msgTake, c.send)
	if err != nil {
		return c.failed(ctx, err)
	}
	receive, err := c.flow(ctx, msgStream, c.receive)
	if err != nil {
		return c.failed(ctx, err)
	}
	if conn, err := c.ask(ctx, message{Type: msgBye}); err == nil {
		_ = conn.Close() // a server that is not told ends by itself
	}
	if _, err := io.WriteString(w, tcpReport(opt, send, receive, median)); err != nil {
		return err
	}
	if n := send.damaged + receive.damaged; n > 0 {
		return exitcode.Errorf(exitcode.Fail, "%d chunks of %s came otherwise than they were sent: data was damaged on the way or in memory", n, formatSize(int64(opt.ChunkBytes)))
	}
	return nil
}

type client struct {
	opt  TCPOptions
	data pattern
}

// failed words what ended the measurement.
func (c *client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if exitcode.Of(err) == exitcode.Fail {
		return err
	}
	return exitcode.Errorf(exitcode.Error, "the link to %s: %w", c.opt.address(), err)
}

// ask opens a connection for one thing.
func (c *client) ask(ctx context.Context, m message) (net.Conn, error) {
	limited, stop := context.WithTimeout(ctx, c.opt.ConnectTimeout)
	defer stop()
	conn, err := dial(limited, c.opt.address())
	if err != nil {
		return nil, fmt.Errorf("the server did not answer within %s: %w", c.opt.ConnectTimeout, err)
	}
	m.Version, m.Token = protocolVersion, c.opt.Token
	if err := writeMessage(conn, m); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if m.Type == msgBye {
		return conn, nil
	}
	if err := c.welcome(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (c *client) welcome(conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(c.opt.StallTimeout))
	m, err := readMessage(conn)
	switch {
	case err != nil:
		return gone(err, c.opt.StallTimeout)
	case m.Type == msgRefuse:
		return errors.New(m.Text)
	case m.Type != msgWelcome:
		return errors.New("what listens there is no server of this probe")
	}
	return nil
}

// pings returns the median round trip. On a slow link it stops after the duration.
func (c *client) pings(ctx context.Context) (time.Duration, error) {
	conn, err := c.ask(ctx, message{Type: msgPings})
	if err != nil {
		return 0, err
	}
	defer conn.Close() //nolint:errcheck // that ends it
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	const least, warmUp = 10, 10
	end := time.Now().Add(c.opt.Duration)
	data, buf := c.data.chunk(0, pingBytes), make([]byte, pingBytes)
	var trips []time.Duration
	for i := -warmUp; i < c.opt.Pings && (i < least || time.Now().Before(end)); i++ {
		if err := conn.SetDeadline(time.Now().Add(c.opt.StallTimeout)); err != nil {
			return 0, err
		}
		began := time.Now()
		if _, err := conn.Write(data); err != nil {
			return 0, gone(err, c.opt.StallTimeout)
		}
		if _, err := io.ReadFull(conn, buf); err != nil {
			return 0, gone(err, c.opt.StallTimeout)
		}
		if i >= 0 {
			trips = append(trips, time.Since(began))
		}
		if !bytes.Equal(data, buf) {
			return 0, exitcode.Errorf(exitcode.Fail, "a message of %d bytes came back otherwise than it was sent", pingBytes)
		}
	}
	slices.Sort(trips)
	return trips[len(trips)/2], nil
}

// flow moves data in one direction over all streams at the same time.
func (c *client) flow(ctx context.Context, ask messageType, move func(net.Conn) (flow, error)) (flow, error) {
	conns := make([]net.Conn, c.opt.Streams)
	defer closeAll(conns...)
	began := time.Now()
	for i := range conns {
		conn, err := c.ask(ctx, message{Type: ask, Chunk: c.opt.ChunkBytes, Seconds: c.opt.Duration.Seconds()})
		if err != nil {
			return flow{}, err
		}
		conns[i] = conn
		if ask == msgTake && i == len(conns)-1 { // these begin now, the others when they are asked for
			began = time.Now()
		}
	}
	defer context.AfterFunc(ctx, func() { closeAll(conns...) })()
	flows, errs := make([]flow, len(conns)), make([]error, len(conns))
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() { flows[i], errs[i] = move(conn) })
	}
	all.Wait()
	sum := flow{seconds: time.Since(began).Seconds()}
	for _, f := range flows {
		sum.bytes, sum.damaged = sum.bytes+f.bytes, sum.damaged+f.damaged
	}
	return sum, errors.Join(errs...)
}

func (c *client) send(conn net.Conn) (flow, error) {
	sent, err := c.data.send(conn, c.opt.ChunkBytes, c.opt.Duration, c.opt.StallTimeout, c.opt.tamper)
	if err != nil {
		return flow{}, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(c.opt.StallTimeout))
	m, err := readMessage(conn)
	switch {
	case err != nil:
		return flow{}, gone(err, c.opt.StallTimeout)
	case m.Type != msgResult:
		return flow{}, fmt.Errorf("the server: %s", m.Text)
	case m.Bytes != sent:
		return flow{}, fmt.Errorf("%d bytes were sent, and %d came", sent, m.Bytes)
	}
	return flow{bytes: m.Bytes, damaged: m.Damaged}, nil
}

func (c *client) receive(conn net.Conn) (flow, error) {
	count, damaged, err := c.data.take(conn, c.opt.ChunkBytes, c.opt.StallTimeout)
	return flow{bytes: count, damaged: damaged}, err
}

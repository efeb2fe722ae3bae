package probe

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"assay/pkg/exitcode"
)

// peerControl is the control connection of a rank to rank 0.
type peerControl struct {
	conn net.Conn
	bye  chan struct{} // closed when rank 0 says that all is done
}

// register reports to rank 0, waits until all ranks have, and watches rank 0 from
// then on. It returns where the right neighbour waits.
func (g *group) register(ctx context.Context, cancel context.CancelCauseFunc, port int) (right string, err error) {
	opt := g.opt
	root := net.JoinHostPort(opt.MasterAddr, strconv.Itoa(opt.MasterPort))
	dialCtx, stop := context.WithTimeout(ctx, opt.ConnectTimeout)
	defer stop()
	conn, err := dial(dialCtx, root)
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", exitcode.Errorf(exitcode.Error, "rank %d cannot reach rank 0 at %s within %s: %w", opt.Rank, root, opt.ConnectTimeout, err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	m, err := askToJoin(conn, opt, port)
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = exitcode.Errorf(exitcode.Error, "rank %d: rank 0 at %s ended the connection before all ranks had met: %w", opt.Rank, root, err)
	case m.Type == msgRefuse:
		err = exitcode.Errorf(exitcode.Error, "rank %d was refused by rank 0 at %s: %s", opt.Rank, root, m.Text)
	case m.Type == msgAbort:
		err = exitcode.Errorf(exitcode.Error, "rank %d: %s", opt.Rank, m.Text)
	case m.Type != msgWelcome || m.Sweep == nil || !m.Sweep.valid():
		err = exitcode.Errorf(exitcode.Error, "rank %d: what answers at %s is not rank 0 of an all-reduce", opt.Rank, root)
	}
	if err != nil {
		_ = conn.Close()
		return "", err
	}
	g.sweep = *m.Sweep
	g.peer = &peerControl{conn: conn, bye: make(chan struct{})}
	go g.peer.watch(opt.Rank, cancel)
	return m.Right, nil
}

// askToJoin sends the greeting and waits for the answer of rank 0.
func askToJoin(conn net.Conn, opt AllReduceOptions, port int) (message, error) {
	err := writeMessage(conn, message{
		Type: msgHello, Version: protocolVersion, Token: opt.Token,
		Rank: opt.Rank, WorldSize: opt.WorldSize, Host: hostOf(conn.LocalAddr()), Port: port,
	})
	if err != nil {
		return message{}, err
	}
	return readMessage(conn)
}

// valid refuses a sweep that cannot be run.
func (s *sweep) valid() bool {
	if len(s.Counts) == 0 || s.Iterations <= 0 || s.WarmUp < 0 || s.ChunkBytes <= 0 {
		return false
	}
	before := int64(0)
	for _, count := range s.Counts {
		if count <= before {
			return false
		}
		before = count
	}
	return before <= largestBytes/elementBytes(s.DataType)
}

// watch takes the messages of rank 0. Anything but a proper end ends this rank.
func (p *peerControl) watch(rank int, cancel context.CancelCauseFunc) {
	m, err := readMessage(p.conn)
	for err == nil && m.Type == msgPing {
		_ = writeMessage(p.conn, message{Type: msgPong, Rank: rank}) // a lost connection shows when it is read
		m, err = readMessage(p.conn)
	}
	switch {
	case err != nil:
		// After this rank ended by itself nobody listens to this cancel any more.
		cancel(exitcode.Errorf(exitcode.Error, "rank %d: rank 0 is gone: the connection to it ended (%w)", rank, err))
	case m.Type == msgBye:
		close(p.bye)
	default:
		cancel(exitcode.Errorf(exitcode.Error, "rank %d: ended with the others: %s", rank, orDefault(m.Text, fmt.Sprintf("rank 0 sent %q", m.Type))))
	}
}

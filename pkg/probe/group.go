package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"assay/pkg/exitcode"
)

// A rank that lost a neighbour asks rank 0 why: the neighbour may only have ended,
// or wait, because of a third rank. Rank 0 finds out who is alive.
const (
	rollCallLimit = time.Second
	causeGrace    = 3 * rollCallLimit // for the answer; longer only if rank 0 is the one
)

// group is what a rank knows of the others once they have met.
type group struct {
	opt         AllReduceOptions
	sweep       sweep
	size        int
	left, right net.Conn // neighbours in the ring; nil with one rank

	root *rootControl // on rank 0
	peer *peerControl // on the others
}

// lostError says that a neighbour is gone or stalls, as this rank saw it.
type lostError struct{ text string }

func (e *lostError) Error() string { return e.text }

// lostLeft puts trouble with the left neighbour into words.
func (g *group) lostLeft(err error) *lostError {
	return g.lost((g.opt.Rank-1+g.size)%g.size, "nothing came from", "before", err)
}

// lostRight puts trouble with the right neighbour into words.
func (g *group) lostRight(err error) *lostError {
	return g.lost((g.opt.Rank+1)%g.size, "nothing was taken by", "after", err)
}

func (g *group) lost(neighbour int, what, where string, err error) *lostError {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &lostError{fmt.Sprintf("rank %d: %s rank %d for %s: it, or one %s it in the ring, stalls",
			g.opt.Rank, what, neighbour, g.opt.StallTimeout, where)}
	}
	return &lostError{fmt.Sprintf("rank %d: the connection to rank %d broke: %v", g.opt.Rank, neighbour, err)}
}

// slowest gives rank 0 the largest of all ranks' times in seconds. The others hand
// theirs in and get it back.
func (g *group) slowest(ctx context.Context, seconds float64) (float64, error) {
	switch {
	case g.size == 1:
		return seconds, nil
	case g.root != nil:
		return g.root.slowest(ctx, seconds, g.opt.StallTimeout)
	}
	err := writeMessage(g.peer.conn, message{Type: msgResult, Rank: g.opt.Rank, Seconds: seconds})
	if err != nil {
		return 0, &lostError{fmt.Sprintf("rank %d: the connection to rank 0 broke: %v", g.opt.Rank, err)}
	}
	return seconds, nil
}

// finish ends the group after the sweep, which gave err, and tells what really
// went wrong: a rank that merely lost a neighbour reports the reason that ended
// the neighbour.
func (g *group) finish(ctx context.Context, err error) error {
	if g.size == 1 {
		return err
	}
	defer g.close()
	if err == nil {
		return g.part(ctx)
	}
	var lost *lostError
	if errors.As(err, &lost) {
		err = g.reason(ctx, lost)
	}
	text := err.Error()
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("rank %d was told to stop", g.opt.Rank)
	}
	if g.root != nil {
		g.root.broadcast(message{Type: msgAbort, Text: text})
	} else {
		_ = writeMessage(g.peer.conn, message{Type: msgAbort, Rank: g.opt.Rank, Text: text})
	}
	return err
}

// reason finds out why a neighbour was lost.
func (g *group) reason(ctx context.Context, lost *lostError) error {
	if g.root != nil {
		g.root.investigate(lost.text)
	} else {
		_ = writeMessage(g.peer.conn, message{Type: msgLost, Rank: g.opt.Rank, Text: lost.text})
	}
	grace := time.NewTimer(causeGrace)
	defer grace.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-grace.C:
		return exitcode.With(exitcode.Error, lost)
	}
}

// part ends a group that succeeded: rank 0 has everything and says so, the others
// wait for that.
func (g *group) part(ctx context.Context) error {
	if g.root != nil {
		g.root.broadcast(message{Type: msgBye})
		return nil
	}
	limit := time.NewTimer(g.opt.StallTimeout)
	defer limit.Stop()
	select {
	case <-g.peer.bye:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return exitcode.Errorf(exitcode.Error, "rank %d: rank 0 did not confirm the end for %s: it, or another rank, stalls",
			g.opt.Rank, g.opt.StallTimeout)
	}
}

// close closes all connections.
func (g *group) close() {
	closeAll(g.left, g.right)
	if g.root != nil {
		g.root.close()
	}
	if g.peer != nil {
		closeAll(g.peer.conn)
	}
}

// closeAll closes connections; an error would say nothing that matters any more.
func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		if c != nil {
			_ = c.Close()
		}
	}
}

package probe

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/pkg/exitcode"
)

// rootControl is rank 0's side of the control connections.
type rootControl struct {
	mu    sync.Mutex
	peers []*registered // by rank; rank 0 and those who have not come are nil
	over  bool          // nobody is let in any more

	arrived chan struct{} // a word for each rank that registers
	refused []string      // who was sent away, and why
	results chan float64
	pongs   chan int // ranks that answered the roll call

	done     <-chan struct{}         // closed when the group ends
	cancel   context.CancelCauseFunc // ends the group with the reason; the first one counts
	suspects sync.Once
}

func newRootControl(ranks int, done <-chan struct{}, cancel context.CancelCauseFunc) *rootControl {
	return &rootControl{
		peers:   make([]*registered, ranks),
		arrived: make(chan struct{}, ranks),
		results: make(chan float64, ranks),
		pongs:   make(chan int, ranks),
		done:    done,
		cancel:  cancel,
	}
}

// registered is a rank that has come.
type registered struct {
	conn net.Conn
	host string // its address, as it sees it
	port int    // on which it waits for its left neighbour
}

// gather waits for all ranks, tells each what to do, and watches them from then
// on. It returns where rank 0's right neighbour waits.
func (g *group) gather(ctx context.Context, port int) (right string, err error) {
	l, err := listen(ctx, g.opt, max(g.opt.MasterPort, 0))
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // nothing was written to it
	if g.opt.listening != nil {
		g.opt.listening(l.Addr().String())
	}
	c := g.root
	g.sweep = g.opt.sweep()
	go acceptEach(l, func(conn net.Conn) { c.greet(conn, g.opt) })

	limit := time.NewTimer(g.opt.ConnectTimeout)
	defer limit.Stop()
	for range g.size - 1 {
		select {
		case <-c.arrived:
		case <-limit.C:
			return "", g.giveUp(c.whoIsMissing(g.opt.ConnectTimeout))
		case <-ctx.Done():
			return "", g.giveUp(context.Cause(ctx))
		}
	}
	for rank := 1; rank < g.size; rank++ {
		m := message{Type: msgWelcome, Rank: rank, Sweep: &g.sweep, Right: c.neighbourOf(rank, port)}
		if err := writeMessage(c.peers[rank].conn, m); err != nil {
			return "", g.giveUp(exitcode.Errorf(exitcode.Error, "rank %d is gone: %w", rank, err))
		}
	}
	for rank := 1; rank < g.size; rank++ {
		go c.watch(rank)
	}
	return c.neighbourOf(0, port), nil
}

// giveUp tells the ranks that have come why it ends here.
func (g *group) giveUp(err error) error {
	g.root.broadcast(message{Type: msgAbort, Text: err.Error()})
	g.root.close()
	return err
}

// greet lets a rank in, or sends it away with a reason.
func (c *rootControl) greet(conn net.Conn, opt AllReduceOptions) {
	_ = conn.SetReadDeadline(time.Now().Add(controlTimeout))
	m, err := readMessage(conn)
	if err != nil || m.Type != msgHello {
		c.refuse(conn, "it does not speak like a rank")
		return
	}
	switch {
	case m.Version != protocolVersion:
		c.refuse(conn, fmt.Sprintf("rank %d speaks version %d of the protocol and rank 0 version %d: use one build on all nodes", m.Rank, m.Version, protocolVersion))
	case !sameToken(m.Token, opt.Token):
		c.refuse(conn, fmt.Sprintf("rank %d belongs to another run: its run token differs", m.Rank))
	case m.WorldSize != opt.WorldSize:
		c.refuse(conn, fmt.Sprintf("rank %d has a world size of %d and rank 0 one of %d", m.Rank, m.WorldSize, opt.WorldSize))
	case m.Rank <= 0 || m.Rank >= opt.WorldSize:
		c.refuse(conn, fmt.Sprintf("there is no rank %d beside rank 0 in a world of %d", m.Rank, opt.WorldSize))
	default:
		_ = conn.SetReadDeadline(time.Time{})
		if !c.admit(m.Rank, &registered{conn, m.Host, m.Port}) {
			c.refuse(conn, fmt.Sprintf("rank %d has come twice, or too late", m.Rank))
		}
	}
}

// admit records a rank, unless it is there already.
func (c *rootControl) admit(rank int, p *registered) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.peers[rank] != nil {
		return false
	}
	c.peers[rank] = p
	c.arrived <- struct{}{}
	return true
}

// refuse sends a connection away. One that does not belong must not end the run.
func (c *rootControl) refuse(conn net.Conn, why string) {
	_ = writeMessage(conn, message{Type: msgRefuse, Text: why})
	_ = conn.Close()
	const keep = 8 // enough to understand, whoever knocks however often
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.refused) < keep {
		c.refused = append(c.refused, why)
	}
}

// whoIsMissing is the error of a group that is not complete.
func (c *rootControl) whoIsMissing(limit time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []int
	for rank := 1; rank < len(c.peers); rank++ {
		if c.peers[rank] == nil {
			missing = append(missing, rank)
		}
	}
	text := fmt.Sprintf("%d of %d ranks met within %s; missing: %s",
		len(c.peers)-len(missing), len(c.peers), limit, formatCPUs(missing))
	if len(c.refused) > 0 {
		text += "; refused: " + strings.Join(c.refused, "; ")
	}
	return exitcode.Errorf(exitcode.Error, "%s", text)
}

// neighbourOf is where the right neighbour of a rank waits, as that rank can reach
// it. port is the one of rank 0.
func (c *rootControl) neighbourOf(rank, port int) string {
	target := (rank + 1) % len(c.peers)
	if target == 0 {
		return net.JoinHostPort(hostOf(c.peers[rank].conn.LocalAddr()), strconv.Itoa(port))
	}
	host := c.peers[target].host
	// A rank that came over loopback shares the host of rank 0; to one elsewhere it
	// is where rank 0 is.
	if rank != 0 && isLoopback(host) && !isLoopback(c.peers[rank].host) {
		host = hostOf(c.peers[rank].conn.LocalAddr())
	}
	return net.JoinHostPort(host, strconv.Itoa(c.peers[target].port))
}

// watch takes a rank's messages. Its failure, or its silent end, ends the group.
func (c *rootControl) watch(rank int) {
	for {
		m, err := readMessage(c.peers[rank].conn)
		switch {
		case err != nil:
			// After a proper end nobody listens to this cancel any more.
			c.cancel(exitcode.Errorf(exitcode.Error, "rank %d is gone: its connection to rank 0 ended (%w)", rank, err))
			return
		case m.Type == msgAbort:
			c.cancel(exitcode.Errorf(exitcode.Error, "%s", m.Text))
			return
		case m.Type == msgLost:
			go c.investigate(m.Text)
		case m.Type == msgResult:
			c.results <- m.Seconds
		case m.Type == msgPong:
			c.pongs <- rank
		}
	}
}

// slowest waits for every rank's time of one size. No rank can be a size ahead:
// each operation begins with a barrier that includes rank 0.
func (c *rootControl) slowest(ctx context.Context, seconds float64, limit time.Duration) (float64, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for range len(c.peers) - 1 {
		select {
		case s := <-c.results:
			seconds = max(seconds, s)
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-timer.C:
			return 0, exitcode.Errorf(exitcode.Error, "rank 0: not every rank handed in its time within %s: one stalls", limit)
		}
	}
	return seconds, nil
}

// investigate ends the group with the reason why a rank lost its neighbour. Only
// the first that is lost counts: it is the closest to the trouble.
func (c *rootControl) investigate(lost string) {
	c.suspects.Do(func() {
		if silent := c.rollCall(rollCallLimit); len(silent) > 0 {
			lost = fmt.Sprintf("rank(s) %s stalled: no answer for %s; %s", formatCPUs(silent), rollCallLimit, lost)
		}
		c.cancel(exitcode.Errorf(exitcode.Error, "%s", lost))
	})
}

// rollCall asks every rank whether it is alive, and names those that do not answer
// within the limit. A rank that only waits for another one does answer.
func (c *rootControl) rollCall(limit time.Duration) (silent []int) {
	c.broadcast(message{Type: msgPing})
	timer := time.NewTimer(limit)
	defer timer.Stop()
	answered := make([]bool, len(c.peers))
	for range len(c.peers) - 1 {
		select {
		case rank := <-c.pongs:
			answered[rank] = true
			continue
		case <-c.done: // somebody else found the reason
			return nil
		case <-timer.C:
		}
		break
	}
	for rank := 1; rank < len(c.peers); rank++ {
		if !answered[rank] {
			silent = append(silent, rank)
		}
	}
	return silent
}

// broadcast sends a message to every rank that is there.
func (c *rootControl) broadcast(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peers {
		if p != nil {
			_ = writeMessage(p.conn, m) // one that is gone needs no message
		}
	}
}

// close closes all control connections.
func (c *rootControl) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, p := range c.peers {
		if p != nil {
			_ = p.conn.Close()
		}
	}
}

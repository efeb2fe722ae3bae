package probe

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"assay/pkg/exitcode"
)

// meet brings the ranks together: all register with rank 0, which tells each what
// to do and where its right neighbour is; then the ring is connected. cancel ends
// ctx with the reason when another rank fails, from then on until the end.
func meet(ctx context.Context, cancel context.CancelCauseFunc, opt AllReduceOptions) (*group, error) {
	whole := ctx
	ctx, stop := context.WithTimeoutCause(whole, opt.ConnectTimeout+controlTimeout, exitcode.Errorf(exitcode.Error,
		"rank %d: the ranks did not meet within %s", opt.Rank, opt.ConnectTimeout))
	defer stop()
	g := &group{opt: opt, size: opt.WorldSize}
	data, err := listen(ctx, opt, 0)
	if err != nil {
		return nil, err
	}
	defer data.Close() //nolint:errcheck // nothing was written to it
	defer context.AfterFunc(ctx, func() { _ = data.Close() })()

	var right string
	port := data.Addr().(*net.TCPAddr).Port
	if opt.Rank == 0 {
		g.root = newRootControl(g.size, whole.Done(), cancel)
		right, err = g.gather(ctx, port)
	} else {
		right, err = g.register(ctx, cancel, port)
	}
	if err != nil {
		return nil, err
	}
	if err := g.connect(ctx, data, right); err != nil {
		return nil, g.finish(ctx, err)
	}
	return g, nil
}

// listen opens a listener of a rank.
func listen(ctx context.Context, opt AllReduceOptions, port int) (net.Listener, error) {
	l, err := bind(ctx, opt.MasterAddr, port)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Error, "rank %d cannot listen: %w: if the port is taken, give the ranks another MASTER_PORT", opt.Rank, err)
	}
	return l, nil
}

// bind listens on a port, 0 for any. It can be reached from other hosts unless the
// peers meet on a loopback address, in which case it cannot.
func bind(ctx context.Context, meetAt string, port int) (net.Listener, error) {
	host := ""
	if ip := net.ParseIP(meetAt); meetAt == "localhost" || (ip != nil && ip.IsLoopback()) {
		host = meetAt
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// connect builds the ring: it dials the right neighbour while it waits for the
// left one.
func (g *group) connect(ctx context.Context, l net.Listener, right string) error {
	leftRank := (g.opt.Rank - 1 + g.size) % g.size
	arrived := make(chan net.Conn, 1)
	go acceptEach(l, func(conn net.Conn) {
		_ = conn.SetReadDeadline(time.Now().Add(controlTimeout))
		m, err := readMessage(conn)
		if err != nil || m.Type != msgHello || m.Rank != leftRank || !sameToken(m.Token, g.opt.Token) {
			_ = conn.Close() // a stranger
			return
		}
		select {
		case arrived <- conn:
		default:
			_ = conn.Close()
		}
	})
	conn, err := dial(ctx, right)
	if err == nil {
		g.right = conn
		err = writeMessage(conn, message{Type: msgHello, Rank: g.opt.Rank, Token: g.opt.Token})
	}
	if err != nil {
		return &lostError{fmt.Sprintf("rank %d cannot reach rank %d at %s: %v", g.opt.Rank, (g.opt.Rank+1)%g.size, right, err)}
	}
	select {
	case g.left = <-arrived:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// acceptEach hands every connection to do, each in its own goroutine so that one
// that says nothing holds up no other, until the listener is closed.
func acceptEach(l net.Listener, do func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go do(conn)
	}
}

// dial tries to connect until it succeeds or ctx ends: the other side may not
// listen yet, and its name may not resolve yet.
func dial(ctx context.Context, address string) (net.Conn, error) {
	const firstPause, longestPause = 20 * time.Millisecond, 500 * time.Millisecond
	d := net.Dialer{Timeout: controlTimeout}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// sameToken compares in constant time.
func sameToken(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// hostOf is the host of an address, without the zone that only means something on
// the host that wrote it.
func hostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	host, _, _ = strings.Cut(host, "%")
	return host
}

// isLoopback reports whether a host is a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

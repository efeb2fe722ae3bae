package podrank

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/pkg/rank"
)

// The name of a pod goes with it. A rank that starts late would look in vain for a
// rank 0 that is done, and could not tell it from one that has yet to come. So the
// others come by at rank 0 when they have found its name, and rank 0 stays until
// they have: it holds nothing up, for the job goes on for as long as they do.
//
// Nothing depends on it. Where networks do not let them come by, rank 0 goes after a
// while, and who finds no name is where it would be without all this.

const (
	knockPause = 100 * time.Millisecond // between attempts to come by
	knockLimit = 10 * time.Second       // that a rank which is done still tries to
	longest    = 30 * time.Second       // that rank 0 stays after its work
	talkLimit  = 2 * time.Second        // for one of them
	maxKnock   = 4 << 10                // bytes of what is said at the door
)

// meeting is the place at rank 0, or the way there.
type meeting struct {
	stop context.CancelFunc
	door net.Listener
	stay time.Duration // how long a rank stays at most after its work

	knocked chan struct{} // closed when another rank has come by at rank 0; nil: it does not try

	mu      sync.Mutex
	missing map[int]bool // ranks that have not come by
	all     chan struct{}

	talk // of ranks that wait for each other
}

// meet opens the door of rank 0, or has another rank come by once it knows where.
func (p *inPod) meet(ctx context.Context, opt *rank.Options) *meeting {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	m := &meeting{stop: stop, stay: min(opt.RootWait, longest), missing: map[int]bool{}, all: make(chan struct{})}
	job := p.attempt.Job
	// The port below the one where the workload's ranks meet: both sides know it.
	port := strconv.Itoa(opt.MasterPort - 1)
	if job.Ready != nil && job.WorldSize > 1 {
		m.wait(ctx, p, opt, net.JoinHostPort(opt.MasterAddr, port))
	}
	if job.WorldSize < 2 || opt.MasterPort < 2 || (opt.RootWait <= 0 && !m.waits) {
		return m
	}
	if p.rank != 0 && m.waits {
		m.stay = longest
		return m
	}
	if p.rank != 0 {
		m.stay = min(opt.RootWait, knockLimit)
		opt.RootFound = func() {
			m.knocked = make(chan struct{})
			go func() {
				defer close(m.knocked)
				knock(ctx, net.JoinHostPort(opt.MasterAddr, port), p.greeting(p.rank))
			}()
		}
		return m
	}
	door, err := new(net.ListenConfig).Listen(ctx, "tcp", ":"+port)
	if err != nil { // the workload's own business is more important
		p.say("the other ranks cannot come by, so this pod ends with its workload: %v", err)
		return m
	}
	m.door = door
	if m.waits {
		m.stay = longest
	}
	for n := 1; n < job.WorldSize; n++ {
		m.missing[n] = true
	}
	go m.receive(p)
	return m
}

// greeting is what a rank says at the door.
func (p *inPod) greeting(rank int) string { return fmt.Sprintf("%s%d\n", p.calling(), rank) }

// calling is how all that ranks of an attempt say begins. On the network of the hosts,
// pods of an earlier attempt may still find the door of a later one.
func (p *inPod) calling() string {
	return fmt.Sprintf("assay %s %s %d ", p.attempt.Nonce, p.attempt.Job.ID, p.attempt.Number)
}

// knock comes by at rank 0, whose process may start later than its name is there.
func knock(ctx context.Context, addr, greeting string) {
	for ctx.Err() == nil {
		if saidHello(ctx, addr, greeting) {
			return
		}
		select {
		case <-time.After(knockPause):
		case <-ctx.Done():
		}
	}
}

func saidHello(ctx context.Context, addr, greeting string) bool {
	answer, _, err := exchange(ctx, addr, greeting)
	return err == nil && answer == welcome
}

// welcome answers what wants no other answer.
const welcome = "welcome\n"

// exchange says a line at the door of rank 0. It returns the line that answers it, and
// the address that the name of the door stands for.
func exchange(ctx context.Context, addr, line string) (answer, at string, err error) {
	conn, err := (&net.Dialer{Timeout: talkLimit}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = conn.Close() }() // all that counts was said
	if err := conn.SetDeadline(time.Now().Add(talkLimit)); err != nil {
		return "", "", err
	}
	if _, err := io.WriteString(conn, line); err != nil {
		return "", "", err
	}
	answer, err = bufio.NewReader(io.LimitReader(conn, maxKnock)).ReadString('\n')
	return answer, conn.RemoteAddr().String(), err
}

// receive lets the ranks come by until the door is closed.
func (m *meeting) receive(p *inPod) {
	for {
		conn, err := m.door.Accept()
		if err != nil {
			return
		}
		go m.greet(conn, p)
	}
}

func (m *meeting) greet(conn net.Conn, p *inPod) {
	defer func() { _ = conn.Close() }() // all that counts was said
	if conn.SetDeadline(time.Now().Add(talkLimit)) != nil {
		return
	}
	said, err := bufio.NewReader(io.LimitReader(conn, maxKnock)).ReadString('\n')
	if err != nil {
		return
	}
	n, words, ok := p.greeted(said)
	if !ok {
		return
	}
	answer, met := m.answer(n, words)
	if answer == "" {
		return
	}
	if _, err := io.WriteString(conn, answer); err == nil && met {
		m.came(n)
	}
}

// greeted reads which rank says what at the door. It is not ok when that is none of
// the others of the job.
func (p *inPod) greeted(said string) (n int, words string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(said, "\n"), p.calling())
	if !ok {
		return 0, "", false
	}
	number, words, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(number)
	return n, words, err == nil && n > 0 && n < p.attempt.Job.WorldSize
}

// came notes that a rank came by.
func (m *meeting) came(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if delete(m.missing, n); len(m.missing) == 0 {
		select {
		case <-m.all:
		default:
			close(m.all)
		}
	}
}

// linger keeps the pod of rank 0 until all ranks have come by, and those of the others
// until they have, for a while, unless it is told to stop. The process of rank 0 may
// start after another is done.
func (m *meeting) linger(ctx context.Context, signals <-chan os.Signal) {
	met := m.all
	switch {
	case m.door == nil && m.knocked == nil:
		return
	case m.door == nil:
		met = m.knocked
	}
	timer := time.NewTimer(m.stay)
	defer timer.Stop()
	select {
	case <-met:
	case <-timer.C:
	case <-signals:
	case <-ctx.Done():
	}
}

// leave closes the door, and ends the way there.
func (m *meeting) leave() {
	m.stop()
	if m.door != nil {
		_ = m.door.Close() // nothing is written to it
	}
}

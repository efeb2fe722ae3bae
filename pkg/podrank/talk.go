package podrank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/rank"
)

// Ranks that wait for each other do so at the door of rank 0 as well: it says how far
// it is to whoever asks. The server of a pair is told by its clients when they have
// ended. Rank 0 then stays until the others know that they may begin, or that they may
// not, and the server of a pair until its clients have ended, so that they need not look
// for somebody to tell.

const (
	askWord  = "ask"
	tellWord = "tell "

	goneAfter = 2 * time.Second // without anybody behind the door
)

// talk is what ranks that wait for each other know of each other.
type talk struct {
	waits bool // there is something to wait for
	root  bool // this is rank 0
	pair  bool // rank 0 is a server that wants to know when the others have ended
	done  <-chan struct{}
	addr  string // of the door, by the name of rank 0
	at    string // the same by its number, once it is known
	hello string // how this rank greets, without the line end

	own   rank.State
	heard rank.Stage         // by the others: of rank 0
	told  map[int]rank.State // by rank 0: of the others
}

var _ rank.Meeting = (*meeting)(nil)

// wait makes the meeting one of ranks that wait for each other.
func (m *meeting) wait(ctx context.Context, p *inPod, opt *rank.Options, addr string) {
	m.talk = talk{
		waits: true, root: p.rank == 0, pair: p.attempt.Job.Scope == "pair", done: ctx.Done(), addr: addr, hello: strings.TrimSuffix(p.greeting(p.rank), "\n"),
		own: rank.State{Stage: rank.StageBegun, Node: opt.Node}, told: map[int]rank.State{},
	}
	opt.Meeting = m
}

// Tell implements rank.Meeting. Of the others the server of a pair needs to know their
// end, while it has not ended itself.
func (m *meeting) Tell(ctx context.Context, s rank.State) error {
	m.mu.Lock()
	m.own = s
	known := m.heard >= rank.StageDone
	m.mu.Unlock()
	if m.root || !m.pair || s.Stage != rank.StageOver || known {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	line := m.hello + " " + tellWord + string(data) + "\n"
	m.knocked = make(chan struct{})
	if answer, err := m.say(ctx, line); err == nil && answer == welcome {
		close(m.knocked)
		return nil
	}
	go func() {
		defer close(m.knocked)
		m.insist(context.WithoutCancel(ctx), line)
	}()
	return nil
}

// insist says a line until it was heard, or until there is nobody to hear it.
func (m *meeting) insist(ctx context.Context, line string) {
	for gone := time.Now(); time.Since(gone) < goneAfter; {
		answer, err := m.say(ctx, line)
		if err == nil && answer == welcome {
			return
		}
		if !nobody(err) {
			gone = time.Now() // somebody may be there
		}
		select {
		case <-time.After(knockPause):
		case <-m.done:
			return
		}
	}
}

// nobody reports whether an error means that nobody is behind the door.
func nobody(err error) bool {
	var name *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.As(err, &name) && name.IsNotFound
}

// say says a line at the door. Where that is has to be looked up once: name servers of
// clusters lose questions, and many ranks would ask them twice a second.
func (m *meeting) say(ctx context.Context, line string) (answer string, err error) {
	m.mu.Lock()
	at := m.at
	m.mu.Unlock()
	if at != "" {
		if answer, _, err = exchange(ctx, at, line); err == nil {
			return answer, nil
		}
	}
	answer, at, err = exchange(ctx, m.addr, line)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = at
	return answer, nil
}

// Ask implements rank.Meeting.
func (m *meeting) Ask(ctx context.Context, n int) (rank.State, error) {
	if m.root {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.told[n], nil
	}
	if n != 0 {
		return rank.State{}, fmt.Errorf("rank %d has no door: only rank 0 can be asked", n)
	}
	answer, err := m.say(ctx, m.hello+" "+askWord+"\n")
	if err != nil {
		return rank.State{}, err
	}
	var s rank.State
	if err := json.Unmarshal([]byte(answer), &s); err != nil {
		return rank.State{}, fmt.Errorf("rank 0 answered %q: %w", answer, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = s.Stage
	return s, nil
}

// answer is what rank 0 answers to the words of a rank, "" when it has no answer. met
// says that the rank need not come again.
func (m *meeting) answer(n int, words string) (answer string, met bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case words == "":
		return welcome, !m.waits
	case !m.waits:
	case words == askWord:
		data, err := json.Marshal(m.own)
		if err != nil {
			return "", false
		}
		knows := m.own.Stage >= rank.StageDone || m.own.Stage == rank.StageReady && !m.pair
		return string(data) + "\n", knows
	case strings.HasPrefix(words, tellWord):
		var s rank.State
		if json.Unmarshal([]byte(words[len(tellWord):]), &s) == nil {
			m.told[n] = s
			return welcome, true
		}
	}
	return "", false
}

// stays reports whether a rank that waits with others has ended without having been
// told to, whatever its exit code: then the others have to learn of it.
func (m *meeting) stays() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waits && m.own.Stage == rank.StageOver && m.own.Outcome != evidence.OutcomeStopped
}

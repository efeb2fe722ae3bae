package rank

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// echoRoom is how much may wait for a slow reader before the workload has to wait
	// too, in bytes.
	echoRoom = 1 << 20
	// echoPiece is how much is handed over at once, in bytes, so that a slow reader can
	// be told from one that does not read.
	echoPiece = 4 << 10
	// echoPatience is how long a reader may take for a piece once the workload is over.
	echoPatience = 5 * time.Second
)

// echo passes what goes to a log on to somebody who reads along. A slow reader
// loses nothing: the workload waits, as if it wrote to that reader itself. One that
// went away is no reader any more. Neither can hold up the end of the rank.
type echo struct {
	to   io.Writer
	name string

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte // handed in and not yet passed on
	busy    bool   // a piece is being written
	passed  int64  // bytes passed on
	hurried bool   // the workload is over, and waits no more
	ended   bool   // nothing more comes
	told    bool   // what went wrong has been told
	broken  error  // nothing more is passed on
}

// newEcho starts to pass on to a writer; nil passes on to nobody.
func newEcho(to io.Writer, name string) *echo {
	if to == nil {
		return nil
	}
	e := &echo{to: to, name: name}
	e.changed = sync.NewCond(&e.mu)
	go e.pass()
	return e
}

// add takes a copy of what is to be passed on. It never waits.
func (e *echo) add(p []byte) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.broken != nil || e.ended:
	case e.hurried && len(e.waiting) > 8*echoRoom: // nothing of the rank can do that
		e.fail(errors.New("too much came after the end"))
	default:
		e.waiting = append(e.waiting, p...)
		e.changed.Broadcast()
	}
}

// throttle waits while more than echoRoom bytes wait for the reader.
func (e *echo) throttle() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.waiting) > echoRoom && e.broken == nil && !e.hurried {
		e.changed.Wait()
	}
}

// pass writes piece after piece.
func (e *echo) pass() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.broken == nil {
		if len(e.waiting) == 0 {
			if e.ended {
				return
			}
			e.waiting = nil // a burst needs not hold its memory for ever
			e.changed.Wait()
			continue
		}
		piece := e.waiting[:min(len(e.waiting), echoPiece)]
		e.waiting, e.busy = e.waiting[len(piece):], true
		e.mu.Unlock()
		n, err := e.write(piece)
		e.mu.Lock()
		e.busy = false
		e.passed += int64(n)
		if err != nil {
			e.fail(err)
		}
		e.changed.Broadcast()
	}
}

func (e *echo) write(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return e.to.Write(p)
}

// fail gives the reader up. The lock is held.
func (e *echo) fail(err error) {
	if e.broken == nil {
		e.broken, e.waiting = err, nil
	}
	e.changed.Broadcast()
}

// hurry is told that the workload is over: what is still in its pipe must get to
// the log, whether the reader keeps up or not. Until the returned function is
// called the reader is given up as soon as it takes nothing for echoPatience.
func (e *echo) hurry() (stop func()) {
	if e == nil {
		return func() {}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hurried = true
	e.changed.Broadcast()
	done := make(chan struct{})
	go e.watch(done, e.passed)
	return func() { close(done) }
}

// watch gives up a reader that does not read.
func (e *echo) watch(done <-chan struct{}, passed int64) {
	tick := time.NewTicker(echoPatience / 10)
	defer tick.Stop()
	for since := time.Now(); ; {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		e.mu.Lock()
		switch {
		case e.passed != passed, !e.busy && len(e.waiting) == 0:
			passed, since = e.passed, time.Now()
		case time.Since(since) > echoPatience:
			e.fail(fmt.Errorf("nobody read it for %v", echoPatience))
		}
		e.mu.Unlock()
	}
}

// finish waits until all is passed on, or given up; hurry makes that sure. It
// returns what went wrong, once, or "".
func (e *echo) finish() string {
	if e == nil {
		return ""
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.changed.Broadcast()
	for (e.busy || len(e.waiting) > 0) && e.broken == nil {
		e.changed.Wait()
	}
	if e.broken != nil && !e.told {
		e.told = true
		return fmt.Sprintf("%s was not passed on whole: %v", e.name, e.broken)
	}
	return ""
}

// abandon ends it without waiting.
func (e *echo) abandon() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	e.changed.Broadcast()
}

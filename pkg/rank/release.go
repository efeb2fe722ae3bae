package rank

import (
	"context"
	"sync"
	"syscall"
	"time"

	"assay/pkg/phrase"
	"assay/pkg/plan"
)

// The server of a pair may legitimately go on for ever. So it is told to end a while
// after its clients have. What it says by the way it ends then counts all the same,
// unless it only did as it was told.

// lingers is how long the server of a pair may go on once its clients have ended.
func (w *wrapper) lingers() time.Duration {
	s := w.attempt.Job.Ready.LingerSeconds
	if s <= 0 {
		s = plan.DefaultLinger
	}
	return time.Duration(s) * time.Second
}

// accompany does what the others of a pair or group need while the workload runs. The
// channel is closed when the workload is to be ended because its clients have; it is
// nil where it never is. What is returned ends it all, and waits for that.
func (w *wrapper) accompany(ctx context.Context) (release <-chan struct{}, leave func()) {
	if !w.meets() || w.rank != 0 {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	leave = func() {
		cancel()
		beside.Wait()
	}
	beside.Go(func() { w.announce(ctx) })
	if w.attempt.Job.Scope != scopePair {
		return nil, leave
	}
	over := make(chan struct{})
	beside.Go(func() {
		if w.clientsOver(ctx) && w.letLinger(ctx) {
			close(over)
		}
	})
	return over, leave
}

// clientsOver waits until all other ranks have ended, and reports false when ctx has.
func (w *wrapper) clientsOver(ctx context.Context) bool {
	p := newPauses(lookPauseMax)
	for rank := 1; rank < w.attempt.Job.WorldSize; {
		asked := time.Now()
		if s, err := w.meeting().Ask(ctx, rank); err == nil && s.Stage == StageOver {
			rank++
			continue
		}
		if !p.wait(ctx, time.Since(asked)) {
			return false
		}
	}
	return true
}

// letLinger gives the server its time, and reports false when ctx has ended before.
func (w *wrapper) letLinger(ctx context.Context) bool {
	w.note("the other end has ended: the server has %s left to end by itself", phrase.Seconds(w.lingers().Seconds()))
	timer := time.NewTimer(w.lingers())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// letGo ends a process that is of no use any more. One that has ended meanwhile was not
// told to.
func (s *supervisor) letGo() {
	s.release = nil
	if s.told || s.main == nil {
		return
	}
	select {
	case <-s.main: // closed, so that it is seen again
		return
	default:
	}
	s.ending.released, s.told = true, true
	s.w.tree.signal(syscall.SIGTERM)
	s.timer.Reset(s.w.grace)
}

// wasReleased reports whether a process that was told to end, having served, ended as
// it was told: by TERM, or KILL where it did not heed that, or as one that ends well. One
// that ends with another code, or crashes, has something to say.
func (e ending) wasReleased() bool {
	if !e.released {
		return false
	}
	if e.ended && !e.status.Signaled() && e.status.ExitStatus() == 0 {
		return true
	}
	return !e.ended || e.endedBy(syscall.SIGTERM) || e.endedBy(syscall.SIGKILL)
}

// endedBy reports whether a process ended by a signal, or a shell says so of what it ran.
func (e ending) endedBy(sig syscall.Signal) bool {
	if e.status.Signaled() {
		return e.status.Signal() == sig
	}
	// All of a tree is killed, and its shell may see the end of what it ran before its own.
	return e.status.ExitStatus() == signalExit(sig) && (sig != syscall.SIGKILL || e.killed)
}

// noteReleased says how the server was ended. That it was told is no news for whoever
// judges it; that it did not listen is some.
func (w *wrapper) noteReleased(e ending) {
	w.note("it was told to end, for whom it served had ended")
	if e.killed && !e.endedBy(syscall.SIGTERM) {
		w.end.Message = sentence(w.end.Message, "it had to be killed "+phrase.Seconds(w.grace.Seconds())+" after it was told to end, for whom it served had ended")
	}
}

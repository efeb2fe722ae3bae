package rank

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"assay/pkg/phrase"
	"assay/pkg/signame"
)

// stopSignal stands for the end of the context.
const stopSignal = syscall.SIGTERM

// killRounds is how often KILL is sent, a second apart, before the wrapper gives
// up on a process that the kernel does not end.
const killRounds = 5

// Listen catches, from now to the end of the process, whatever would end it before
// its end marker is durable. What tells the wrapper to stop arrives on the
// channel. Nobody reads it before there is something to stop, and after: what
// arrives then does nothing.
func Listen() <-chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that went away
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(c, syscall.SIGHUP)
	}
	return c
}

// toldToStop reports whether the wrapper was told to stop while nothing ran, and
// records it.
func (w *wrapper) toldToStop(ctx context.Context) bool {
	select {
	case w.stopped = <-w.options.Signals:
	case <-ctx.Done():
		w.stopped = stopSignal
	default:
		return false
	}
	w.stopBeforeStart()
	return true
}

// ending is how a process, and all it left behind, came to an end.
type ending struct {
	ended    bool // the process itself has ended
	status   syscall.WaitStatus
	stopped  os.Signal // the wrapper was told to stop while it ran
	timedOut bool
	quiet    time.Duration // for how long nothing had been written when the time limit was reached
	released bool          // told to end because whom it served had ended
	killed   bool          // it had to be ended by KILL
	left     int           // processes that had to be ended after it
	immortal int           // processes that KILL did not end
}

// supervisor is the state of one watch.
type supervisor struct {
	w       *wrapper
	main    <-chan struct{} // nil once the process has ended
	timer   *time.Timer
	ending  ending
	release <-chan struct{} // closed when the process is to be ended, being of no use any more
	keep    bool            // what the process leaves behind stays
	told    bool            // the tree has been told to end
	killing int             // rounds of KILL

	begun    time.Duration // how long the wrapper had been stopped when the watch began
	credited time.Duration // of the time that it was stopped since, added to the limit
}

// watch waits until c and everything it left behind have ended, or c's time is
// over, or the wrapper is told to stop, or release is closed, being nil where it never
// is. A nil c has ended already. limit 0 is no limit.
func (w *wrapper) watch(ctx context.Context, c *child, limit time.Duration, release <-chan struct{}) ending {
	return (&supervisor{w: w, release: release}).run(ctx, c, limit)
}

// await is watch, but leaves alone what c leaves behind, unless c had to be
// ended.
func (w *wrapper) await(ctx context.Context, c *child, limit time.Duration) ending {
	return (&supervisor{w: w, keep: true}).run(ctx, c, limit)
}

func (s *supervisor) run(ctx context.Context, c *child, limit time.Duration) ending {
	w := s.w
	s.timer = time.NewTimer(time.Hour)
	s.timer.Stop()
	defer s.timer.Stop()
	s.begun = w.pulse.stoppedFor(time.Now())
	if limit > 0 {
		s.timer.Reset(limit)
	}
	cancelled := ctx.Done()
	if c != nil {
		s.main = c.done
	} else {
		cancelled = nil // what is left is being ended anyway
		if s.childEnded(nil) {
			return s.ending
		}
	}
	for {
		select {
		case <-s.main:
			if s.childEnded(c) {
				return s.ending
			}
		case <-w.tree.changed:
			if s.treeChanged() {
				return s.ending
			}
		case sig := <-w.options.Signals:
			s.stop(sig)
		case <-cancelled:
			cancelled = nil
			s.stop(stopSignal)
		case <-s.release:
			s.letGo()
		case <-s.timer.C:
			if s.escalate() {
				return s.ending
			}
		}
	}
}

// childEnded notes the end of the process itself and ends what it left behind.
// It reports whether nothing is left.
func (s *supervisor) childEnded(c *child) bool {
	s.main = nil
	if c != nil {
		s.ending.ended = true
		if c.state != nil {
			s.ending.status, _ = c.state.Sys().(syscall.WaitStatus)
		}
		s.stoppedFromOutside()
	}
	if left := s.w.tree.orphans(); len(left) == 0 || (s.keep && !s.told) {
		return true
	}
	if !s.told {
		s.ending.left = s.w.tree.signal(syscall.SIGTERM)
		s.told = true
		s.timer.Reset(s.w.grace)
	}
	return false
}

// stoppedFromOutside tells a workload that died by itself from one that was
// killed along with the wrapper: schedulers signal every process of a step, and
// the workload's end may be seen before the wrapper's own signal.
func (s *supervisor) stoppedFromOutside() {
	st := s.ending.status
	if s.told || !st.Signaled() {
		return
	}
	switch st.Signal() {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP:
	default:
		return
	}
	select {
	case sig := <-s.w.options.Signals:
		s.ending.stopped, s.w.stopped = sig, sig
		if n, ok := sig.(syscall.Signal); ok {
			s.w.passedOn[n] = true // by whoever sent it
		}
	case <-time.After(100 * time.Millisecond):
	}
}

// treeChanged reaps, and reports whether nothing is left.
func (s *supervisor) treeChanged() bool {
	left := s.w.tree.orphans()
	if s.main == nil && len(left) == 0 {
		return true
	}
	if s.killing > 0 {
		s.w.tree.signal(syscall.SIGKILL) // what was forked meanwhile
	}
	return false
}

// stop passes a signal on, each once. The first one starts the grace.
func (s *supervisor) stop(sig os.Signal) {
	n, ok := sig.(syscall.Signal)
	if !ok {
		n = stopSignal
	}
	if s.w.passedOn[n] { // who cancels may say so twice
		s.w.note("received %s again", signame.Of(sig))
		return
	}
	s.w.passedOn[n] = true
	s.w.note("received %s, passed on", signame.Of(sig))
	s.w.stopped = sig
	if s.main != nil && s.ending.stopped == nil && !s.ending.timedOut {
		s.ending.stopped = sig
	}
	s.w.tree.signal(n)
	if !s.told {
		s.told = true
		s.timer.Reset(s.w.grace)
	}
}

// escalate acts when the timer runs out: the time limit, the grace, or a round
// of KILL. It reports whether there is nothing more to do.
func (s *supervisor) escalate() bool {
	switch {
	case !s.told && s.creditStopped():
		return false
	case !s.told:
		s.ending.timedOut, s.ending.quiet = true, s.w.quiet()
		s.told = true
		s.w.tree.signal(syscall.SIGTERM)
		s.timer.Reset(s.w.grace)
		return false
	case s.killing == killRounds:
		s.ending.immortal = max(len(s.w.tree.orphans()), 1)
		return true
	}
	s.killing++
	s.ending.killed = s.ending.killed || s.main != nil
	s.w.tree.signal(syscall.SIGKILL)
	s.timer.Reset(time.Second)
	return false
}

// creditStopped adds the time that the wrapper was stopped, and its workload with
// it, to the time limit.
func (s *supervisor) creditStopped() bool {
	more := s.w.pulse.stoppedFor(time.Now()) - s.begun - s.credited
	if more <= 0 {
		return false
	}
	s.credited += more
	s.w.note("stopped for %s, which does not count towards the time limit", phrase.Seconds(more.Seconds()))
	s.timer.Reset(more)
	return true
}

// sweep ends what is left after everything that was to run has run.
func (w *wrapper) sweep(ctx context.Context) {
	w.tree.spareNone()
	w.noteLeft(w.watch(context.WithoutCancel(ctx), nil, 0, nil))
}

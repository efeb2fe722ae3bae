package rank

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

// awaitReady waits until rank 0 is ready, where the job asks for that. It reports
// false when the workload must not start. The time is neither the workload's nor does
// it count against its limit.
func (w *wrapper) awaitReady(ctx context.Context, p *prepared) bool {
	if !w.meets() || w.rank == 0 {
		return true
	}
	began := time.Now()
	defer func() { w.waited = time.Since(began) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan wait, 1)
	go func() { answer <- w.waitForRoot(ctx) }()
	var seen wait
	select {
	case seen = <-answer:
		if ctx.Err() != nil {
			w.stopped = stopSignal
		}
	case w.stopped = <-w.options.Signals:
	}
	if w.stopped != nil {
		w.stopBeforeStart()
		return false
	}
	return w.begins(seen, p, time.Since(began))
}

// wait is what a wait for rank 0 came to.
type wait struct {
	state State
	over  bool  // the time is over
	err   error // of the last question, when it could not be asked
}

// waitForRoot asks how far rank 0 is until it is ready, or has ended, or the time is
// over. The time that a rank takes to begin, as for an image that is not there yet,
// is none that it takes to be ready.
func (w *wrapper) waitForRoot(ctx context.Context) wait {
	limit := time.Duration(w.attempt.Job.Ready.TimeoutSeconds) * time.Second
	deadline := time.Now().Add(max(limit, w.options.RootWait))
	last, begun := wait{}, false
	for p := newPauses(lookPauseMax); ; {
		asked := time.Now()
		s, err := w.meeting().Ask(ctx, 0)
		if last.err = err; err == nil {
			last.state = s
		}
		if last.state.Stage >= StageReady || ctx.Err() != nil {
			return last
		}
		if !begun && last.state.Stage == StageBegun {
			begun, deadline = true, time.Now().Add(limit)
		}
		left := time.Until(deadline)
		if left <= 0 {
			last.over = true
			return last
		}
		if p.next = min(p.next, left); !p.wait(ctx, time.Since(asked)) {
			return last
		}
	}
}

// begins says whether the workload may begin, and refuses it where it may not.
func (w *wrapper) begins(seen wait, p *prepared, waited time.Duration) bool {
	s, root := seen.state, w.rootWords(seen.state)
	switch {
	case s.Stage >= StageDone:
		w.refuse(verdict.CodeRootEnded, int(exitcode.Error), "%s ended %s before the %s began", root, howEnded(s), w.role())
		return false
	case s.Stage == StageReady:
		w.note("%s is ready after %s", root, phrase.Seconds(waited.Seconds()))
		w.learnRoot(p, s.Node)
		return true
	}
	limit := w.attempt.Job.Ready.TimeoutSeconds
	why := fmt.Sprintf("%s was not ready within %d s (%s)", root, limit, w.awaited())
	if s.Stage == StageUnknown {
		why = fmt.Sprintf("%s did not begin within %g s", root, max(time.Duration(limit)*time.Second, w.options.RootWait).Seconds())
	}
	if s.Note != "" {
		why += ": " + s.Note
	}
	if seen.err != nil {
		why += fmt.Sprintf("; it could not be asked: %v", seen.err)
	}
	w.refuse(verdict.CodeRootNotReady, int(exitcode.Error), "%s", why)
	return false
}

// awaited says what rank 0 is to be ready by.
func (w *wrapper) awaited() string {
	r := *w.attempt.Job.Ready
	port := r.Port
	if port == 0 {
		port, _ = strconv.Atoi(w.masterPort()) // it is made of a number
	}
	return whatReady(r, port)
}

// rootWords is how messages call rank 0.
func (w *wrapper) rootWords(s State) string {
	who := "the root"
	if w.attempt.Job.Scope == scopePair {
		who = "the server"
	}
	node := s.Node
	if node == "" {
		node = w.nodeOf(0)
	}
	if node == "" {
		node = w.options.MasterAddr
	}
	return who + " on " + node
}

func howEnded(s State) string {
	switch s.Outcome {
	case evidence.OutcomeExited:
		return fmt.Sprintf("with exit code %d", s.ExitCode)
	case evidence.OutcomeSignaled:
		return fmt.Sprintf("by a signal (exit code %d)", s.ExitCode)
	case evidence.OutcomeTimedOut:
		return "at its time limit"
	case evidence.OutcomeStopped:
		return "because it was told to stop"
	case evidence.OutcomeRefused:
		return "without having been started"
	case evidence.OutcomeReleased:
		return "because all whom it served had ended"
	case evidence.OutcomeUnknown:
		return "without a record of how"
	}
	return fmt.Sprintf("as %v", s.Outcome)
}

// learnRoot gives the workload the name of the node of rank 0, where only rank 0
// itself could tell it.
func (w *wrapper) learnRoot(p *prepared, node string) {
	if node == "" || w.nodeOf(0) != "" {
		return
	}
	v := newVariables(p.env)
	v.set("ASSAY_ROOT_NODE", node)
	switch w.attempt.Job.Scope {
	case scopePair:
		v.set("ASSAY_PEER_NODE", node)
		v.set("BURNIN_PEER_NODE", node)
	case scopeGroup:
		v.set("BURNIN_ROOT_NODE", node)
	}
	p.env = v.list()
}

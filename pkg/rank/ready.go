package rank

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"assay/pkg/exitcode"
	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// The pauses between two looks at something that others change.
const (
	lookPause    = 10 * time.Millisecond  // after the first one
	lookPauseMax = 500 * time.Millisecond // at most
)

// pauses wait longer and longer, and never long in comparison with what a look costs.
type pauses struct{ next, most time.Duration }

func newPauses(most time.Duration) *pauses { return &pauses{next: lookPause, most: most} }

// wait reports false when ctx has ended.
func (p *pauses) wait(ctx context.Context, lookTook time.Duration) bool {
	timer := time.NewTimer(max(p.next, min(20*lookTook, lookPauseMax)))
	defer timer.Stop()
	p.next = min(2*p.next, p.most)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// readiness is how rank 0 sees that the others may begin.
type readiness struct {
	spec plan.Ready
	port int

	before   map[string]bool // sockets that listened on the port before anything of the rank ran
	line     *regexp.Regexp  // that a line of output has to match
	path     string          // of the file that its workload makes
	matched  chan struct{}   // closed when a line has matched
	matching sync.Once
	found    atomic.Bool // matched is closed
}

// watchForReady prepares rank 0 of a pair or group to see when the others may begin.
// Nothing of it has run yet. It reports false when the workload must not start.
func (w *wrapper) watchForReady(ctx context.Context) bool {
	if !w.meets() || w.rank != 0 {
		return true
	}
	r := &readiness{spec: *w.attempt.Job.Ready, matched: make(chan struct{}), path: w.file(rundir.ReadyFile)}
	switch r.spec.Kind {
	case plan.ReadyStarted, plan.ReadyFile:
	case plan.ReadyTCP:
		if r.port = r.spec.Port; r.port == 0 {
			r.port, _ = strconv.Atoi(w.masterPort()) // it is made of a number
		}
		r.before = listening(procNet, r.port)
		if len(r.before) > 0 {
			note := fmt.Sprintf("something else listened on port %d before its workload began, and does not count", r.port)
			w.note("%s", note)
			w.tell(ctx, State{Stage: StageBegun, Note: note})
		}
	case plan.ReadyLine:
		var err error
		if r.line, err = regexp.Compile(r.spec.Pattern); err != nil {
			w.refuse(verdict.CodeLaunchRefused, int(exitcode.Invalid), "ready: %q is no regular expression: %v", r.spec.Pattern, err)
			return false
		}
	default:
		w.refuse(verdict.CodeLaunchRefused, int(exitcode.Invalid), "ready: the kind %q is not known to this assay", r.spec.Kind)
		return false
	}
	w.ready = r
	return true
}

// listenFor looks for the line in what a stream says, as it comes. It returns nil
// when there is no line to look for.
func (r *readiness) listenFor() func([]byte) {
	if r == nil || r.line == nil {
		return nil
	}
	var carry []byte // beginning of a line whose end has not come yet
	return func(chunk []byte) {
		for !r.found.Load() {
			i := bytes.IndexByte(chunk, '\n')
			if i < 0 {
				if len(carry)+len(chunk) <= maxLine {
					carry = append(carry, chunk...)
				}
				return
			}
			line := chunk[:i]
			if len(carry) > 0 {
				carry = append(carry, line...)
				line = carry
			}
			if r.line.Match(bytes.TrimSuffix(line, []byte("\r"))) {
				r.found.Store(true)
				r.matching.Do(func() { close(r.matched) })
			}
			carry, chunk = carry[:0], chunk[i+1:]
		}
	}
}

// await returns when the others may begin, with true, or when ctx has ended.
func (r *readiness) await(ctx context.Context) bool {
	var seen func() bool
	switch r.spec.Kind {
	case plan.ReadyStarted:
		return ctx.Err() == nil
	case plan.ReadyLine:
		select {
		case <-r.matched:
			return true
		case <-ctx.Done():
			return false
		}
	case plan.ReadyTCP:
		seen = r.listens
	default:
		seen = func() bool {
			_, err := os.Stat(r.path)
			return err == nil
		}
	}
	for p := newPauses(lookPauseMax / 5); ; {
		began := time.Now()
		if seen() {
			return true
		}
		if !p.wait(ctx, time.Since(began)) {
			return false
		}
	}
}

// listens reports whether something listens on the port that did not before.
func (r *readiness) listens() bool {
	for socket := range listening(procNet, r.port) {
		if !r.before[socket] {
			return true
		}
	}
	return false
}

// announce lets the others begin once this rank is ready for them.
func (w *wrapper) announce(ctx context.Context) {
	began := time.Now()
	if w.ready == nil || !w.ready.await(ctx) {
		return
	}
	w.note("ready for the other ranks (%s) after %s", w.ready.what(), phrase.Seconds(time.Since(began).Seconds()))
	w.tell(ctx, State{Stage: StageReady})
}

// what says what is waited for.
func (r *readiness) what() string { return whatReady(r.spec, r.port) }

func whatReady(r plan.Ready, port int) string {
	switch r.Kind {
	case plan.ReadyTCP:
		return fmt.Sprintf("tcp:%d", port)
	case plan.ReadyLine:
		return "line:" + r.Pattern
	}
	return r.Kind
}

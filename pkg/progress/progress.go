// Package progress shows a run while it goes on: a live line a job on a
// terminal, plain lines in a pipe.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/report"
	"assay/pkg/run"
)

// Options say where and how progress is shown.
type Options struct {
	Out   io.Writer
	Live  bool // Out is a terminal that understands escapes: redraw one line a job
	Color bool
	Width int  // columns of the terminal; 0 means 80
	Tail  bool // print the ranks' output as it comes; no live lines then
	Quiet bool // print nothing but the ranks' output
}

// Printer shows the events of a run. Its methods may be called from several
// goroutines.
type Printer struct {
	opt  Options
	mu   sync.Mutex
	jobs []*jobLine // the active ones, in the order of their submission
	rows int        // live rows on the screen
	stop chan struct{}
	done sync.WaitGroup
}

// interval is how often live lines and the ranks' output are brought up to date.
// There is no event for either: the ranks may write on another machine.
const interval = 250 * time.Millisecond

// New returns a printer; Close ends it.
func New(opt Options) *Printer {
	if opt.Width == 0 {
		opt.Width = 80
	}
	p := &Printer{opt: opt, stop: make(chan struct{})}
	if p.opt.Live || p.opt.Tail {
		p.done.Go(p.refresh)
	}
	return p
}

// Close takes the live lines off the screen and ends the printer.
func (p *Printer) Close() {
	close(p.stop)
	p.done.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

func (p *Printer) live() bool { return p.opt.Live && !p.opt.Tail && !p.opt.Quiet }

func (p *Printer) refresh() {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		if p.opt.Tail {
			p.tailAll()
		}
		if p.live() {
			p.erase()
			p.draw()
		}
		p.mu.Unlock()
	}
}

// Event shows one step of the run.
func (p *Printer) Event(e run.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	switch e.Kind {
	case run.EventSubmitted:
		p.jobs = append(p.jobs, newJobLine(e))
		if !p.live() {
			verb := "running"
			if e.Queued {
				verb = "submitted"
			}
			p.say("%s: %s %s (%s)", phrase.Line(e.Job.ID), verb, phrase.Count(e.Job.WorldSize, "rank"), phrase.Line(e.Handle.ID))
		}
	case run.EventObserved:
		p.observed(e)
	case run.EventEnded:
		p.ended(e)
	case run.EventNotice:
		p.say("%s", phrase.Line(e.Text))
	case run.EventUnknown:
	}
	if p.live() {
		p.draw()
	}
}

// observed shows what the target says of a job that is in a queue of it.
func (p *Printer) observed(e run.Event) {
	i := slices.IndexFunc(p.jobs, func(j *jobLine) bool { return j.id == e.Job.ID })
	if i < 0 || !p.jobs[i].queued {
		return
	}
	if p.jobs[i].dir != e.Dir { // it was started again
		p.jobs[i] = newJobLine(e)
		p.jobs[i].queued = true
	}
	state := plainly(e.Seen.Word)
	switch {
	case e.Seen.Phase == evidence.PhaseEnding:
		state = "ending"
	case state == "":
		state = e.Seen.Phase.String()
	}
	if e.Seen.Nodes != "" {
		state += " on " + e.Seen.Nodes
	}
	if e.Seen.Detail != "" {
		state += ", " + e.Seen.Detail
	}
	if state == p.jobs[i].state {
		return
	}
	p.jobs[i].state = state
	if !p.live() {
		p.say("%s: %s", phrase.Line(e.Job.ID), phrase.Line(state))
	}
}

// plainly writes a target's word as part of a sentence, unless it is several in one,
// such as ErrImagePull, by which people look for help.
func plainly(word string) string {
	low := strings.ToLower(word)
	if word == strings.ToUpper(word) || word[1:] == low[1:] {
		return low
	}
	return word
}

func (p *Printer) ended(e run.Event) {
	if i := slices.IndexFunc(p.jobs, func(j *jobLine) bool { return j.id == e.Job.ID }); i >= 0 {
		if p.opt.Tail {
			p.tailRest(p.jobs[i])
		}
		p.jobs = slices.Delete(p.jobs, i, i+1)
	}
	word := e.Result.Verdict
	line := phrase.Line(e.Job.ID) + ": " + report.Paint(word.String(), word, p.opt.Color)
	if e.Result.ElapsedSeconds > 0 {
		line += " after " + phrase.Seconds(e.Result.ElapsedSeconds)
	}
	switch {
	case len(e.Result.Reasons) > 0:
		line += ": " + phrase.Line(e.Result.Reasons[0].Message)
	case len(e.Result.Warnings) > 0:
		line += ", with a warning: " + phrase.Line(e.Result.Warnings[0].Message)
	}
	p.say("%s", line)
}

// say prints a line. What others wrote has to be clean.
func (p *Printer) say(format string, args ...any) {
	if !p.opt.Quiet {
		fmt.Fprintf(p.opt.Out, format+"\n", args...)
	}
}

// erase takes the live lines off the screen.
func (p *Printer) erase() {
	if p.rows > 0 {
		fmt.Fprintf(p.opt.Out, "\x1b[%dA\x1b[J", p.rows)
		p.rows = 0
	}
}

// mostLines is how many jobs are shown on the screen: lines that have scrolled away
// cannot be drawn again.
const mostLines = 12

// draw puts a line a job on the screen.
func (p *Printer) draw() {
	now := time.Now()
	for i, j := range p.jobs {
		if i == mostLines {
			fmt.Fprintf(p.opt.Out, "… and %s more\n", phrase.Count(len(p.jobs)-i, "job"))
			p.rows++
			return
		}
		line := j.text(now)
		if r := []rune(line); len(r) >= p.opt.Width {
			line = string(r[:p.opt.Width-1])
		}
		fmt.Fprintln(p.opt.Out, line)
		p.rows++
	}
}

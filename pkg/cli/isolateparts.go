package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"assay/deploy"
	"assay/pkg/report"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// batches divides the sets of a step into those that may run at the same time: as many
// as the user says, else both halves where the first run had a limit of nodes under
// load, several jobs at once, or a queue; and never more nodes than that limit.
func (s *isolation) batches(sets [][]string) [][][]string {
	most, nodes := s.of.Ledger.Concurrency, s.of.Ledger.MaxNodes
	q, ok := s.target.(deploy.Queue)
	switch {
	case s.flags.jobsSet:
		most = s.flags.jobs
	case nodes > 0, ok && q.Queues():
		most = len(sets)
	}
	var out [][][]string
	load := 0
	for _, set := range sets {
		last := len(out) - 1
		if last < 0 || len(out[last]) >= max(1, most) || nodes > 0 && load+len(set) > nodes {
			out, load, last = append(out, nil), 0, len(out)
		}
		out[last] = append(out[last], set)
		load += len(set)
	}
	return out
}

// runParts makes a run of each set and drives them at the same time.
func (s *isolation) runParts(ctx context.Context, sets [][]string, signals <-chan os.Signal) (os.Signal, error) {
	runs := make([]*rundir.Run, 0, len(sets))
	for _, set := range sets {
		r, err := s.create(ctx, set)
		if err != nil {
			return nil, errors.Join(err, undo(runs))
		}
		runs = append(runs, r)
	}
	drives := make([]driven, len(runs))
	each := make([]chan os.Signal, len(runs))
	var wg sync.WaitGroup
	for i, r := range runs {
		each[i] = make(chan os.Signal, 2)
		wg.Go(func() { drives[i] = s.drivePart(ctx, r, each[i]) })
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	var stopped os.Signal
	for done := false; !done; {
		select {
		case sig := <-signals:
			if stopped == nil {
				stopped = sig
			}
			for _, c := range each {
				select {
				case c <- sig:
				default: // it has had two already
				}
			}
		case <-ended:
			done = true
		}
	}
	var errs []error
	for i, d := range drives {
		errs = append(errs, d.err)
		if d.said != "" {
			fmt.Fprintf(s.Err, "assay: run %s: %s\n", runs[i].Ledger.RunID, d.said)
		}
		if d.report != nil {
			s.learn(sets[i], *d.report)
		}
	}
	return stopped, errors.Join(errs...)
}

// driven is how the drive of a part ended.
type driven struct {
	report *report.Run // nil when it has not been judged
	said   string      // what a signal did to it; empty: there was none
	err    error
}

// undo removes runs of which nothing was run, because another of the same step could
// not be made.
func undo(runs []*rundir.Run) error {
	var errs []error
	for _, r := range runs {
		errs = append(errs, run.Unclaim(r), os.RemoveAll(r.Dir))
	}
	return errors.Join(errs...)
}

// create makes the run of a set of nodes, with the next id that is free.
func (s *isolation) create(ctx context.Context, nodes []string) (*rundir.Run, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	var timeout *int
	if s.flags.timeoutSet {
		timeout = &s.flags.timeout
	}
	p, err := s.group.Prepare(ctx, s.Env, nodes, timeout)
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	for ; ; s.next++ {
		id := fmt.Sprintf("%s-isolate-%d", s.of.Ledger.RunID, s.next)
		if _, err := os.Lstat(filepath.Join(filepath.Dir(s.of.Dir), id)); err == nil {
			continue // of an earlier search
		}
		s.next++
		r, err := p.Create(ctx, run.Settings{
			Runs: filepath.Dir(s.of.Dir), Concurrency: 1, Shared: s.of.Ledger.Shared, RunID: id, Force: s.flags.force, Now: time.Now(),
		}, s.target)
		return r, interrupted(ctx, err)
	}
}

// drivePart takes the run of a part to its end.
func (s *isolation) drivePart(ctx context.Context, r *rundir.Run, signals <-chan os.Signal) driven {
	unlock, err := r.Lock()
	if err != nil {
		return driven{err: err}
	}
	defer unlock()
	d := run.Driver{Run: r, Target: s.target, Signals: signals, OnEvent: func(e run.Event) {
		if e.Kind == run.EventNotice {
			s.notice(fmt.Sprintf("run %s: %s", r.Ledger.RunID, e.Text))
		}
	}}
	outcome, err := d.Drive(ctx)
	rep, ferr := run.Finish(r, s.notice)
	out := driven{report: &rep, err: errors.Join(err, ferr)}
	if outcome.Signal != nil {
		out.said = outcome.Describe(rep, s.nameOf(r))
	}
	return out
}

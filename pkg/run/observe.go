package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/hostlist"
	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// lackingAfter is how often a target is asked without what it takes to ask it.
const lackingAfter = 3

// observe asks the target about all active jobs at once, and finishes those that
// have ended. A signal cuts the question short.
func (d *Driver) observe(ctx context.Context, f *flight) (ended, stop bool) {
	seen, sig, err := d.askTarget(ctx, f)
	if sig != nil {
		return true, d.onSignal(f, sig)
	}
	if err != nil {
		f.failures++
		d.notice("target %s could not be asked (%d in a row): %s", d.Target.Name(), f.failures, deploy.Said(err))
		if errors.Is(err, deploy.ErrNoTool) && f.failures >= lackingAfter { // it does not come by waiting
			f.errs = append(f.errs, fmt.Errorf("target %s cannot be asked from here: %s", d.Target.Name(), deploy.Said(err)))
			return false, true
		}
		return false, ctx.Err() != nil
	}
	f.failures = 0
	var still []activeJob
	for i, a := range f.active {
		d.keep(f, &a, seen[i])
		if !seen[i].Phase.Over() {
			d.tell(&a, seen[i])
			d.heedPending(ctx, f, &a, seen[i])
			still = append(still, a)
			continue
		}
		ended = true
		j, err := d.conclude(f, f.order.entries[a.attempt.Job.ID])
		d.failed(f, err)
		if err == nil {
			if err := clean(ctx, d.Target, a.attempt, a.handle, j); err != nil {
				d.notice("%v", err)
			}
		}
	}
	f.active = still
	return ended, false
}

// askTarget asks about all active jobs, unless a signal comes.
func (d *Driver) askTarget(ctx context.Context, f *flight) ([]evidence.Observation, os.Signal, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		seen []evidence.Observation
		err  error
	}
	done := make(chan answer, 1)
	handles := f.handles()
	go func() {
		seen, err := d.Target.Observe(ctx, handles)
		done <- answer{seen, err}
	}()
	select {
	case a := <-done:
		return a.seen, nil, a.err
	case sig := <-d.Signals:
		cancel()
		<-done
		return nil, sig, nil
	}
}

// keep writes down what the target said of a job, beside the start that it is
// about.
func (d *Driver) keep(f *flight, a *activeJob, o evidence.Observation) {
	attempt, err := newestStart(a.attempt, o)
	if err == nil {
		a.attempt = attempt
		err = d.Run.AppendObservation(attempt.Dir, o)
	}
	if err != nil && !a.unkept {
		a.unkept = true // one complaint a job is enough
		d.failed(f, fmt.Errorf("job %s: what the target said could not be kept: %w", a.attempt.Job.ID, err))
	}
}

// tell passes on what is new in what the target said of a job.
func (d *Driver) tell(a *activeJob, o evidence.Observation) {
	if o.Phase != evidence.PhaseUnknown && !o.Same(a.seen) {
		a.seen = o
		d.event(Event{Kind: EventObserved, Job: &a.attempt.Job, Dir: a.attempt.Dir, Seen: o})
	}
}

// newestStart is the attempt that an observation is about: the scheduler may have
// started the job again.
func newestStart(a plan.Attempt, o evidence.Observation) (plan.Attempt, error) {
	if next := a.Restart(o.Restarts); next.Number <= a.Number {
		return a, nil
	}
	return rundir.MakeRestart(a, o.Restarts)
}

// awayLimit is how long a job waits for the nodes that the run names while they take no
// jobs: long enough for one that only lost its connection. A node that is merely busy is
// waited for without a limit.
const awayLimit = time.Minute

// heedPending gives a job up that has waited for longer than it may.
func (d *Driver) heedPending(ctx context.Context, f *flight, a *activeJob, o evidence.Observation) {
	job := a.attempt.Job
	waits := o.Phase == evidence.PhasePending
	waited := since(&a.pending, waits)
	away := since(&a.away, waits && o.Away && len(job.Nodes) > 0)
	limit := time.Duration(job.MaxPendingSeconds) * time.Second
	if a.givenUp || f.stopping {
		return
	}
	switch {
	case limit > 0 && waits && waited >= limit:
		d.endWait(ctx, f, a, fmt.Sprintf("it had waited for %s, the limit of max_pending", phrase.Seconds(limit.Seconds())), o)
	case away >= awayLimit:
		d.endWait(ctx, f, a, fmt.Sprintf("it had waited for %s for nodes that take no jobs, of %s", phrase.Seconds(awayLimit.Seconds()), hostlist.Compress(job.Nodes)), o)
	}
}

// since counts how long something has been so without a break. begun is when that was
// seen first, zero while it is not so.
func since(begun *time.Time, is bool) time.Duration {
	switch {
	case !is:
		*begun = time.Time{}
		return 0
	case begun.IsZero():
		*begun = time.Now()
	}
	return time.Since(*begun)
}

// endWait ends a job that waits.
func (d *Driver) endWait(ctx context.Context, f *flight, a *activeJob, why string, o evidence.Observation) {
	if err := d.Target.Cancel(ctx, a.handle); err != nil {
		d.notice("job %s has waited too long and could not be cancelled: %v", a.attempt.Job.ID, err)
		return
	}
	a.givenUp = true
	why += fmt.Sprintf("; %s said %s", o.Source, o.Word)
	if o.Detail != "" {
		why += " (" + o.Detail + ")"
	}
	d.failed(f, d.refuse(a.attempt, verdict.CodeLaunchPending, why, &a.handle))
}

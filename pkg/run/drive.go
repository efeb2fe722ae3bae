package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// Event is one step of a run, for whoever shows progress.
type Event struct {
	Kind   EventKind
	Job    *plan.Job
	Dir    string               // attempt directory
	Handle deploy.Handle        // Submitted
	Queued bool                 // Submitted: the job waits in a queue of the target
	Seen   evidence.Observation // Observed
	Result *report.Job          // Ended
	Text   string               // Notice
}

// EventKind tells events apart.
type EventKind int

// The kinds of event.
const (
	EventUnknown EventKind = iota
	EventSubmitted
	EventObserved // the target says something new of a job that has not ended
	EventEnded
	EventNotice // something a person should know
)

// Driver takes the jobs of a run from the ledger to their verdicts. It holds the
// run's lock.
type Driver struct {
	Run     *rundir.Run
	Target  deploy.Target
	Signals <-chan os.Signal // the first cancels the jobs, the second detaches
	OnEvent func(Event)
}

// Outcome says how a drive ended.
type Outcome struct {
	Signal   os.Signal // the first signal that came, nil when none did
	Detached bool      // jobs may still run
	Running  int       // jobs that had not ended
}

// flight is the state of a drive.
type flight struct {
	queue    []rundir.Entry
	active   []activeJob
	cancel   *evidence.Cancel // asked for by a signal
	stopping bool
	outcome  Outcome
	failures int     // consecutive failures to ask the target
	errs     []error // what went wrong and did not end the drive

	unsubmitted int       // consecutive submissions that the target could not take
	submitAt    time.Time // none is tried before
}

type activeJob struct {
	attempt plan.Attempt // of the newest start
	handle  deploy.Handle
	seen    evidence.Observation // the last that was told
	unkept  bool                 // an observation could not be kept, which was told
	pending time.Time            // since when it has been seen to wait, zero when it does not
	givenUp bool                 // it waited too long and was told to stop
}

// Drive submits what is planned, at most Concurrency jobs at once, and returns
// when every job has ended, or a second signal came, or ctx ended. It picks up a
// run that another process left, wherever that process ended. What goes wrong
// with one job, or with keeping a record, is told and returned at the end; it
// does not keep the driver from the other jobs.
func (d *Driver) Drive(ctx context.Context) (Outcome, error) {
	f := &flight{}
	if err := d.resume(ctx, f); err != nil {
		return f.outcome, err
	}
	for {
		d.heedCancel(ctx, f)
		stop := d.fill(ctx, f)
		// Whoever cancels from outside reads the handles after writing the request: a
		// job that was submitted meanwhile is seen there, or the request is seen here.
		d.heedCancel(ctx, f)
		if len(f.active) == 0 && len(f.queue) == 0 {
			return f.outcome, errors.Join(f.errs...)
		}
		ended := false
		if !stop && len(f.active) > 0 {
			ended, stop = d.observe(ctx, f)
		}
		if !ended && !stop {
			stop = d.wait(ctx, f)
		}
		if stop {
			f.outcome.Running = len(f.active)
			return f.outcome, errors.Join(append(f.errs, ctx.Err())...)
		}
	}
}

// failed keeps an error for the end of the drive, and tells it now.
func (d *Driver) failed(f *flight, err error) {
	if err != nil {
		f.errs = append(f.errs, err)
		d.notice("%v", err)
	}
}

// heedCancel acts on a request to end the run, once: first the jobs that run are
// told to stop, then the others are dropped.
func (d *Driver) heedCancel(ctx context.Context, f *flight) {
	if f.stopping {
		return
	}
	c, err := d.Run.ReadCancel()
	d.failed(f, err)
	if c == nil {
		c = f.cancel // it could not be written down
	}
	if c == nil {
		return
	}
	f.stopping = true
	d.cancelAll(ctx, f.active)
	for _, e := range f.queue {
		d.failed(f, d.drop(e, c.By))
	}
	f.queue = nil
}

// cancelsAtOnce bounds how many jobs are told to stop at the same time.
const cancelsAtOnce = 8

// cancelAll tells jobs to stop.
func (d *Driver) cancelAll(ctx context.Context, jobs []activeJob) {
	var wg sync.WaitGroup
	room := make(chan struct{}, cancelsAtOnce)
	errs := make([]error, len(jobs))
	for i, a := range jobs {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			errs[i] = d.Target.Cancel(ctx, a.handle)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			d.notice("job %s could not be cancelled: %v", jobs[i].attempt.Job.ID, err)
		}
	}
}

// drop records that a job will not be submitted.
func (d *Driver) drop(e rundir.Entry, by string) error {
	_, dir, err := lastAttempt(d.Run, e)
	if err != nil {
		return err
	}
	if err := d.Run.WriteLaunch(dir, rundir.LaunchRecord{Launch: evidence.Launch{
		State: evidence.LaunchDropped, Detail: "the run was cancelled by " + by + " before the job was submitted",
	}}); err != nil {
		return err
	}
	return d.finish(e)
}

// fill submits jobs until enough of them run. Between two of them a signal is
// heeded. stop says that the driver shall leave the jobs alone and return.
func (d *Driver) fill(ctx context.Context, f *flight) (stop bool) {
	for len(f.queue) > 0 && len(f.active) < d.Run.Ledger.Concurrency && !f.stopping && !time.Now().Before(f.submitAt) {
		e := f.queue[0]
		f.queue = f.queue[1:]
		d.failed(f, d.launch(ctx, f, e))
		select {
		case sig := <-d.Signals:
			return d.onSignal(f, sig)
		default:
		}
		if f.cancel != nil || ctx.Err() != nil {
			break
		}
	}
	return ctx.Err() != nil
}

// submitTries is how often a target that cannot be reached is asked to take a
// job: with the pauses between, for about three minutes.
const submitTries = 10

// launch submits one job and takes it on, or finishes it when it was refused.
func (d *Driver) launch(ctx context.Context, f *flight, e rundir.Entry) error {
	a, _, err := lastAttempt(d.Run, e)
	if err != nil {
		return err
	}
	intent := rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}
	if err := d.Run.WriteLaunch(a.Dir, intent); err != nil {
		return fmt.Errorf("job %s was not submitted: %w", e.ID, err)
	}
	h, err := d.Target.Submit(ctx, a)
	switch {
	case errors.Is(err, deploy.ErrAmbiguous):
		return d.ask(ctx, f, e, a, err)
	case errors.Is(err, deploy.ErrUnavailable) && f.unsubmitted+1 < submitTries:
		f.unsubmitted++
		f.submitAt = time.Now().Add(pause(f.unsubmitted))
		f.queue = append([]rundir.Entry{e}, f.queue...)
		d.notice("job %s could not be submitted yet (%d in a row): %v", e.ID, f.unsubmitted, err)
		return nil
	case err != nil:
		return errors.Join(d.refuse(a, verdict.CodeLaunchRefused, saidBy(err), nil), d.finish(e))
	}
	f.unsubmitted = 0
	d.adopt(f, a, h)
	return d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h})
}

// saidBy is what the target said, without the kind of error that it is.
func saidBy(err error) string {
	return strings.TrimPrefix(err.Error(), deploy.ErrRefused.Error()+": ")
}

// ask resolves an ambiguous answer to a submission: by asking for the job, never
// by submitting it again, for it may still appear.
func (d *Driver) ask(ctx context.Context, f *flight, e rundir.Entry, a plan.Attempt, ambiguous error) error {
	d.notice("job %s: %v", e.ID, ambiguous)
	h, found, err := findJob(ctx, d.Run, d.Target, a)
	switch {
	case err != nil:
		return err
	case found:
		d.adopt(f, a, h)
		return nil
	}
	why := fmt.Sprintf("%v; the target knows no such job, and it is not submitted again because it may still appear", ambiguous)
	return errors.Join(d.refuse(a, verdict.CodeLaunchRefused, why, nil), d.finish(e))
}

// refuse records that a job was not launched; h is what there is of it all the
// same.
func (d *Driver) refuse(a plan.Attempt, code, why string, h *deploy.Handle) error {
	return d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{
		Launch: evidence.Launch{State: evidence.LaunchRefused, Code: code, Detail: why}, Handle: h,
	})
}

// observe asks the target about all active jobs at once, and finishes those that
// have ended. A signal cuts the question short.
func (d *Driver) observe(ctx context.Context, f *flight) (ended, stop bool) {
	seen, sig, err := d.askTarget(ctx, f)
	if sig != nil {
		return true, d.onSignal(f, sig)
	}
	if err != nil {
		f.failures++
		d.notice("target %s could not be asked (%d in a row): %v", d.Target.Name(), f.failures, err)
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
		d.failed(f, d.finish(rundir.Entry{ID: a.attempt.Job.ID, Key: a.attempt.Job.Key}))
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

// heedPending gives a job up that has waited for longer than it may.
func (d *Driver) heedPending(ctx context.Context, f *flight, a *activeJob, o evidence.Observation) {
	limit := time.Duration(a.attempt.Job.MaxPendingSeconds) * time.Second
	if o.Phase != evidence.PhasePending {
		a.pending = time.Time{}
		return
	}
	if a.pending.IsZero() {
		a.pending = time.Now()
	}
	if limit == 0 || a.givenUp || f.stopping || time.Since(a.pending) < limit {
		return
	}
	if err := d.Target.Cancel(ctx, a.handle); err != nil {
		d.notice("job %s has waited too long and could not be cancelled: %v", a.attempt.Job.ID, err)
		return
	}
	a.givenUp = true
	why := fmt.Sprintf("it had waited for %s, the limit of max_pending; %s said %s", phrase.Seconds(limit.Seconds()), o.Source, o.Word)
	if o.Detail != "" {
		why += " (" + o.Detail + ")"
	}
	d.failed(f, d.refuse(a.attempt, verdict.CodeLaunchPending, why, &a.handle))
}

func (f *flight) handles() []deploy.Handle {
	handles := make([]deploy.Handle, len(f.active))
	for i, a := range f.active {
		handles[i] = a.handle
	}
	return handles
}

// finish judges a job and keeps the verdict beside its evidence.
func (d *Driver) finish(e rundir.Entry) error {
	j := judgeJob(d.Run, e)
	d.event(Event{Kind: EventEnded, Job: &plan.Job{ID: e.ID, Key: e.Key}, Result: &j})
	return writeJobVerdict(d.Run, j)
}

func (d *Driver) event(e Event) {
	if d.OnEvent != nil {
		d.OnEvent(e)
	}
}

func (d *Driver) notice(format string, args ...any) {
	d.event(Event{Kind: EventNotice, Text: fmt.Sprintf(format, args...)})
}

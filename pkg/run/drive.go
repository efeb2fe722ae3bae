package run

import (
	"context"
	"errors"
	"fmt"
	"os"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// Event is one step of a run, for whoever shows progress.
type Event struct {
	Kind   EventKind
	Job    *plan.Job
	Dir    string        // attempt directory
	Handle deploy.Handle // Submitted
	Result *report.Job   // Ended
	Text   string        // Notice
}

// EventKind tells events apart.
type EventKind int

// The kinds of event.
const (
	EventUnknown EventKind = iota
	EventSubmitted
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
}

type activeJob struct {
	attempt plan.Attempt
	handle  deploy.Handle
	unkept  bool // an observation could not be kept, which was told
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
		d.fill(ctx, f)
		// Whoever cancels from outside reads the handles after writing the request: a
		// job that was submitted meanwhile is seen there, or the request is seen here.
		d.heedCancel(ctx, f)
		if len(f.active) == 0 {
			return f.outcome, errors.Join(f.errs...)
		}
		if d.observe(ctx, f) {
			continue
		}
		if d.wait(ctx, f) {
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
	for _, a := range f.active {
		if err := d.Target.Cancel(ctx, a.handle); err != nil {
			d.notice("job %s could not be cancelled: %v", a.attempt.Job.ID, err)
		}
	}
	for _, e := range f.queue {
		d.failed(f, d.drop(e, c.By))
	}
	f.queue = nil
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

// fill submits jobs until enough of them run.
func (d *Driver) fill(ctx context.Context, f *flight) {
	for len(f.queue) > 0 && len(f.active) < d.Run.Ledger.Concurrency && !f.stopping {
		e := f.queue[0]
		f.queue = f.queue[1:]
		d.failed(f, d.launch(ctx, f, e))
	}
}

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
	case err != nil:
		return errors.Join(d.refuse(a, err.Error(), nil), d.finish(e))
	}
	d.adopt(f, a, h)
	return d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h})
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
	return errors.Join(d.refuse(a, why, nil), d.finish(e))
}

// refuse records that a job was not launched; h is what there is of it all the
// same.
func (d *Driver) refuse(a plan.Attempt, why string, h *deploy.Handle) error {
	return d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{
		Launch: evidence.Launch{State: evidence.LaunchRefused, Code: verdict.CodeLaunchRefused, Detail: why}, Handle: h,
	})
}

// observe asks the target about all active jobs at once, and finishes those that
// have ended.
func (d *Driver) observe(ctx context.Context, f *flight) (ended bool) {
	seen, err := d.Target.Observe(ctx, f.handles())
	if err != nil {
		f.failures++
		d.notice("target %s could not be asked (%d in a row): %v", d.Target.Name(), f.failures, err)
		return false
	}
	f.failures = 0
	var still []activeJob
	for i, a := range f.active {
		if seen[i].Phase != evidence.PhaseEnded {
			still = append(still, a)
		}
		if err := d.Run.AppendObservation(a.attempt.Dir, seen[i]); err != nil && !a.unkept {
			a.unkept = true // one complaint a job is enough
			d.failed(f, fmt.Errorf("job %s: what the target said could not be kept: %w", a.attempt.Job.ID, err))
		}
		if seen[i].Phase == evidence.PhaseEnded {
			ended = true
			d.failed(f, d.finish(rundir.Entry{ID: a.attempt.Job.ID, Key: a.attempt.Job.Key}))
		}
	}
	f.active = still
	return ended
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

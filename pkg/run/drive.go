package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/signame"
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
	Log     func(format string, args ...any) // details for --verbose
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
	stopping bool
	outcome  Outcome
	failures int // consecutive failures to ask the target
}

type activeJob struct {
	attempt plan.Attempt
	handle  deploy.Handle
}

// Drive submits what is planned, at most Concurrency jobs at once, and returns
// when every job has ended, or a second signal came, or ctx ended. It picks up a
// run that another process left, wherever that process ended.
func (d *Driver) Drive(ctx context.Context) (Outcome, error) {
	f := &flight{}
	if err := d.resume(ctx, f); err != nil {
		return f.outcome, err
	}
	for {
		if err := d.heedCancel(ctx, f); err != nil {
			return f.outcome, err
		}
		if err := d.fill(ctx, f); err != nil {
			return f.outcome, err
		}
		if len(f.active) == 0 {
			return f.outcome, nil
		}
		ended, err := d.observe(ctx, f)
		if err != nil {
			return f.outcome, err
		}
		if ended {
			continue
		}
		if stop, err := d.wait(ctx, f); stop || err != nil {
			f.outcome.Running = len(f.active)
			return f.outcome, err
		}
	}
}

// heedCancel acts on a request to end the run, once.
func (d *Driver) heedCancel(ctx context.Context, f *flight) error {
	if f.stopping {
		return nil
	}
	c, err := d.Run.ReadCancel()
	if err != nil || c == nil {
		return err
	}
	f.stopping = true
	for _, e := range f.queue {
		_, dir, err := lastAttempt(d.Run, e)
		if err != nil {
			return err
		}
		drop := rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchDropped, Detail: "the run was cancelled by " + c.By + " before the job was submitted"}}
		if err := d.Run.WriteLaunch(dir, drop); err != nil {
			return err
		}
		if err := d.finish(e); err != nil {
			return err
		}
	}
	f.queue = nil
	for _, a := range f.active {
		if err := d.Target.Cancel(ctx, a.handle); err != nil {
			d.notice("job %s could not be cancelled: %v", a.attempt.Job.ID, err)
		}
	}
	return nil
}

// fill submits jobs until enough of them run.
func (d *Driver) fill(ctx context.Context, f *flight) error {
	for len(f.queue) > 0 && len(f.active) < d.Run.Ledger.Concurrency {
		e := f.queue[0]
		f.queue = f.queue[1:]
		a, _, err := lastAttempt(d.Run, e)
		if err != nil {
			return err
		}
		h, refused, err := d.submit(ctx, a)
		if err != nil {
			return err
		}
		if refused {
			if err := d.finish(e); err != nil {
				return err
			}
			continue
		}
		d.adopt(f, a, h)
	}
	return nil
}

// submit hands one job to the target. The intent is on disk before, the answer
// right after.
func (d *Driver) submit(ctx context.Context, a plan.Attempt) (h deploy.Handle, refused bool, err error) {
	intent := rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}
	if err := d.Run.WriteLaunch(a.Dir, intent); err != nil {
		return h, false, err
	}
	h, err = d.Target.Submit(ctx, a)
	switch {
	case err == nil:
		return h, false, d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{
			Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h,
		})
	case errors.Is(err, deploy.ErrRefused):
		return h, true, d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{
			Launch: evidence.Launch{State: evidence.LaunchRefused, Code: "LAUNCH_REFUSED", Detail: err.Error()},
		})
	}
	return h, false, fmt.Errorf("job %s: %w", a.Job.ID, err)
}

// observe asks the target about all active jobs at once, and finishes those that
// have ended.
func (d *Driver) observe(ctx context.Context, f *flight) (ended bool, err error) {
	handles := f.handles()
	seen, err := d.Target.Observe(ctx, handles)
	if err != nil {
		f.failures++
		d.notice("target %s could not be asked (%d in a row): %v", d.Target.Name(), f.failures, err)
		return false, nil
	}
	f.failures = 0
	var still []activeJob
	for i, a := range f.active {
		if err := d.Run.AppendObservation(a.attempt.Dir, seen[i]); err != nil {
			return false, err
		}
		if seen[i].Phase != evidence.PhaseEnded {
			still = append(still, a)
			continue
		}
		ended = true
		if err := d.finish(rundir.Entry{ID: a.attempt.Job.ID, Key: a.attempt.Job.Key}); err != nil {
			return false, err
		}
	}
	f.active = still
	return ended, nil
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
	j, err := judgeJob(d.Run, e)
	if err != nil {
		return err
	}
	if err := writeJobVerdict(d.Run, j); err != nil {
		return err
	}
	a, dir, err := lastAttempt(d.Run, e)
	if err != nil {
		return err
	}
	d.event(Event{Kind: EventEnded, Job: &a.Job, Dir: dir, Result: &j})
	return nil
}

// wait returns when something may have changed. stop says that the driver shall
// leave the jobs alone and return.
func (d *Driver) wait(ctx context.Context, f *flight) (stop bool, err error) {
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan error, 1)
	go func() { changed <- d.waitTarget(wctx, f) }()
	select {
	case sig := <-d.Signals:
		cancel()
		<-changed //nolint:errcheck // the end of the wait, which was asked for
		return d.onSignal(f, sig)
	case err := <-changed:
		if err != nil && ctx.Err() == nil {
			d.notice("target %s could not be waited for: %v", d.Target.Name(), err)
			f.failures++
		}
		return ctx.Err() != nil, ctx.Err()
	}
}

// waitTarget waits for the target's word, or a while if it gives none. After a
// failure to ask it always waits, longer each time, up to 30 s.
func (d *Driver) waitTarget(ctx context.Context, f *flight) error {
	if w, ok := d.Target.(deploy.Waiter); ok && f.failures == 0 {
		return w.Wait(ctx, f.handles())
	}
	pause := time.Second << min(f.failures, 5)
	timer := time.NewTimer(min(pause, 30*time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// onSignal is the two-stage stop: first cancel and wait, then detach.
func (d *Driver) onSignal(f *flight, sig os.Signal) (stop bool, err error) {
	if f.outcome.Signal != nil {
		f.outcome.Detached = true
		return true, nil
	}
	f.outcome.Signal = sig
	d.notice("%s: cancelling %s and waiting for the ranks to end; once more to detach", signame.Of(sig), count(len(f.active)+len(f.queue), "job"))
	return false, d.Run.WriteCancel(evidence.Cancel{By: signame.Of(sig), At: time.Now().UTC()})
}

func (d *Driver) event(e Event) {
	if d.OnEvent != nil {
		d.OnEvent(e)
	}
}

func (d *Driver) notice(format string, args ...any) {
	d.event(Event{Kind: EventNotice, Text: fmt.Sprintf(format, args...)})
}

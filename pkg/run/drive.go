package run

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	order    order
	judged   map[string][]judged // by job: the attempts that this driver has judged
	cancel   *evidence.Cancel    // asked for by a signal
	stopping bool
	outcome  Outcome
	failures int     // consecutive failures to ask the target
	errs     []error // what went wrong and did not end the drive

	unsubmitted int       // consecutive submissions that the target could not take
	submitAt    time.Time // none is tried before
	// unsettled are the ids of queued jobs that may have been submitted already, with
	// the ambiguous answer; nil when the process that submitted is gone.
	unsettled map[string]error
	looked    map[string]int // by id: how often a job with an ambiguous answer was looked for
}

type activeJob struct {
	attempt plan.Attempt // of the newest start
	handle  deploy.Handle
	seen    evidence.Observation // the last that was told
	unkept  bool                 // an observation could not be kept, which was told
	pending time.Time            // since when it has been seen to wait, zero when it does not
	away    time.Time            // since when it has been seen to wait for nodes that take no jobs
	givenUp bool                 // it waited too long and was told to stop
}

// Drive submits what is planned, at most Concurrency jobs at once, and returns
// when every job has ended, or a second signal came, or ctx ended. It picks up a
// run that another process left, wherever that process ended. What goes wrong
// with one job, or with keeping a record, is told and returned at the end; it
// does not keep the driver from the other jobs.
func (d *Driver) Drive(ctx context.Context) (Outcome, error) {
	f := &flight{unsettled: map[string]error{}, looked: map[string]int{}, judged: map[string][]judged{}, order: newOrder(d.Run.Ledger)}
	d.resume(ctx, f)
	for {
		d.heedCancel(ctx, f)
		d.dropHalted(ctx, f)
		stop := d.fill(ctx, f)
		// Whoever cancels from outside reads the handles after writing the request: a
		// job that was submitted meanwhile is seen there, or the request is seen here.
		d.heedCancel(ctx, f)
		if len(f.active) == 0 && len(f.queue) == 0 {
			return f.outcome, errors.Join(f.errs...)
		}
		if !stop && len(f.active) == 0 && f.pick() < 0 {
			return f.outcome, errors.Join(append(f.errs, fmt.Errorf("%s cannot begin, and nothing runs that they would wait for: %s", phrase.Count(len(f.queue), "job"), f.queue[0].ID))...)
		}
		ended := false
		if !stop && len(f.active) > 0 {
			ended, stop = d.observe(ctx, f)
		}
		if !ended && !stop && !d.room(f) {
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
	d.cancelAll(ctx, f)
	for _, e := range f.queue {
		d.failed(f, d.dropQueued(ctx, f, e, byPerson(c.By), true))
		f.adrift(e)
	}
	f.queue = nil
}

// cancelsAtOnce bounds how many jobs are told to stop at the same time.
const cancelsAtOnce = 8

// cancelAll tells jobs to stop.
func (d *Driver) cancelAll(ctx context.Context, f *flight) {
	for i, err := range cancelEach(ctx, d.Target, f.handles()) {
		if err != nil {
			d.notice("job %s could not be cancelled: %v", f.active[i].attempt.Job.ID, err)
		}
	}
}

// cancelEach tells jobs to stop, and returns what went wrong with each.
func cancelEach(ctx context.Context, t deploy.Target, handles []deploy.Handle) []error {
	var wg sync.WaitGroup
	room := make(chan struct{}, cancelsAtOnce)
	errs := make([]error, len(handles))
	for i, h := range handles {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			errs[i] = t.Cancel(ctx, h)
		})
	}
	wg.Wait()
	return errs
}

// byPerson says that a job is dropped since a person ended the run.
func byPerson(by string) evidence.Launch {
	return evidence.Launch{State: evidence.LaunchDropped, Detail: "the run was cancelled by " + by + " before the job was submitted"}
}

// dropQueued drops a job, unless it was submitted after all: that one goes on, or is told
// to stop. Where nobody can tell, its intent to be submitted stays for a later attach.
func (d *Driver) dropQueued(ctx context.Context, f *flight, e rundir.Entry, why evidence.Launch, stop bool) error {
	ambiguous, unsettled := f.unsettled[e.ID]
	if !unsettled {
		return d.dropFor(f, e, why)
	}
	a, _, err := lastAttempt(d.Run, e)
	if err != nil {
		return err
	}
	h, found, err := findJob(ctx, d.Run, d.Target, a)
	switch {
	case err != nil:
		return err
	case found:
		d.adopt(ctx, f, a, h)
		if !stop {
			return nil
		}
		return d.Target.Cancel(ctx, h)
	}
	if done, err := d.finishForgotten(f, e, a); done {
		return err
	}
	if ambiguous != nil {
		return d.giveUp(f, e, a, ambiguous)
	}
	return d.dropFor(f, e, why)
}

// dropFor records that and why a job will not be submitted.
func (d *Driver) dropFor(f *flight, e rundir.Entry, why evidence.Launch) error {
	_, dir, err := lastAttempt(d.Run, e)
	if err != nil {
		return err
	}
	if err := d.Run.WriteLaunch(dir, rundir.LaunchRecord{Launch: why}); err != nil {
		return err
	}
	return d.finish(f, e)
}

func (f *flight) handles() []deploy.Handle {
	handles := make([]deploy.Handle, len(f.active))
	for i, a := range f.active {
		handles[i] = a.handle
	}
	return handles
}

// finish concludes a job that is not with the target.
func (d *Driver) finish(f *flight, e rundir.Entry) error {
	_, err := d.conclude(f, e)
	return err
}

// clean lets the target remove what it still has of a job, once its verdict is kept.
func clean(ctx context.Context, t deploy.Target, a plan.Attempt, h deploy.Handle, j report.Job) error {
	c, ok := t.(deploy.Cleaner)
	if !ok || j.Verdict == verdict.Pending {
		return nil
	}
	if err := c.Clean(ctx, a, h, j.Verdict == verdict.Pass); err != nil {
		return fmt.Errorf("job %s: what the target has of it could not be removed: %w", j.ID, err)
	}
	return nil
}

func (d *Driver) event(e Event) {
	if d.OnEvent != nil {
		d.OnEvent(e)
	}
}

func (d *Driver) notice(format string, args ...any) {
	d.event(Event{Kind: EventNotice, Text: fmt.Sprintf(format, args...)})
}

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// fillFor is how long jobs are submitted before those that run are looked at.
const fillFor = 2 * time.Second

// room says whether a job may be submitted now.
func (d *Driver) room(f *flight) bool {
	return len(f.queue) > 0 && len(f.active) < d.Run.Ledger.Concurrency && !f.stopping && !time.Now().Before(f.submitAt) && f.pick() >= 0
}

// fill submits jobs until enough of them run, for a while. Between two of them a signal is
// heeded. stop says that the driver shall leave the jobs alone and return.
func (d *Driver) fill(ctx context.Context, f *flight) (stop bool) {
	for begun := time.Now(); d.room(f) && time.Since(begun) < fillFor; {
		e := f.takeNext(f.pick())
		if err := d.launch(ctx, f, e); err != nil {
			d.failed(f, err)
			f.adrift(e)
		}
		d.dropHalted(ctx, f)
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

// launch submits one job and takes it on, or finishes it when it was refused. One
// that may have been submitted already is asked for first.
func (d *Driver) launch(ctx context.Context, f *flight, e rundir.Entry) error {
	a, _, err := lastAttempt(d.Run, e)
	if err != nil {
		return err
	}
	if ambiguous, unsettled := f.unsettled[e.ID]; unsettled {
		delete(f.unsettled, e.ID)
		if done, err := d.settle(ctx, f, e, a, ambiguous); done || err != nil {
			return err
		}
	}
	f.order.occupy(a.Job)
	intent := rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}
	if err := d.Run.WriteLaunch(a.Dir, intent); err != nil {
		f.order.vacate(e.ID)
		return fmt.Errorf("job %s was not submitted: %w", e.ID, err)
	}
	h, err := d.Target.Submit(ctx, a)
	switch {
	case errors.Is(err, deploy.ErrAmbiguous):
		d.notice("job %s: %s", e.ID, deploy.Said(err))
		done, serr := d.settle(ctx, f, e, a, err)
		if !done && serr == nil {
			f.settleLater(e, err)
		}
		return serr
	case f.mayTryAgain(err):
		f.order.vacate(e.ID) // nothing was submitted
		f.again(e)
		d.notice("job %s could not be submitted yet (%d in a row): %s", e.ID, f.unsubmitted, deploy.Said(err))
		return nil
	case err != nil:
		return errors.Join(d.refuse(a, verdict.CodeLaunchRefused, deploy.Said(err), nil), d.finish(f, e))
	}
	f.unsubmitted = 0
	d.adopt(ctx, f, a, h)
	return d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h})
}

// mayTryAgain says whether an error is one of a target that may answer later, and
// that has not been asked too often.
func (f *flight) mayTryAgain(err error) bool {
	return errors.Is(err, deploy.ErrUnavailable) && !errors.Is(err, deploy.ErrNoTool) && f.unsubmitted+1 < submitTries
}

// again lets a job have its next turn after a pause, which grows with the number
// of times in a row that the target could not be reached.
func (f *flight) again(e rundir.Entry) {
	f.unsubmitted++
	f.submitAt = time.Now().Add(pause(f.unsubmitted))
	f.queue = append([]rundir.Entry{e}, f.queue...)
}

// settleLater keeps that a job may have been submitted, until the target can be
// asked for it. ambiguous is the answer to the submission, nil when the process
// that submitted is gone.
func (f *flight) settleLater(e rundir.Entry, ambiguous error) {
	f.unsettled[e.ID] = ambiguous
	f.again(e)
}

// settleLooks is how often a job is looked for after an ambiguous answer. Each time a
// target has some patience of its own.
const settleLooks = 6

// settle resolves a submission without a clear answer by asking for the job. After
// an ambiguous answer it is not submitted again, for it may still appear, unless the
// target makes no second job of it; done is false when it was not submitted and can be.
func (d *Driver) settle(ctx context.Context, f *flight, e rundir.Entry, a plan.Attempt, ambiguous error) (done bool, err error) {
	h, found, err := findJob(ctx, d.Run, d.Target, a)
	switch {
	case f.mayTryAgain(err):
		f.settleLater(e, ambiguous)
		d.notice("%s (%d in a row)", deploy.Said(err), f.unsubmitted)
		return true, nil
	case err != nil:
		return true, err
	case found:
		f.unsubmitted = 0
		d.adopt(ctx, f, a, h)
		return true, nil
	}
	if done, err := d.finishForgotten(f, e, a); done || ambiguous == nil {
		return done, err
	}
	if f.looked[e.ID]++; f.looked[e.ID] >= settleLooks {
		return true, d.giveUp(f, e, a, ambiguous)
	}
	if again, ok := d.Target.(deploy.Resubmitter); ok && again.Resubmits() {
		return false, nil
	}
	f.unsettled[e.ID] = ambiguous
	f.queue = append(f.queue, e) // the others first
	return true, nil
}

// giveUp finishes a job whose submission had an ambiguous answer and that the target
// does not know.
func (d *Driver) giveUp(f *flight, e rundir.Entry, a plan.Attempt, ambiguous error) error {
	why := fmt.Sprintf("%s; the target knows no such job, and it is not submitted again because it may still appear", deploy.Said(ambiguous))
	return errors.Join(d.refuse(a, verdict.CodeLaunchUnknown, why, nil), d.finish(f, e))
}

// refuse records that a job was not launched; h is what there is of it all the
// same.
func (d *Driver) refuse(a plan.Attempt, code, why string, h *deploy.Handle) error {
	return d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{
		Launch: evidence.Launch{State: evidence.LaunchRefused, Code: code, Detail: why}, Handle: h,
	})
}

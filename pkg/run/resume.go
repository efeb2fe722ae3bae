package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"assay/deploy"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// resume sorts the jobs of the ledger into those that still have to be
// submitted and those that were. One that cannot be sorted keeps no other from it.
func (d *Driver) resume(ctx context.Context, f *flight) {
	for _, e := range d.Run.Ledger.Jobs {
		if err := d.resumeJob(ctx, f, e); err != nil {
			d.failed(f, err)
			f.adrift(e)
		}
	}
}

func (d *Driver) resumeJob(ctx context.Context, f *flight, e rundir.Entry) error {
	a, dir, err := lastAttempt(d.Run, e)
	if err != nil {
		return err
	}
	launch, err := rundir.ReadLaunch(dir)
	if err != nil {
		return err
	}
	final, err := readJobVerdict(d.Run, dir)
	if err != nil {
		return err
	}
	switch {
	case final != nil:
		return d.goOn(f, e, d.attempts(f, e))
	case launch.State == evidence.LaunchIntent:
		err := d.findLost(ctx, f, e, a)
		if !errors.Is(err, deploy.ErrUnavailable) {
			return err
		}
		f.order.occupy(a.Job) // it may run
		f.settleLater(e, nil) // to be asked again, before anything is submitted
		d.notice("%v", err)
	case launch.Handle != nil:
		d.adopt(ctx, f, a, *launch.Handle)
	case launch.State == evidence.LaunchPlanned, launch.State == evidence.LaunchUnknown:
		f.queue = append(f.queue, e)
	default: // refused or dropped, and not judged yet
		return d.finish(f, e)
	}
	return nil
}

// adopt takes on a job that runs already.
func (d *Driver) adopt(ctx context.Context, f *flight, a plan.Attempt, h deploy.Handle) {
	f.active = append(f.active, activeJob{attempt: a, handle: h})
	f.order.occupy(a.Job)
	follow(ctx, d.Target, a, h)
	q, queues := d.Target.(deploy.Queue)
	d.event(Event{Kind: EventSubmitted, Job: &a.Job, Dir: a.Dir, Handle: h, Queued: queues && q.Queues()})
}

// follow lets a target that has to bring the records of a job.
func follow(ctx context.Context, t deploy.Target, a plan.Attempt, h deploy.Handle) {
	if t, ok := t.(deploy.Follower); ok {
		t.Follow(ctx, a, h)
	}
}

// findLost settles a submission that had no answer.
func (d *Driver) findLost(ctx context.Context, f *flight, e rundir.Entry, a plan.Attempt) error {
	h, found, err := findJob(ctx, d.Run, d.Target, a)
	if err != nil {
		return err
	}
	if found {
		d.adopt(ctx, f, a, h)
		return nil
	}
	if done, err := d.finishForgotten(f, e, a); done {
		return err
	}
	f.queue = append(f.queue, e)
	return nil
}

// finishForgotten finishes a job whose submission had no answer, which the target
// does not know, and of which a rank began all the same: it ran, and was forgotten
// meanwhile. done is false when none did.
func (d *Driver) finishForgotten(f *flight, e rundir.Entry, a plan.Attempt) (done bool, err error) {
	if a.SubmittedAs == 0 && !rundir.AnyBegan(a.Dir) {
		return false, nil
	}
	return true, errors.Join(
		d.Run.WriteLaunch(a.Submitted().Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}}),
		d.Run.AppendObservation(a.Dir, evidence.Observation{
			Source: d.Target.Name(), Phase: evidence.PhaseGone, At: time.Now().UTC(),
			Detail: "the submission had no answer, ranks of the job began, and the target knows no such job any more",
		}),
		d.finish(f, e),
	)
}

// findJob resolves a submission that had no answer, by asking the target for the
// job by its nonce. What it finds is recorded. A job of which only a part was
// started is told to stop, and counts as refused: the rest would wait for what
// never comes.
func findJob(ctx context.Context, r *rundir.Run, t deploy.Target, a plan.Attempt) (h deploy.Handle, found bool, err error) {
	finder, ok := t.(deploy.Finder)
	if !ok {
		return h, false, fmt.Errorf("job %s: it is not known whether it was submitted, and target %s cannot tell", a.Job.ID, t.Name())
	}
	a = a.Submitted()
	h, found, err = finder.Find(ctx, a)
	record := rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h}
	switch {
	case errors.Is(err, deploy.ErrIncomplete):
		record.Launch = evidence.Launch{State: evidence.LaunchRefused, Code: verdict.CodeLaunchRefused, Detail: err.Error()}
		return h, true, errors.Join(t.Cancel(ctx, h), r.WriteLaunch(a.Dir, record))
	case err != nil:
		return h, false, fmt.Errorf("job %s: cannot find out whether it was submitted: %w", a.Job.ID, err)
	case !found:
		return h, false, nil
	}
	return h, true, r.WriteLaunch(a.Dir, record)
}

// lastAttempt reads the newest attempt of a job.
func lastAttempt(r *rundir.Run, e rundir.Entry) (plan.Attempt, string, error) {
	n, err := r.LastAttempt(e.ID)
	if err != nil {
		return plan.Attempt{}, "", err
	}
	dir := r.AttemptDir(e.ID, max(n, 1))
	a, err := rundir.ReadAttempt(dir)
	if err != nil {
		return a, dir, fmt.Errorf("job %s: %w", e.ID, err)
	}
	// The directory may have been moved or be mounted elsewhere since.
	a.Dir = dir
	return a, dir, nil
}

// writeFiles writes rendered files, open to the group when the run is. The job
// file is evidence of what was asked and must survive; the others only show it.
func writeFiles(r *rundir.Run, dir string, files []deploy.File) error {
	for _, f := range files {
		if r.Ledger.Shared {
			f.Mode |= f.Mode & 0o700 >> 3
		}
		write := durable.Replace
		if f.Name == rundir.JobFile {
			write = durable.WriteFile
		}
		if err := write(filepath.Join(dir, f.Name), f.Data, f.Mode); err != nil {
			return err
		}
	}
	return nil
}

package run

import (
	"context"
	"fmt"
	"path/filepath"

	"assay/deploy"
	"assay/pkg/collect"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// resume sorts the jobs of the ledger into those that still have to be
// submitted and those that were.
func (d *Driver) resume(ctx context.Context, f *flight) error {
	for _, e := range d.Run.Ledger.Jobs {
		a, dir, err := lastAttempt(d.Run, e)
		if err != nil {
			return err
		}
		launch, err := rundir.ReadLaunch(dir)
		if err != nil {
			return err
		}
		switch launch.State {
		case evidence.LaunchSubmitted:
			final, err := readJobVerdict(dir)
			if err != nil {
				return err
			}
			if final == nil {
				d.adopt(f, a, *launch.Handle)
			}
		case evidence.LaunchIntent:
			if err := d.findLost(ctx, f, e, a); err != nil {
				return err
			}
		case evidence.LaunchPlanned, evidence.LaunchUnknown:
			f.queue = append(f.queue, e)
		case evidence.LaunchRefused, evidence.LaunchDropped:
		}
	}
	return nil
}

// adopt takes on a job that runs already.
func (d *Driver) adopt(f *flight, a plan.Attempt, h deploy.Handle) {
	f.active = append(f.active, activeJob{a, h})
	d.event(Event{Kind: EventSubmitted, Job: &a.Job, Dir: a.Dir, Handle: h})
}

// findLost settles a submission that had no answer: by asking the target for the
// job, never by submitting it again unless the target is sure that it has none.
func (d *Driver) findLost(ctx context.Context, f *flight, e rundir.Entry, a plan.Attempt) error {
	finder, ok := d.Target.(deploy.Finder)
	if !ok {
		return fmt.Errorf("job %s: it is not known whether it was submitted, and target %s cannot tell", e.ID, d.Target.Name())
	}
	h, found, err := finder.Find(ctx, a)
	if err != nil {
		return fmt.Errorf("job %s: cannot find out whether it was submitted: %w", e.ID, err)
	}
	if !found {
		f.queue = append(f.queue, e)
		return nil
	}
	d.adopt(f, a, h)
	return d.Run.WriteLaunch(a.Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &h})
}

// lastAttempt reads the newest attempt of a job.
func lastAttempt(r *rundir.Run, e rundir.Entry) (plan.Attempt, string, error) {
	n, err := r.LastAttempt(e.ID)
	if err != nil {
		return plan.Attempt{}, "", err
	}
	dir := r.AttemptDir(e.ID, max(n, 1))
	a, err := collect.Attempt(dir)
	if err != nil {
		return a, dir, fmt.Errorf("job %s: %w", e.ID, err)
	}
	// The directory may have been moved or be mounted elsewhere since.
	a.Dir = dir
	return a, dir, nil
}

// writeFiles writes rendered files. The job file is evidence of what was asked
// and must survive; the others only show it.
func writeFiles(dir string, files []deploy.File) error {
	for _, f := range files {
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

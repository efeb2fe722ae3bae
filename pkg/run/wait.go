package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/signame"
)

// wait returns when something may have changed. stop says that the driver shall
// leave the jobs alone and return.
func (d *Driver) wait(ctx context.Context, f *flight) (stop bool) {
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
		return ctx.Err() != nil
	}
}

// waitTarget waits for the target's word, or a while if it gives none. After a
// failure to ask it always waits, longer each time.
func (d *Driver) waitTarget(ctx context.Context, f *flight) error {
	if len(f.queue) > 0 && time.Now().Before(f.submitAt) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, f.submitAt)
		defer cancel()
	}
	err := d.waitJobs(ctx, f)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // a submission is due
	}
	return err
}

func (d *Driver) waitJobs(ctx context.Context, f *flight) error {
	if w, ok := d.Target.(deploy.Waiter); ok && f.failures == 0 && len(f.active) > 0 {
		return w.Wait(ctx, f.handles())
	}
	timer := time.NewTimer(pause(f.failures))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause is how long to wait after a number of failures: from 1 s to 30 s.
func pause(failures int) time.Duration { return min(time.Second<<min(failures, 5), 30*time.Second) }

// jobs are the ids of the jobs that have no verdict yet.
func (f *flight) jobs() []string {
	var ids []string
	for _, a := range f.active {
		ids = append(ids, a.attempt.Job.ID)
	}
	for _, e := range f.queue {
		ids = append(ids, e.ID)
	}
	return ids
}

// onSignal is the two-stage stop: first cancel and wait, then detach.
func (d *Driver) onSignal(f *flight, sig os.Signal) (stop bool) {
	if f.outcome.Signal != nil {
		f.outcome.Detached = true
		return true
	}
	f.outcome.Signal = sig
	d.notice("%s: cancelling %s and waiting for the ranks to end; once more to detach", signame.Of(sig), phrase.Count(len(f.active)+len(f.queue), "job"))
	f.cancel = &evidence.Cancel{By: signame.Of(sig), At: time.Now().UTC(), Jobs: f.jobs()}
	if err := d.Run.WriteCancel(*f.cancel); err != nil {
		d.failed(f, fmt.Errorf("that the run was cancelled could not be kept: %w", err))
	}
	return false
}

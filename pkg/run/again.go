package run

import (
	"context"
	"fmt"
	"slices"

	"assay/deploy"
	"assay/pkg/exitcode"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// Resume makes ready what a run has not judged: a request to end it is lifted, and each
// job whose verdict is ERROR gets another attempt. What is PASS, FAIL, NO_METRIC or
// SKIP stays as it is. The caller holds the run's lock, and drives the run afterwards.
// force says that it may use nodes of other active runs. It returns how many jobs are
// going to run.
func Resume(ctx context.Context, r *rundir.Run, t deploy.Target, force bool) (jobs int, err error) {
	claims, _, err := reclaim(ctx, r, force)
	if err != nil {
		return 0, err
	}
	defer claims.Release()
	// First, so that the rows of what follows are never taken for written.
	if err := r.ReopenPerf(); err != nil {
		return 0, err
	}
	again, jobs := unjudged(r)
	if err := r.LiftCancel(); err != nil {
		return 0, exitcode.With(exitcode.Error, fmt.Errorf("that the run was cancelled could not be lifted: %w", err))
	}
	d := Driver{Run: r, Target: t}
	for _, i := range again {
		e := r.Ledger.Jobs[i]
		attempts := judgeAttempts(r, e, true)
		for _, a := range attempts { // what it rests on must not change by what follows
			if err := writeAttempt(r, a); err != nil {
				return jobs, err
			}
		}
		if err := d.attemptAgain(e, attempts, verdict.TriggerResume); err != nil {
			return jobs, exitcode.With(exitcode.Error, fmt.Errorf("job %s: another attempt could not be made: %w", e.ID, err))
		}
		jobs++
	}
	return jobs, nil
}

// unjudged are the places in the ledger of the jobs that could not be judged and can be
// run, and how many have not ended. One that is not begun since a suite stopped before
// it would only be dropped again.
func unjudged(r *rundir.Run) (again []int, pending int) {
	o := newOrder(r.Ledger)
	for i, e := range r.Ledger.Jobs {
		attempts := judgeAttempts(r, e, true)
		a, _ := planned(attempts)
		switch word := fold(r, e, attempts).Verdict; word {
		case verdict.Error:
			again = append(again, i)
		case verdict.Pending:
			pending++
		case verdict.Unknown, verdict.Pass, verdict.Fail, verdict.NoMetric, verdict.Skip:
			o.settle(e, a.Job, word)
		}
	}
	return slices.DeleteFunc(again, func(i int) bool { return o.halted(r.Ledger.Jobs[i]) }), pending
}

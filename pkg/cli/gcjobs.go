package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"assay/deploy"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// strays looks for jobs that runs left with a scheduler: those of runs that nobody
// drives, wherever their directory is, and those whose run directory is gone. known
// are the run directories that have been looked at.
func (a *app) strays(ctx context.Context, known []string, cancel bool) (found []orphan, problems []error) {
	for _, t := range a.targets() {
		l, ok := t.(deploy.Lister)
		if !ok {
			continue
		}
		jobs, err := l.List(ctx)
		switch {
		case err != nil && uses(known, t.Name()):
			problems = append(problems, err)
		case errors.Is(err, deploy.ErrNoTool): // not a machine of that scheduler
		case err != nil:
			a.log.Warn("jobs of runs that are elsewhere could not be listed", "target", t.Name(), "error", err)
		}
		for _, group := range byRun(jobs) {
			o, err := a.stray(ctx, t, group, known, cancel)
			if err != nil {
				problems = append(problems, fmt.Errorf("run %s: %w", group[0].RunID, err))
			}
			if o != nil {
				found = append(found, *o)
			}
		}
	}
	return found, problems
}

// uses says whether one of the runs went to a target.
func uses(runs []string, target string) bool {
	return slices.ContainsFunc(runs, func(dir string) bool {
		r, err := rundir.Open(dir)
		return err == nil && r.Ledger.Target == target
	})
}

// byRun groups jobs by their run, in the order of the scheduler.
func byRun(jobs []deploy.Listed) [][]deploy.Listed {
	var groups [][]deploy.Listed
	for _, j := range jobs {
		at := slices.IndexFunc(groups, func(g []deploy.Listed) bool { return g[0].Nonce == j.Nonce })
		if at < 0 {
			groups = append(groups, []deploy.Listed{j})
			continue
		}
		groups[at] = append(groups[at], j)
	}
	return groups
}

// stray looks at the jobs of one run; nil means that they are somebody's.
func (a *app) stray(ctx context.Context, t deploy.Target, jobs []deploy.Listed, known []string, cancel bool) (*orphan, error) {
	dir := jobs[0].RunDir
	if r, err := rundir.Open(dir); dir != "" && err == nil && r.Ledger.Nonce == jobs[0].Nonce {
		if !slices.Contains(known, dir) { // else it was looked at
			if o, err := a.orphan(ctx, filepath.Dir(dir), filepath.Base(dir), cancel); o != nil || err != nil {
				return o, err
			}
		}
		return leftover(ctx, t, r, jobs, cancel)
	}
	if slices.Contains(known, dir) {
		return nil, nil // what is wrong with it has been told
	}
	o := &orphan{RunID: jobs[0].RunID, Dir: dir, Pending: len(jobs), Lost: true, JobIDs: idsOf(jobs)}
	host, err := os.Hostname()
	if err != nil || jobs[0].Host != host {
		o.Elsewhere = jobs[0].Host // its directory may be on a disk of that host
		return o, err
	}
	if !cancel {
		return o, nil
	}
	return o, o.end(ctx, t, jobs)
}

// leftover is what a scheduler still has of a run that nobody drives and that has all
// of its verdicts; nil when that is nothing.
func leftover(ctx context.Context, t deploy.Target, r *rundir.Run, jobs []deploy.Listed, cancel bool) (*orphan, error) {
	unlock, err := r.Lock()
	if errors.Is(err, rundir.ErrLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j deploy.Listed) bool { return j.State == "COMPLETING" })
	if len(jobs) == 0 || run.Judge(r).Pending() > 0 {
		return nil, nil
	}
	o := &orphan{RunID: r.Ledger.RunID, Dir: r.Dir, Over: true, JobIDs: idsOf(jobs)}
	if !cancel {
		return o, nil
	}
	return o, o.end(ctx, t, jobs)
}

func idsOf(jobs []deploy.Listed) []string {
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.Handle.ID
	}
	return ids
}

// end tells jobs to stop.
func (o *orphan) end(ctx context.Context, t deploy.Target, jobs []deploy.Listed) error {
	var errs []error
	for _, j := range jobs {
		err := t.Cancel(ctx, j.Handle)
		if err == nil {
			o.Cancelled++
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// Open finds a run by its directory, its id, the beginning of its id, or the
// word "latest".
func Open(runs, name string) (*rundir.Run, error) {
	dir, err := find(runs, name)
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	r, err := rundir.Open(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, exitcode.Errorf(exitcode.Invalid, "%s is not a run directory: it has no %s, which is written when a run begins", dir, rundir.LedgerFile)
	case errors.Is(err, fs.ErrPermission):
		return nil, exitcode.With(exitcode.Error, err)
	case err != nil:
		return nil, exitcode.With(exitcode.Error, fmt.Errorf("the ledger of the run cannot be read: %w", err))
	}
	return r, nil
}

func find(runs, name string) (string, error) {
	if isRun(name) {
		return name, nil
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return "", fmt.Errorf("%s is not a run directory: it has no %s", name, rundir.LedgerFile)
	}
	ids, _, err := IDs(runs)
	if err != nil {
		return "", err
	}
	if name == rundir.Latest && len(ids) > 0 {
		return filepath.Join(runs, ids[len(ids)-1]), nil
	}
	var match []string
	for _, id := range ids {
		if id == name {
			return filepath.Join(runs, id), nil
		}
		if strings.HasPrefix(id, name) && name != "" {
			match = append(match, id)
		}
	}
	switch len(match) {
	case 1:
		return filepath.Join(runs, match[0]), nil
	case 0:
		if dir := filepath.Join(runs, name); name != "" && (unbegun(dir) || isRun(dir)) {
			return dir, nil // what is wrong with it is told by who opens it
		}
		return "", fmt.Errorf("no run %q in %s (%s there); name a run directory, or --runs DIR", name, runs, phrase.Count(len(ids), "run"))
	}
	return "", fmt.Errorf("%q is the beginning of %d runs: %s", name, len(match), strings.Join(match, ", "))
}

// IDs lists the runs below a directory, the oldest first, and what is wrong with
// those whose ledger cannot be read. A directory that is not there is an error for
// errors.Is(err, fs.ErrNotExist).
func IDs(runs string) (ids []string, damaged []error, err error) {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return nil, nil, fmt.Errorf("the runs directory cannot be read: %w", err)
	}
	created := map[string]time.Time{}
	for _, e := range entries {
		r, err := rundir.Open(filepath.Join(runs, e.Name()))
		switch {
		case err == nil:
			ids = append(ids, e.Name())
			created[e.Name()] = r.Ledger.CreatedAt
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR): // else it is no run
			damaged = append(damaged, fmt.Errorf("run %s: %w", e.Name(), err))
		}
	}
	slices.SortStableFunc(ids, func(a, b string) int { return created[a].Compare(created[b]) })
	return ids, damaged, nil
}

// isRun says no only when it is sure: a directory that may not be read is left to
// whoever opens it.
func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, rundir.LedgerFile))
	return dir != "" && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// unbegun says that a directory is there, and no run in it.
func unbegun(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && !isRun(dir)
}

// handles returns the jobs that are with the target and have no final verdict,
// with their newest attempts. alone says that the caller holds the run's lock
// and may settle submissions that had no answer; while another process drives
// the run, that is its part. An error is about some jobs; the others are returned.
func handles(ctx context.Context, r *rundir.Run, t deploy.Target, alone bool) (attempts []plan.Attempt, hs []deploy.Handle, err error) {
	var errs []error
	for _, e := range r.Ledger.Jobs {
		a, h, err := handle(ctx, r, t, e, alone)
		if h != nil {
			attempts, hs = append(attempts, a), append(hs, *h)
		}
		errs = append(errs, err)
	}
	return attempts, hs, errors.Join(errs...)
}

// handle returns the newest attempt of a job and its handle, nil when it is not with
// the target or has its final verdict.
func handle(ctx context.Context, r *rundir.Run, t deploy.Target, e rundir.Entry, alone bool) (plan.Attempt, *deploy.Handle, error) {
	a, dir, err := lastAttempt(r, e)
	if err != nil {
		return a, nil, err
	}
	launch, err := rundir.ReadLaunch(dir)
	if err != nil {
		return a, nil, err
	}
	final, err := readJobVerdict(r, dir)
	if err != nil || final != nil {
		return a, nil, err
	}
	if alone && launch.State == evidence.LaunchIntent {
		h, found, err := findJob(ctx, r, t, a)
		if err != nil || !found {
			return a, nil, err
		}
		launch.Handle = &h
	}
	return a, launch.Handle, nil
}

// Refresh asks the target about the jobs that have not ended, and keeps what it
// says. alone says that the caller holds the run's lock; settle, that records of
// ranks which may still appear are waited for. An error means that the target
// could not be asked; nothing is concluded from it.
func Refresh(ctx context.Context, r *rundir.Run, t deploy.Target, alone, settle bool) error {
	attempts, hs, err := handles(ctx, r, t, alone)
	if err != nil || len(hs) == 0 {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, h := range hs {
		follow(ctx, t, attempts[i], h)
	}
	for {
		seen, err := t.Observe(ctx, hs)
		if err != nil {
			return err
		}
		var errs []error
		awaited := false
		for i, o := range seen {
			a, err := newestStart(attempts[i], o)
			if err == nil {
				attempts[i] = a
				err = r.AppendObservation(a.Dir, o)
			}
			errs = append(errs, err)
			awaited = awaited || o.Phase == evidence.PhaseEnding
		}
		w, waits := t.(deploy.Waiter)
		if err := errors.Join(errs...); err != nil || !awaited || !settle || !waits {
			return err
		}
		if err := w.Wait(ctx, hs); err != nil {
			return err
		}
	}
}

// Clean lets a target remove what it still has of the jobs that rep judges. Doing it
// again is no error.
func Clean(ctx context.Context, r *rundir.Run, t deploy.Target, rep report.Run) error {
	if _, ok := t.(deploy.Cleaner); !ok {
		return nil
	}
	var errs []error
	for i, e := range r.Ledger.Jobs {
		a, dir, err := lastAttempt(r, e)
		if err != nil {
			continue // its verdict says so
		}
		launch, err := rundir.ReadLaunch(dir)
		if err == nil && launch.Handle != nil {
			err = clean(ctx, t, a, *launch.Handle, rep.Jobs[i])
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Cancel asks for the end of a run: no job is submitted any more, and those that
// run are told to stop. It says how many were. alone says that the caller holds
// the run's lock. Doing it again is no error; a run whose jobs all have their
// verdicts is left as it is.
func Cancel(ctx context.Context, r *rundir.Run, t deploy.Target, c evidence.Cancel, alone bool) (int, error) {
	var errs []error
	for _, e := range r.Ledger.Jobs {
		_, dir, err := lastAttempt(r, e)
		if err == nil {
			var final *report.Job
			final, err = readJobVerdict(r, dir)
			number, _ := strconv.Atoi(filepath.Base(dir))
			switch {
			case final == nil:
				c.Cover(e.ID, number)
			case fold(r, e, judgeAttempts(r, e, true)).Verdict == verdict.Pending:
				c.Cover(e.ID, number+1) // the one that is due
			}
		}
		errs = append(errs, err)
	}
	if len(c.Jobs) == 0 {
		return 0, errors.Join(errs...)
	}
	if err := r.WriteCancel(c); err != nil {
		if !alone {
			return 0, fmt.Errorf("nothing was stopped, because the process that drives the run could not be told: %w", err)
		}
		// A full disk is no reason to leave the jobs running.
		errs = append(errs, err)
	}
	_, hs, err := handles(ctx, r, t, alone)
	errs = append(errs, err)
	errs = append(errs, cancelEach(ctx, t, hs)...)
	return len(hs), errors.Join(errs...)
}

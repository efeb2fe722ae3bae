package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/rundir"
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
		return nil, exitcode.Errorf(exitcode.Invalid, "%s is not a run directory: it has no %s", dir, rundir.LedgerFile)
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
	ids, err := IDs(runs)
	if err != nil {
		return "", err
	}
	if name == "latest" && len(ids) > 0 {
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
		return "", fmt.Errorf("no run %q in %s (%s there); name a run directory, or --runs DIR", name, runs, count(len(ids), "run"))
	}
	return "", fmt.Errorf("%q is the beginning of %d runs: %s", name, len(match), strings.Join(match, ", "))
}

// IDs lists the runs below a directory, the oldest first. A directory that is
// not there has none.
func IDs(runs string) ([]string, error) {
	entries, err := os.ReadDir(runs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	type run struct {
		id      string
		created time.Time
	}
	var list []run
	for _, e := range entries {
		if r, err := rundir.Open(filepath.Join(runs, e.Name())); err == nil {
			list = append(list, run{e.Name(), r.Ledger.CreatedAt})
		}
	}
	slices.SortStableFunc(list, func(a, b run) int { return a.created.Compare(b.created) })
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.id
	}
	return ids, nil
}

func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, rundir.LedgerFile))
	return err == nil
}

// handles returns the jobs that were submitted and have no final verdict, with
// their attempt directories.
func handles(r *rundir.Run) (dirs []string, hs []deploy.Handle, err error) {
	for _, e := range r.Ledger.Jobs {
		n, err := r.LastAttempt(e.ID)
		if err != nil {
			return nil, nil, err
		}
		dir := r.AttemptDir(e.ID, n)
		launch, err := rundir.ReadLaunch(dir)
		if err != nil {
			return nil, nil, err
		}
		final, err := readJobVerdict(dir)
		if err != nil {
			return nil, nil, err
		}
		if launch.State == evidence.LaunchSubmitted && launch.Handle != nil && final == nil {
			dirs, hs = append(dirs, dir), append(hs, *launch.Handle)
		}
	}
	return dirs, hs, nil
}

// Refresh asks the target about the jobs that have not ended, and keeps what it
// says. An error means that it could not be asked; nothing is concluded from it.
func Refresh(ctx context.Context, r *rundir.Run, t deploy.Target) error {
	dirs, hs, err := handles(r)
	if err != nil || len(hs) == 0 {
		return err
	}
	seen, err := t.Observe(ctx, hs)
	if err != nil {
		return err
	}
	for i, o := range seen {
		if err := r.AppendObservation(dirs[i], o); err != nil {
			return err
		}
	}
	return nil
}

// Cancel asks for the end of a run: no job is submitted any more, and those that
// run are told to stop. It says how many were. Doing it again, or after the end,
// is no error.
func Cancel(ctx context.Context, r *rundir.Run, t deploy.Target, by string, now time.Time) (int, error) {
	if err := r.WriteCancel(evidence.Cancel{By: by, At: now.UTC()}); err != nil {
		return 0, err
	}
	_, hs, err := handles(r)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, h := range hs {
		errs = append(errs, t.Cancel(ctx, h))
	}
	return len(hs), errors.Join(errs...)
}

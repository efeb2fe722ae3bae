package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"assay/pkg/durable"
	"assay/pkg/regular"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// gather copies the results files of the ranks to where the manifest wants them
// besides: RESULTS_DIR/<run id>/<job>/<attempt>/rank-<n>/. The run directory stays what is
// judged, so a failure is told and decides nothing.
func gather(r *rundir.Run, rep report.Run, notice func(string)) {
	for _, j := range rep.Jobs {
		if j.Verdict == verdict.Pending {
			continue
		}
		dir := filepath.Join(r.Dir, j.Directory)
		a, err := rundir.ReadAttempt(dir)
		if err != nil || a.Job.ResultsDir == "" {
			continue // what is wrong with the job file is told by its verdict
		}
		to := filepath.Join(a.Job.ResultsDir, r.Ledger.RunID, j.ID, strconv.Itoa(a.Number))
		for rank := range a.Job.WorldSize {
			from := filepath.Join(rundir.RankDir(dir, rank), rundir.ResultsDir)
			if err := copyFiles(from, filepath.Join(to, "rank-"+strconv.Itoa(rank)), r.FileMode()); err != nil {
				notice(fmt.Sprintf("job %s: the results of rank %d could not be gathered in %s: %v", j.ID, rank, to, err))
				break
			}
		}
	}
}

// copyFiles copies the regular files of a directory, at once and whole, unless
// they are there already.
func copyFiles(from, to string, mode fs.FileMode) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the rank never began
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		target := filepath.Join(to, e.Name())
		if had, err := os.Stat(target); err == nil && had.Size() == info.Size() {
			continue
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := copyFile(filepath.Join(from, e.Name()), target, mode); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := regular.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return durable.Copy(to, in, mode)
}

package rundir

import (
	"os"
	"path/filepath"

	"assay/pkg/durable"
	"assay/pkg/plan"
)

// MakeAttempt makes the directory of an attempt with the files that fill writes into
// it. It appears at once and whole.
func (r *Run) MakeAttempt(a plan.Attempt, fill func(dir string) error) error {
	dir := r.AttemptDir(a.Job.ID, a.Number)
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".attempt-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // gone when it was moved
	if err := os.Chmod(tmp, r.DirMode()); err != nil {
		return err
	}
	if err := fill(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(dir))
}

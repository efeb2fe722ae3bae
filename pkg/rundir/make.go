package rundir

import (
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/durable"
	"assay/pkg/plan"
)

// MakeAttempt makes the directory of an attempt with the files that fill writes into
// it. It appears at once and whole.
func (r *Run) MakeAttempt(a plan.Attempt, fill func(dir string) error) error {
	return appear(r.AttemptDir(a.Job.ID, a.Number), r.DirMode(), fill)
}

// appear makes a directory with the files that fill writes into it: it is there with all
// of them, or not at all. One that is there already and is not empty is an error for
// errors.Is(err, fs.ErrExist).
func appear(dir string, mode fs.FileMode, fill func(dir string) error) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".attempt-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // gone when it was moved
	if err := os.Chmod(tmp, mode); err != nil {
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

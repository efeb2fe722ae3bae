package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/durable"
	"assay/pkg/plan"
)

// EncodeAttempt gives the bytes of a job file.
func EncodeAttempt(a plan.Attempt) ([]byte, error) {
	data, err := json.MarshalIndent(a, "", "  ")
	return append(data, '\n'), err
}

// MakeRestart makes the directory of the attempt that a scheduler began when it
// started the job of submitted again for the n-th time, unless it is there. It
// appears at once and whole, for the scheduler's node and whoever watches may
// both make it. It is as private or as shared as the submitted attempt's.
func MakeRestart(submitted plan.Attempt, n int) (plan.Attempt, error) {
	a := submitted.Restart(n)
	if n <= 0 {
		return a, nil
	}
	switch there, err := ReadAttempt(a.Dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return a, err
	case there.SubmittedAs != a.SubmittedAs:
		// It was made meanwhile, as one of its own: what this start leaves is nothing of it.
		return a, fmt.Errorf("attempt %d of job %s is not the restart of attempt %d that was to be recorded there: attempt %[3]d had its verdict before it was started again",
			a.Number, a.Job.ID, submitted.Number)
	default:
		return a, nil
	}
	info, err := os.Stat(submitted.Dir)
	if err != nil {
		return a, fmt.Errorf("the attempt that was submitted cannot be seen: %w", err)
	}
	data, err := EncodeAttempt(a)
	if err != nil {
		return a, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(a.Dir), ".restart-")
	if err != nil {
		return a, err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // gone when it was moved
	mode := info.Mode() & (fs.ModePerm | fs.ModeSetgid)
	if err := os.Chmod(tmp, mode); err != nil {
		return a, err
	}
	if err := durable.WriteFile(filepath.Join(tmp, JobFile), data, mode&0o660); err != nil {
		return a, err
	}
	if err := os.Rename(tmp, a.Dir); errors.Is(err, fs.ErrExist) {
		return MakeRestart(submitted, n) // whoever made it was faster
	} else if err != nil {
		return a, err
	}
	return a, durable.SyncDir(filepath.Dir(a.Dir))
}

// submittedDir is the directory of the attempt that was submitted, when the one
// in dir is a restart of it by the scheduler.
func submittedDir(dir string) (string, bool) {
	a, err := ReadAttempt(dir)
	if err != nil || a.SubmittedAs == 0 || a.SubmittedAs == a.Number {
		return "", false
	}
	a.Dir = dir
	return a.Submitted().Dir, true
}

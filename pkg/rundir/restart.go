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
	if there, err := restartThere(a); there || err != nil {
		return a, err
	}
	info, err := os.Stat(submitted.Dir)
	if err != nil {
		return a, fmt.Errorf("the attempt that was submitted cannot be seen: %w", err)
	}
	data, err := EncodeAttempt(a)
	if err != nil {
		return a, err
	}
	mode := info.Mode() & (fs.ModePerm | fs.ModeSetgid)
	err = appear(a.Dir, mode, func(dir string) error { return durable.WriteFile(filepath.Join(dir, JobFile), data, mode&0o660) })
	if errors.Is(err, fs.ErrExist) { // somebody was faster
		if there, rerr := restartThere(a); there || rerr != nil {
			return a, rerr
		}
	}
	return a, err
}

// restartThere says whether the directory of a restart is there. That of another attempt
// with its number is an error: it was made as one of its own meanwhile, and what this
// start leaves is nothing of it.
func restartThere(a plan.Attempt) (bool, error) {
	there, err := ReadAttempt(a.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case there.SubmittedAs != a.SubmittedAs:
		return false, fmt.Errorf("attempt %d of job %s is not the restart of attempt %d that was to be recorded there: attempt %[3]d had its verdict before it was started again",
			a.Number, a.Job.ID, a.SubmittedAs)
	}
	return true, nil
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

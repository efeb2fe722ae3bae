package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"assay/pkg/plan"
	"assay/pkg/regular"
)

// maxJobFile is the largest job file that is read, in bytes.
const maxJobFile = 64 << 20

// ReadAttempt reads the job file of an attempt directory.
func ReadAttempt(dir string) (plan.Attempt, error) { return ReadJobFile(filepath.Join(dir, JobFile)) }

// ReadJobFile reads a job file and checks what every reader relies on.
func ReadJobFile(path string) (plan.Attempt, error) {
	var a plan.Attempt
	data, err := regular.ReadFile(path, maxJobFile)
	if err != nil {
		return a, err
	}
	var format struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &format); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	if format.Version != plan.AttemptVersion {
		return a, fmt.Errorf("%s has format version %d, this assay knows %d", path, format.Version, plan.AttemptVersion)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	if a.Job.WorldSize < 1 {
		return a, fmt.Errorf("%s: job %q has world size %d", path, a.Job.ID, a.Job.WorldSize)
	}
	return a, nil
}

// MakeRankDir creates the directory of a rank, unless it is there. It is as
// private or as shared as the attempt directory, which has to be there: where it
// is not, the evidence would end up on a disk that nobody looks at.
func MakeRankDir(attemptDir string, rank int) (string, error) {
	dir := RankDir(attemptDir, rank)
	return dir, makeInAttempt(attemptDir, filepath.Dir(dir), dir)
}

// MakeRanksDir creates the directory that those of the ranks are in, as
// MakeRankDir does.
func MakeRanksDir(attemptDir string) error {
	return makeInAttempt(attemptDir, filepath.Dir(RankDir(attemptDir, 0)))
}

func makeInAttempt(attemptDir string, dirs ...string) error {
	info, err := os.Stat(attemptDir)
	if err != nil {
		return fmt.Errorf("the attempt directory cannot be seen from this node; the run directory must be on a filesystem that every node mounts: %w", err)
	}
	for _, d := range dirs {
		if err := makeDir(d, info.Mode()&(fs.ModePerm|fs.ModeSetgid)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if at, err := os.Stat(d); err == nil && !at.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: d, Err: syscall.ENOTDIR}
		}
	}
	return nil
}

// AnyBegan says whether a rank of an attempt left a record of having begun or ended.
func AnyBegan(attemptDir string) bool {
	ranks, _ := os.ReadDir(filepath.Dir(RankDir(attemptDir, 0))) // none when it cannot be read
	for _, rank := range ranks {
		files, _ := os.ReadDir(filepath.Join(filepath.Dir(RankDir(attemptDir, 0)), rank.Name()))
		for _, f := range files {
			if f.Name() == BeginFile || f.Name() == EndFile {
				return true
			}
		}
	}
	return false
}

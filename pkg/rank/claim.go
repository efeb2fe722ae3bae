package rank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// maxMarker is the largest marker that is read, in bytes.
const maxMarker = 1 << 20

// claim writes the begin marker, which is the claim to the rank: of several
// wrappers at once one gets it, and a rank whose wrapper died before that can be
// started again. The marker of another run in the same place does not count.
func (w *wrapper) claim() error {
	defer w.alone()()
	for _, name := range []string{rundir.EndFile, rundir.BeginFile} {
		if err := w.refuseOwn(w.file(name)); err != nil {
			return err
		}
	}
	err := w.create()
	for i := 0; errors.Is(err, fs.ErrExist) && i < 5; i++ {
		if err := w.displaceBegin(); err != nil {
			return err
		}
		err = w.create()
	}
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "rank %d: the begin marker cannot be written, so nothing was started: %w", w.rank, err)
	}
	return nil
}

// alone keeps other wrappers of this machine from claiming the rank at the same
// time, until the returned function is called. Where a directory cannot be
// locked, the creation of the marker alone decides.
func (w *wrapper) alone() (release func()) {
	dir, err := os.Open(w.dir)
	if err != nil {
		return func() {}
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		w.note("the directory of the rank cannot be locked: %v", err)
	}
	return func() { _ = dir.Close() }
}

// unclaim takes the begin marker away: nothing was started after all.
func (w *wrapper) unclaim() { _ = os.Remove(w.file(rundir.BeginFile)) }

func (w *wrapper) create() error {
	return durable.CreateJSON(w.file(rundir.BeginFile), w.begin(), w.fileMode)
}

func (w *wrapper) begin() evidence.Begin {
	return evidence.Begin{
		Version: evidence.MarkerVersion, Identity: w.end.Identity,
		Host: w.end.Host, Node: w.end.Node, PID: os.Getpid(), StartedAt: w.end.StartedAt,
	}
}

// clear removes what another run left, or a rank that never began.
func (w *wrapper) clear(names ...string) error {
	for _, name := range names {
		if err := os.RemoveAll(w.file(name)); err != nil {
			return fmt.Errorf("left by another run: %w", err)
		}
	}
	return nil
}

// refuseOwn fails when the marker is of this rank of this attempt.
func (w *wrapper) refuseOwn(path string) error {
	data, err := regular.ReadFile(path, maxMarker)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, regular.ErrNotRegular), errors.Is(err, regular.ErrTooLarge):
		return nil
	case err != nil:
		return exitcode.Errorf(exitcode.Error, "rank %d: %w", w.rank, err)
	}
	var b evidence.Begin // an end marker begins with the same
	id := w.end.Identity
	if json.Unmarshal(data, &b) != nil || b.Identity != id {
		return nil
	}
	process := ""
	if b.PID != 0 {
		process = fmt.Sprintf("process %d ", b.PID)
	}
	return exitcode.Errorf(exitcode.Error,
		"rank %d of job %s, attempt %d, has already begun: %son %s at %s; it is not started twice",
		id.Rank, id.Job, id.Attempt, process, b.Host, b.StartedAt.Format(time.RFC3339))
}

// displaceBegin takes what lies in the place of the begin marker out of the way
// before it looks at it: another wrapper may claim the rank at this moment, and
// gets its marker back.
func (w *wrapper) displaceBegin() error {
	aside, err := os.MkdirTemp(w.dir, ".left.*")
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "rank %d: %w", w.rank, err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	path, moved := w.file(rundir.BeginFile), filepath.Join(aside, rundir.BeginFile)
	if err := w.refuseOwn(path); err != nil {
		return err
	}
	if err := os.Rename(path, moved); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exitcode.Errorf(exitcode.Error, "rank %d: left by another run: %w", w.rank, err)
	}
	if err := w.refuseOwn(moved); err != nil {
		return errors.Join(err, os.Rename(moved, path))
	}
	return nil
}

// regain makes sure that the directory of the rank is the one that was claimed.
// A workload may have removed or replaced it: what it put there instead is no
// evidence.
func (w *wrapper) regain() error {
	if now, err := os.Lstat(w.dir); err == nil && os.SameFile(now, w.claimed) {
		return nil
	}
	problem := "the directory of the rank was removed or replaced while it ran, with all files in it"
	w.note("%s", problem)
	w.end.Message = sentence(w.end.Message, problem)
	if err := os.RemoveAll(w.dir); err != nil {
		return err
	}
	return w.makeDirs()
}

// makeDirs creates the directory of the rank and remembers which one it is.
func (w *wrapper) makeDirs() error {
	_, err := rundir.MakeRankDir(w.attempt.Dir, w.rank)
	if err != nil {
		return err
	}
	if w.claimed, err = os.Lstat(w.dir); err != nil {
		return err
	}
	info, err := os.Stat(w.dir) // it may be a link to a directory
	if err != nil {
		return err
	}
	w.dirMode = info.Mode() & (fs.ModePerm | fs.ModeSetgid)
	w.fileMode = 0o600 | w.dirMode&0o060
	return nil
}

// makeDir creates a directory of the rank with exactly the rank's mode, unless it
// is there.
func (w *wrapper) makeDir(name string) error {
	err := os.Mkdir(w.file(name), w.dirMode.Perm())
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(w.file(name), w.dirMode)
}

// file is a path in the directory of the rank.
func (w *wrapper) file(name string) string { return filepath.Join(w.dir, name) }

package perfcsv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"assay/pkg/exitcode"
	"assay/pkg/regular"

	"golang.org/x/sys/unix"
)

// lockLimit bounds the wait for other writers; an append takes milliseconds.
const lockLimit = time.Minute

// openLocked opens the file at path for appending, creating it, and waits until
// this open file holds the lock on it. The lock ends when the file is closed.
func openLocked(path string) (*os.File, error) {
	for {
		f, err := open(path)
		if err != nil {
			return nil, err
		}
		if err := lock(f, path); err != nil {
			return nil, err
		}
		same, err := isStill(f, path)
		if same && err == nil {
			return f, nil
		}
		// While this process waited the file was moved away or replaced.
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

func open(path string) (*os.File, error) {
	// O_NONBLOCK keeps the opening of a pipe from waiting for its reader.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o666)
	if err != nil {
		if info, e := os.Stat(path); e == nil && !info.Mode().IsRegular() {
			return nil, noFile(regular.Check(path, info.Mode()))
		}
		return nil, exitcode.Errorf(exitcode.Invalid, "%w: perf.csv must be a file that can be read and written; name another with --perf-csv", err)
	}
	info, err := f.Stat()
	if err == nil {
		err = regular.Check(path, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(noFile(err), f.Close())
	}
	return f, nil
}

func noFile(err error) error {
	return exitcode.Errorf(exitcode.Invalid, "%w; name another with --perf-csv", err)
}

// lock waits for the lock on f. On failure it closes f, at once or, when the
// kernel cannot be called off, as soon as the lock is granted.
func lock(f *os.File, path string) error {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return errors.Join(fmt.Errorf("lock %s: %w; its filesystem must support flock", path, err), f.Close())
	}
	granted := make(chan error, 1)
	go func() { granted <- flock(f, unix.LOCK_EX) }()
	limit := time.NewTimer(lockLimit)
	defer limit.Stop()
	select {
	case err := <-granted:
		if err != nil {
			return errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		return nil
	case <-limit.C:
		go func() {
			_ = errors.Join(<-granted, f.Close()) // nothing was written; closing gives the lock back
		}()
		return exitcode.Errorf(exitcode.Error, "%s has been locked by another process for %s (find it with `fuser %s`)", path, lockLimit, path)
	}
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// isStill says whether path still names the open file f.
func isStill(f *os.File, path string) (bool, error) {
	ours, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(ours, there), nil
}

package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process drives the run.
var ErrLocked = errors.New("another assay process drives this run")

// A process that only looks whether a run is driven has its lock for a moment.
const (
	lockTries = 5
	lockPause = 10 * time.Millisecond
)

// Lock makes the caller the only driver of the run until the returned function
// is called or the process ends, however it ends. It fails with ErrLocked when
// there is another one.
func (r *Run) Lock() (unlock func(), err error) {
	f, err := r.openLock()
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for i := 0; i < lockTries && errors.Is(err, unix.EWOULDBLOCK); i++ { // somebody may just be looking
		time.Sleep(lockPause)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(ErrLocked, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// Driven says whether a process drives the run in a directory. Where there is no run,
// none does.
func Driven(dir string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, f.Close()
	}
	return false, errors.Join(err, f.Close())
}

// WaitLock waits until no other process drives the run, then does as Lock does.
func (r *Run) WaitLock(ctx context.Context) (unlock func(), err error) {
	f, err := r.openLock()
	if err != nil {
		return nil, err
	}
	got := make(chan error, 1)
	// A blocking flock cannot be interrupted; when ctx ends first, the goroutine
	// lives until the other driver is gone or this process ends.
	fd := int(f.Fd())
	go func() { got <- unix.Flock(fd, unix.LOCK_EX) }()
	select {
	case err := <-got:
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		return func() { _ = f.Close() }, nil
	case <-ctx.Done():
		go func() { <-got; _ = f.Close() }() //nolint:errcheck // nobody waits any more
		return nil, ctx.Err()
	}
}

func (r *Run) openLock() (*os.File, error) {
	return r.openFile(filepath.Join(r.Dir, LockFile), 0)
}

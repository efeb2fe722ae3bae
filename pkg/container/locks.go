package container

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Locks bound the pulls of a user on a node: each image by one process at a time, and
// few images at once. They are files in Dir that processes lock; nothing has to be
// cleaned up after one that was killed.
type Locks struct {
	Dir string // of this user alone; made when needed
}

// UserLocks are the locks of a user below a directory for temporary files that every
// process of the node sees.
func UserLocks(tmp string) Locks {
	return Locks{Dir: filepath.Join(tmp, fmt.Sprintf("assay-pulls-%d", os.Getuid()))}
}

// atOnce is how many images are pulled at the same time, and again how long to wait
// before a lock is tried again.
const (
	atOnce = 2
	again  = 100 * time.Millisecond
)

// take waits for the turn of an image.
func (l Locks) take(ctx context.Context, name string) (release func(), err error) {
	if err := l.make(); err != nil {
		return nil, err
	}
	own := fmt.Sprintf("image-%x", sha256.Sum256([]byte(name)))
	image, err := l.any(ctx, own)
	if err != nil {
		return nil, err
	}
	slots := make([]string, atOnce)
	for i := range slots {
		slots[i] = fmt.Sprintf("slot-%d", i)
	}
	slot, err := l.any(ctx, slots...)
	if err != nil {
		_ = image.Close()
		return nil, err
	}
	return func() {
		_ = slot.Close()
		_ = image.Close()
	}, nil
}

// make makes the directory. One of another user would let that one hold up ours.
func (l Locks) make() error {
	err := os.Mkdir(l.Dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(l.Dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a directory of this user; remove it", l.Dir)
	}
	return nil
}

// any waits for one of the locks.
func (l Locks) any(ctx context.Context, names ...string) (*os.File, error) {
	for {
		for _, name := range names {
			f, err := os.OpenFile(filepath.Join(l.Dir, name), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
			if err != nil {
				return nil, err
			}
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			if err == nil {
				return f, nil
			}
			_ = f.Close()
			if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
				return nil, err
			}
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

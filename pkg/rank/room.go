package rank

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// reserveSize is what is set aside on disk for the end marker, in bytes, so that
// a workload that fills the disk cannot take its own evidence away.
const reserveSize = 64 << 10

const reserveFile = ".reserve"

// setAside takes room on the disk: blocks where the filesystem gives some without
// a write, else bytes.
func setAside(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, reserveSize)
	if err != nil && !isAny(err, unix.ENOSPC, unix.EDQUOT) {
		if _, err = f.WriteAt(make([]byte, reserveSize), 0); err == nil {
			err = f.Sync() // only then the room is certain
		}
	}
	_ = f.Close()
	if err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("%d KiB cannot be set aside: %w", reserveSize>>10, cause(err))
	}
	return nil
}

// insist writes again while the disk has no room or fails: at once after making
// room, and then, waiting longer and longer, until the limit.
func insist(write func() error, makeRoom func(), limit time.Duration) error {
	began := time.Now()
	err := write()
	for range 2 {
		if !mayPass(err) {
			return err
		}
		makeRoom()
		err = write()
	}
	for pause := 50 * time.Millisecond; mayPass(err) && time.Since(began)+pause <= limit; pause = min(2*pause, time.Second) {
		time.Sleep(pause)
		err = write()
	}
	return err
}

// mayPass reports whether a failed write may work later.
func mayPass(err error) bool {
	return isAny(err, unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.ESTALE)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}

package rundir

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"assay/pkg/durable"
)

// reserveFile holds room for what has to be written down even when the disk is
// full: that the run was cancelled.
const reserveFile = ".reserve"

// reserveSize is that room in bytes.
const reserveSize = 32 << 10

// reserve sets room aside. A file system that cannot do that goes without.
func (r *Run) reserve() error {
	f, err := r.openFile(filepath.Join(r.Dir, reserveFile), 0)
	if err != nil {
		return err
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, reserveSize)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// writeReserved is writeJSON that takes from the room set aside when there is no
// other.
func (r *Run) writeReserved(name string, v any) error {
	path := filepath.Join(r.Dir, name)
	err := durable.WriteJSON(path, v, r.FileMode())
	for i := 0; errors.Is(err, unix.ENOSPC) && i < 3; i++ {
		_ = os.Remove(filepath.Join(r.Dir, reserveFile)) // it may be used up
		err = durable.WriteJSON(path, v, r.FileMode())
	}
	return err
}

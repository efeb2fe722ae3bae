package perfcsv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/exitcode"
	"assay/pkg/regular"

	"golang.org/x/sys/unix"
)

// Check says whether rows could be appended to path now, without changing
// anything: a run asks before it starts, not when its results are there.
func Check(path string) error {
	f, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := creatable(path); err != nil {
			return exitcode.Errorf(exitcode.Invalid, "%s cannot be created: %w; name another file with --perf-csv", path, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return errors.Join(exitcode.Errorf(exitcode.Invalid, "%s cannot be written: %w; name another file with --perf-csv", path, err), f.Close())
	}
	_, err = checkHeader(f, path)
	return errors.Join(err, f.Close())
}

// creatable tries what permissions alone do not tell: /proc is writable for root,
// and takes no file.
func creatable(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Open opens a perf.csv for reading and never waits: what is no file is refused.
func Open(path string) (*os.File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, unreadable(path, err))
	}
	return f, nil
}

// unreadable says in one way why the file at path was not opened.
func unreadable(path string, err error) error {
	var p *fs.PathError
	switch {
	case errors.Is(err, regular.ErrNotRegular): // it names the path and what it is
		return err
	case errors.As(err, &p):
		err = p.Err
	}
	return fmt.Errorf("%s cannot be read: %w", path, err)
}

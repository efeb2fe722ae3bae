package perfcsv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/exitcode"

	"github.com/gocarina/gocsv"
	"golang.org/x/sys/unix"
)

// Read returns the rows of the file at path. It is for tables that fit into
// memory; Validate reads any size.
func Read(path string) ([]Row, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	var rows []Row
	if err := gocsv.UnmarshalCSV(csvReader{newScanner(f, 0)}, &rows); err != nil {
		return nil, errors.Join(exitcode.Errorf(exitcode.Invalid, "%s: %w", path, err), f.Close())
	}
	return rows, f.Close()
}

// Check says whether rows could be appended to path now, without changing
// anything: a run asks before it starts, not when its results are there.
func Check(path string) error {
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := unix.Access(filepath.Dir(path), unix.W_OK); err != nil {
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

// openRegular opens a regular file for reading and never waits.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = exitcode.Errorf(exitcode.Invalid, "%s is not a regular file (%s)", path, info.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// csvReader is a scanner as gocsv wants it.
type csvReader struct{ *scanner }

func (r csvReader) Read() ([]string, error) {
	record, err := r.scan()
	switch {
	case errors.Is(err, errCut) && !r.open:
		return record, nil
	case err != nil:
		return nil, err
	}
	return record, nil
}

func (r csvReader) ReadAll() ([][]string, error) {
	var all [][]string
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		if len(all) > 0 && len(record) != len(all[0]) {
			return nil, fmt.Errorf("line %d has %d cells where the header has %d", r.line, len(record), len(all[0]))
		}
		all = append(all, append([]string(nil), record...))
	}
}

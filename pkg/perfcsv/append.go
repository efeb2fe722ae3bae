package perfcsv

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"assay/pkg/durable"
	"assay/pkg/exitcode"
)

// Appended says where rows came to lie.
type Appended struct {
	Offset int64 // of the first byte of the rows
	Rows   int   // how many were written
	// Torn is the file that holds what an earlier writer, killed in the middle of
	// an append, had left at the end; empty when there was nothing to repair.
	Torn string
}

// Append adds rows to the file at path, which is created when it is not there.
// All rows are one write, durable when Append returns. It waits for other
// processes that append, for up to a minute. An error leaves the file as it was.
func Append(path string, rows []Row) (Appended, error) {
	data, err := encode(rows)
	if err != nil {
		return Appended{}, err
	}
	return withLock(path, func(f *os.File) (Appended, error) {
		return add(f, path, data, len(rows))
	})
}

// AppendMissing is Append for a writer that does not know how far an earlier
// try came: rows of the run that lie at or after offset from are not written a
// second time.
func AppendMissing(path string, rows []Row, from int64) (Appended, error) {
	return withLock(path, func(f *os.File) (Appended, error) {
		torn, err := prepare(f, path)
		if err != nil {
			return Appended{}, err
		}
		missing, err := without(f, rows, from)
		if err != nil {
			return Appended{}, err
		}
		data, err := encode(missing)
		if err != nil {
			return Appended{}, err
		}
		done, err := add(f, path, data, len(missing))
		done.Torn = torn
		return done, err
	})
}

// Size returns the size of the file at path in bytes; 0 when it is not there.
// Kept before an append, it tells AppendMissing where to look.
func Size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// withLock opens the file at path and runs do while no other process appends.
func withLock(path string, do func(*os.File) (Appended, error)) (Appended, error) {
	path, err := resolve(path)
	if err != nil {
		return Appended{}, err
	}
	f, err := openLocked(path)
	if err != nil {
		return Appended{}, err
	}
	done, err := do(f)
	return done, errors.Join(err, f.Close())
}

// resolve follows symbolic links, so that every name of a file leads to the one
// note beside it.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return real, err
}

// add writes data, the text of some rows, at the end of f, which is locked.
func add(f *os.File, path string, data []byte, rows int) (Appended, error) {
	torn, err := prepare(f, path)
	if err != nil {
		return Appended{}, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Appended{}, err
	}
	done := Appended{Offset: size, Rows: rows, Torn: torn}
	if rows == 0 && size > 0 {
		return done, nil
	}
	if size == 0 {
		done.Offset = int64(len(header()))
		data = append(header(), data...)
	}
	if err := writeNote(f, path, size, size+int64(len(data))); err != nil {
		return Appended{}, err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = fmt.Errorf("append to %s: %w", path, err)
		return Appended{}, exitcode.With(exitcode.Error, errors.Join(err, f.Truncate(size)))
	}
	if size == 0 {
		return done, durable.SyncDir(filepath.Dir(path))
	}
	return done, nil
}

// prepare checks the header of f and repairs its end. It returns the file that
// keeps what was cut off, if anything was.
func prepare(f *os.File, path string) (torn string, err error) {
	empty, err := checkHeader(f, path)
	if err != nil {
		return "", err
	}
	if empty {
		return "", f.Truncate(0)
	}
	return repair(f, path)
}

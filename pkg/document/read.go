package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"assay/pkg/regular"
)

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 256 << 20

// Read returns the content of a regular file of at most MaxSize bytes. Anything
// else is an error that says what it is: opening never waits, whatever the path
// names.
func Read(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNotRegular) { // it names the path and what it is
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, reason(err))
	}
	if info.Size() > MaxSize {
		return nil, fmt.Errorf("%s: %s", path, tooLarge(info.Size()))
	}
	// The size is only where to begin: a file may grow while it is read.
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, MaxSize+1)); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, reason(err))
	}
	if data.Len() > MaxSize {
		return nil, fmt.Errorf("%s: %s", path, tooLarge(int64(data.Len())))
	}
	return data.Bytes(), nil
}

// reason drops the operation and the path, which the caller says better.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func tooLarge(size int64) string {
	return fmt.Sprintf("the file has %d MiB; at most %d MiB are read", size>>20, MaxSize>>20)
}

// Package regular reads files that others made, whatever they really are: a pipe
// must not block, and a directory or a device is no file.
package regular

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrNotRegular is the reason why something that is no regular file is not read.
var ErrNotRegular = errors.New("is not a regular file")

// ErrTooLarge is the reason why a file beyond a limit is not read.
var ErrTooLarge = errors.New("is too large")

// Open opens a regular file for reading, links followed. It never waits: without
// O_NONBLOCK the open of a pipe waits for its writer.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile returns the content of a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more tells a file of exactly limit bytes from a larger one.
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s %w: it has more than %d bytes", path, ErrTooLarge, limit)
	}
	return data, nil
}

// Package regular reads files that others made, whatever they really are: a pipe
// must not block, and a directory or a device is no file.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is the reason why something that is no regular file is not read.
var ErrNotRegular = errors.New("not a file")

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
	if err == nil {
		err = Check(path, info.Mode())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Check returns an error that says what lies at path when the mode is not that of
// a regular file.
func Check(path string, mode fs.FileMode) error {
	if mode.IsRegular() {
		return nil
	}
	return fmt.Errorf("%s is %s, %w", path, what(mode), ErrNotRegular)
}

// what names the kind of something that is no regular file.
func what(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "something special"
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

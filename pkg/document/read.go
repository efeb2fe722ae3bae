package document

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// MaxSize is the largest file that is read, in bytes.
const MaxSize = 256 << 20

// Read returns the content of a regular file of at most MaxSize bytes. Anything
// else is an error that says what it is: opening never waits, whatever the path
// names.
func Read(path string) ([]byte, error) {
	// Without O_NONBLOCK the open of a FIFO waits for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, reason(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is %s, not a file", path, what(info.Mode()))
	}
	if info.Size() > MaxSize {
		return nil, fmt.Errorf("%s: %s", path, tooLarge(info.Size()))
	}
	data := make([]byte, 0, info.Size()+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, fmt.Errorf("%s cannot be read: %w", path, reason(err))
		case len(data) > MaxSize: // it grows while it is read, or lies about its size
			return nil, fmt.Errorf("%s: %s", path, tooLarge(int64(len(data))))
		}
	}
}

// reason drops the operation and the path, which the caller says better.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

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

func tooLarge(size int64) string {
	return fmt.Sprintf("the file has %d MiB; at most %d MiB are read", size>>20, MaxSize>>20)
}

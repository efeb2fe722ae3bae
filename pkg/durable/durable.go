// Package durable writes files that are either there, whole and on disk, or not
// there at all.
package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Copy writes all of src to path by way of a temporary file in the same
// directory: write, fsync, rename, fsync of the directory. A reader sees the old
// file or the whole new one.
func Copy(path string, src io.Reader, mode fs.FileMode) error {
	if err := put(path, src, mode, (*os.File).Sync, os.Rename); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// WriteFile is Copy for data.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Copy(path, bytes.NewReader(data), mode)
}

// WriteJSON is WriteFile for v as indented JSON.
func WriteJSON(path string, v any, mode fs.FileMode) error {
	data, err := indented(path, v)
	if err != nil {
		return err
	}
	return WriteFile(path, data, mode)
}

// CreateJSON is WriteJSON for a file that must not exist: of several that create
// it at once, one succeeds and the others get fs.ErrExist.
func CreateJSON(path string, v any, mode fs.FileMode) error {
	data, err := indented(path, v)
	if err != nil {
		return err
	}
	if err := put(path, bytes.NewReader(data), mode, (*os.File).Sync, moveNew); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func indented(path string, v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return append(data, '\n'), nil
}

// Replace writes data to path by way of a temporary file, so that a reader sees
// the old file or the whole new one, but does not wait for the disk. It is for
// files that can be made again.
func Replace(path string, data []byte, mode fs.FileMode) error {
	return put(path, bytes.NewReader(data), mode, func(*os.File) error { return nil }, os.Rename)
}

// put writes a temporary file, syncs it as told, and moves it to path as told.
func put(path string, src io.Reader, mode fs.FileMode, sync func(*os.File) error, move func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, src)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = move(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), ignoreNotExist(os.Remove(f.Name())))
	}
	return nil
}

// moveNew is a rename that replaces nothing. Links are what every shared
// filesystem does atomically; those without links have the flag of renameat2.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	switch {
	case err == nil, errors.Is(err, fs.ErrExist) && sameFile(from, to): // NFS may lose the answer and ask twice
		return os.Remove(from)
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if rerr := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE); rerr == nil || errors.Is(rerr, fs.ErrExist) {
		return rerr
	}
	return err
}

func sameFile(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && os.SameFile(x, y)
}

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

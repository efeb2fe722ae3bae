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
)

// Copy writes all of src to path by way of a temporary file in the same
// directory: write, fsync, rename, fsync of the directory. A reader sees the old
// file or the whole new one.
func Copy(path string, src io.Reader, mode fs.FileMode) error {
	if err := put(path, src, mode, (*os.File).Sync); err != nil {
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
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, append(data, '\n'), mode)
}

// Replace writes data to path by way of a temporary file, so that a reader sees
// the old file or the whole new one, but does not wait for the disk. It is for
// files that can be made again.
func Replace(path string, data []byte, mode fs.FileMode) error {
	return put(path, bytes.NewReader(data), mode, func(*os.File) error { return nil })
}

// put writes a file by way of a temporary one, which is synced as told.
func put(path string, src io.Reader, mode fs.FileMode, sync func(*os.File) error) error {
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
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), ignoreNotExist(os.Remove(f.Name())))
	}
	return nil
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

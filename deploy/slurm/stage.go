package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Stage implements deploy.Stager: the running binary, once per version.
func (t *Target) Stage(_ context.Context, runs string) (string, error) {
	in, err := os.Open(t.s.opt.Binary)
	if err != nil {
		return "", err
	}
	defer in.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		return "", err
	}
	dir := filepath.Join(runs, ".assay")
	path := filepath.Join(dir, "assay-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return path, place(in, dir, path)
}

// place copies a program to a path at once: nobody ever sees half of it.
func place(in io.Reader, dir, path string) error {
	tmp, err := os.CreateTemp(dir, ".assay-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // gone when it was moved
	_, err = io.Copy(tmp, in)
	err = errors.Join(err, tmp.Chmod(0o755), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

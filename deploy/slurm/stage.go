package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"assay/pkg/durable"
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
	return path, durable.Copy(path, in, 0o755)
}

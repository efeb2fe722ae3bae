package perfcsv

import (
	"os"
	"path/filepath"
	"testing"

	"assay/pkg/exitcode"
)

// A place that takes no file is known before anything runs, also to root, and
// looking for one leaves nothing behind.
func TestCheckOfAPlaceForAFile(t *testing.T) {
	dir := t.TempDir()
	if err := Check(filepath.Join(dir, "perf.csv")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for _, path := range []string{"/proc/perf.csv", filepath.Join(dir, "none", "perf.csv")} {
		if err := Check(path); exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%s: %v", path, err)
		}
	}
}

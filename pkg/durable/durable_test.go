package durable

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteReplacesWhole(t *testing.T) {
	for name, write := range map[string]func(string, []byte, os.FileMode) error{"WriteFile": WriteFile, "Replace": Replace} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			for _, content := range []string{"a longer first version", "second"} {
				if err := write(path, []byte(content), 0o640); err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(path)
				if err != nil || string(got) != content {
					t.Errorf("read %q, %v; want %q", got, err, content)
				}
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			onlyFile(t, dir, "f")
		})
	}
}

// A write that fails leaves the old file and nothing beside it.
func TestFailureLeavesTheOldFile(t *testing.T) {
	for name, write := range map[string]func(string, []byte, os.FileMode) error{"WriteFile": WriteFile, "Replace": Replace} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := os.Mkdir(path, 0o700); err != nil { // a file cannot replace a directory
				t.Fatal(err)
			}
			if err := write(path, []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), "f") {
				t.Errorf("error is %v, want one that names the file", err)
			}
			onlyFile(t, dir, "f")
			if err := write(filepath.Join(dir, "none", "f"), []byte("x"), 0o600); err == nil {
				t.Error("no error without a directory")
			}
		})
	}
}

func onlyFile(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("the directory holds %v, want %s alone", entries, name)
	}
}

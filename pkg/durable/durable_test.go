package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
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

func TestJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteJSON(path, map[string]int{"a": 1}, 0o640); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "{\n  \"a\": 1\n}\n" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := WriteJSON(path, func() {}, 0o640); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v, want one that names the file", err)
	}
}

// Of several that create a file, one does.
func TestCreateJSON(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	const n = 20
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- CreateJSON(path, i, 0o640) }()
	}
	created := 0
	for range n {
		switch err := <-errs; {
		case err == nil:
			created++
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if created != 1 {
		t.Errorf("%d created it, want 1", created)
	}
	onlyFile(t, dir, "f")
}

// What cannot be read to its end replaces nothing.
func TestCopyOfABrokenSource(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := Copy(path, iotest.ErrReader(broken), 0o600); !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	onlyFile(t, dir, "f")
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("read %q, %v", got, err)
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

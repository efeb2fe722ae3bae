package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/pkg/batch"
	"assay/pkg/environ"
)

// The job that the tests ask about.
const (
	testID     = "4711"
	testName   = "assay-001122334455-bench-1"
	testUser   = "1001"
	testSubmit = "1795963620" // as the queue gave it
)

func testRef() batch.Ref { return batch.Ref{ID: testID, Name: testName, User: testUser} }

// commands makes commands of shell scripts. Each call adds a line to the log that
// called returns.
func commands(t *testing.T, scripts map[string]string) tools {
	t.Helper()
	dir := t.TempDir()
	for name, body := range scripts {
		text := "#!/bin/bash\nprintf '%s' \"${0##*/}\" >>" + dir + "/log\nprintf ' %q' \"$@\" >>" + dir + "/log\necho >>" + dir + "/log\n" + body + "\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return tools{env: []string{"PATH=" + dir}, limit: 20 * time.Second}
}

// called are the calls of commands so far, one line each.
func called(t *testing.T, tools tools) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(environ.Get(tools.env, "PATH"), "log"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// printing is a command that prints a file.
func printing(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return "exec /bin/cat '" + abs + "'"
}

// schedulerOf is a scheduler that talks to some commands.
func schedulerOf(tools tools) *scheduler {
	return &scheduler{opt: Options{Env: tools.env}, tools: tools, submitted: map[string]string{testID: testSubmit}}
}

// readFile returns the content of a file.
func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// golden compares a text with a file, or writes the file when UPDATE_GOLDEN is
// set.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := readFile(t, path); want != got {
		t.Errorf("%s differs; it has\n%s\nand this was given:\n%s", path, want, got)
	}
}

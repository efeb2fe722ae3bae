package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/exitcode"
	"assay/pkg/manifest"
	"assay/pkg/plan"
)

// TestCases plans the manifest of each directory in testdata/plan and compares
// jobs, warnings, errors and the description with the files beside it. With
// UPDATE_GOLDEN set it writes them instead.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/plan/*/manifest.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) { checkCase(t, dir) })
	}
}

func checkCase(t *testing.T, dir string) {
	got := outcome(t, read(t, dir, "manifest.json"), read(t, dir, "options.json"))
	for _, name := range outputs() {
		if os.Getenv("UPDATE_GOLDEN") != "" {
			write(t, filepath.Join(dir, name), got[name])
			continue
		}
		if diff := cmp.Diff(string(read(t, dir, name)), string(got[name])); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}

// read returns the content of a file of a case, nothing when there is none.
func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return data
}

// write writes a file of a case, or removes it when there is nothing to write.
func write(t *testing.T, path string, data []byte) {
	t.Helper()
	err := os.WriteFile(path, data, 0o644)
	if len(data) == 0 {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func outputs() []string { return []string{"error.txt", "warnings.txt", "describe.txt", "jobs.json"} }

// outcome is everything that planning gives, as the files of a case.
func outcome(t *testing.T, manifestJSON, optionsJSON []byte) map[string][]byte {
	t.Helper()
	opt := plan.Options{ManifestDir: "/srv/bench"}
	if len(optionsJSON) > 0 {
		if err := json.Unmarshal(optionsJSON, &opt); err != nil {
			t.Fatal(err)
		}
	}
	m, err := manifest.Decode(manifestJSON)
	if err != nil {
		t.Fatal(err)
	}
	jobs, warnings, err := plan.Jobs(m, opt)
	if err != nil {
		if exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("exit code %v, want INVALID", exitcode.Of(err))
		}
		return map[string][]byte{"error.txt": []byte(err.Error() + "\n")}
	}
	got := map[string][]byte{}
	for _, w := range warnings {
		got["warnings.txt"] = append(got["warnings.txt"], w+"\n"...)
	}
	for _, j := range jobs {
		got["describe.txt"] = append(got["describe.txt"], plan.Describe(j)...)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(jobs); err != nil {
		t.Fatal(err)
	}
	got["jobs.json"] = text.Bytes()
	return got
}

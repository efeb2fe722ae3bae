package models_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/pkg/lint"
)

// suites are the suites that are shipped, without the files of thresholds.
func suites(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("suites/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "thresholds.yaml" })
	if len(files) < 4 {
		t.Fatalf("only these suites: %v", files)
	}
	return files
}

func TestSuitesLintClean(t *testing.T) {
	for _, file := range append(suites(t), "suites/thresholds.yaml") {
		want := lint.Suite
		if file == "suites/thresholds.yaml" {
			want = lint.Thresholds
		}
		r := lint.File(file, lint.Options{})
		if r.Kind != want {
			t.Errorf("%s is taken for a %s", file, r.Kind)
		}
		for _, f := range r.Findings {
			t.Errorf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Code, f.Message)
		}
	}
}

// judged is what the test reads of a run.
type judged struct {
	Verdict string
	Jobs    []struct {
		Name, Key, Test, Verdict string
		Nodes                    []string
	}
}

// assayBinary builds the binary, and returns what runs it in the root.
func assayBinary(t *testing.T) func(args ...string) ([]byte, int) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "assay")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/assay")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) ([]byte, int) {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Dir = ".."
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		t.Logf("assay %s\n%s", strings.Join(args, " "), &stderr)
		return out, cmd.ProcessState.ExitCode()
	}
}

func TestSuitesBuild(t *testing.T) {
	assay := assayBinary(t)
	for _, file := range suites(t) {
		manifest := filepath.Join(t.TempDir(), "manifest.json")
		if out, code := assay("build", "--suite", filepath.Join("models", file), "-o", manifest); code != 0 {
			t.Errorf("%s: exit code %d\n%s", file, code, out)
			continue
		}
		for _, f := range lint.File(manifest, lint.Options{}).Findings {
			t.Errorf("%s: %s: %s: %s", file, f.Pointer, f.Code, f.Message)
		}
	}
}

// The shipped suites pass on this machine under the names of several nodes.
func TestSuitesPass(t *testing.T) {
	assay := assayBinary(t)
	for _, file := range suites(t) {
		args := []string{"run", "--suite", filepath.Join("models", file), "--nodes", "node[1-4]", "--runs", t.TempDir(), "--perf-csv", "", "--json"}
		if strings.HasSuffix(file, "soak.yaml") {
			args = append(args, "--duration", "1")
		}
		out, code := assay(args...)
		got := decode(t, out)
		if code != 0 || got.Verdict != "PASS" {
			t.Errorf("%s: exit code %d\n%s", file, code, out)
		}
		for _, j := range got.Jobs {
			if j.Verdict != "PASS" {
				t.Errorf("%s: %s on %v is %s", file, j.Name, j.Nodes, j.Verdict)
			}
		}
	}
}

// Every acceptance test that fails on purpose gets the verdict that its comment
// promises, wherever it runs.
func TestFailingAcceptanceGetsItsVerdict(t *testing.T) {
	out, code := assayBinary(t)("run", "--tags", "acceptance-fail", "--jobs", "8", "--nodes", "node[1-4]", "--pairs", "node1:node2", "--runs", t.TempDir(), "--perf-csv", "", "--json")
	if code != 3 {
		t.Errorf("exit code %d", code)
	}
	seen := map[string]int{}
	promised := map[string]string{}
	for _, c := range cards(t) {
		if slices.Contains(c.Tags, "acceptance-fail") {
			promised[c.Name] = c.About
		}
	}
	for _, j := range decode(t, out).Jobs {
		name, _, _ := strings.Cut(j.Name, ".")
		seen[name]++
		if about := promised[name]; !strings.HasPrefix(about, j.Verdict+".") {
			t.Errorf("%s on %v is judged %s; its card promises: %s", j.Name, j.Nodes, j.Verdict, about)
		}
	}
	for name := range promised {
		if seen[name] == 0 {
			t.Errorf("%s was not judged", name)
		}
	}
}

func decode(t *testing.T, out []byte) judged {
	t.Helper()
	var got judged
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return got
}

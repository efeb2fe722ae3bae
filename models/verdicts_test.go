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
)

// Every card that fails on purpose gets the verdict and the reason that its
// comment promises.
func TestFailingCardsGetTheirVerdict(t *testing.T) {
	dir := t.TempDir()
	bin, manifest := filepath.Join(dir, "assay"), filepath.Join(dir, "manifest.json")
	command := func(name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = ".."
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		t.Logf("%s %s\n%s", filepath.Base(name), strings.Join(args, " "), &stderr)
		return out, err
	}
	if _, err := command("go", "build", "-o", bin, "./cmd/assay"); err != nil {
		t.Fatal(err)
	}
	if _, err := command(bin, "build", "--tags", "demo-fail", "--manifest-output", manifest); err != nil {
		t.Fatal(err)
	}
	out, err := command(bin, "run", "-m", manifest, "--runs", filepath.Join(dir, "runs"), "--perf-csv", "", "--json")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the run ended with %v, not with exit code 3", err)
	}
	type reason struct{ Code string }
	var got struct {
		Jobs []struct {
			Name, Verdict     string
			Reasons, Warnings []reason
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	promised := map[string]string{}
	for _, c := range cards(t) {
		if slices.Contains(c.Tags, "demo-fail") {
			promised[c.Name] = c.About
		}
	}
	for _, j := range got.Jobs {
		about := promised[j.Name]
		delete(promised, j.Name)
		if !strings.HasPrefix(about, j.Verdict+" ") {
			t.Errorf("%s is judged %s; its card promises: %s", j.Name, j.Verdict, about)
		}
		code, named := strings.CutPrefix(about, j.Verdict+" (")
		code, _, _ = strings.Cut(code, ",")
		code, _, _ = strings.Cut(code, ")")
		if named && !slices.Contains(j.Reasons, reason{code}) {
			t.Errorf("%s has the reasons %v; its card promises: %s", j.Name, j.Reasons, about)
		}
		if j.Verdict == "PASS" && len(j.Warnings) == 0 {
			t.Errorf("%s passes without a warning", j.Name)
		}
	}
	for name := range promised {
		t.Errorf("%s was not judged", name)
	}
}

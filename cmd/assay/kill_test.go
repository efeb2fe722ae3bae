package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/report"
)

// build gives the binary of this tree.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "assay")
	if out, err := exec.Command("go", "build", "-o", bin, "assay/cmd/assay").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// A kill -9 at any moment loses nothing: the run can be taken over, every job
// gets a verdict that is not FAIL, every entry its rows exactly once, and no
// process is left.
func TestKillAtAnyMoment(t *testing.T) {
	bin := build(t)
	dir := t.TempDir()
	entry := func(name string) string {
		return `"` + name + `": {"name": "` + name + `", "command": ["bash", "-c", "sleep 0.1; echo performance: 7 tps"],
			"distributed": {"launcher": "none", "nnodes": 1, "nproc_per_node": 3}}`
	}
	manifest := `{"built_images": {"a": {}, "b": {}}, "built_models": {` + entry("a") + `, ` + entry("b") + `}, "context": {}}`
	if err := os.WriteFile(filepath.Join(dir, "m.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	interrupted := 0
	for i := range 20 {
		id := "run" + strconv.Itoa(i)
		cmd := exec.Command(bin, "run", "-q", "-m", "m.json", "--run-id", id)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 17 * time.Millisecond) // the moment is what varies, nothing waits for it
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if _, err := os.Stat(filepath.Join(dir, "runs", id, "run.json")); err != nil {
			continue // killed before there was a run
		}
		interrupted++
		takeOver(t, bin, dir, id)
	}
	if interrupted < 10 {
		t.Errorf("only %d runs were there to be taken over", interrupted)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func takeOver(t *testing.T, bin, dir, id string) {
	t.Helper()
	cmd := exec.Command(bin, "attach", id, "-q", "--json")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 6 {
		t.Fatalf("attach %s: %v\n%s%s", id, err, out, &stderr)
	}
	var rep report.Run
	if err := json.Unmarshal(out, &rep); err != nil {
		t.Fatalf("attach %s: %v\n%s", id, err, out)
	}
	perf, err := os.ReadFile(filepath.Join(dir, "perf.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(perf), ","+id+","); n != 2 {
		t.Errorf("%s: %d rows, want one a job", id, n)
	}
	for _, j := range rep.Jobs {
		word := j.Verdict.String()
		half := word == "ERROR" && j.Reasons[0].Code == "LAUNCH_REFUSED" // killed while the ranks were being started
		if word != "PASS" && !half {
			t.Errorf("%s, job %s: %s %+v", id, j.ID, word, j.Reasons)
		}
		if word == "PASS" && len(j.Warnings) > 0 {
			t.Errorf("%s, job %s passed with %+v", id, j.ID, j.Warnings)
		}
	}
}

// processes lists the command lines that mention a directory.
func processes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil && bytes.Contains(data, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
		}
	}
	return found
}

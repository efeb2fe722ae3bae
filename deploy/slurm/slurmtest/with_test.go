//go:build slurm

package slurmtest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"assay/deploy/slurm/slurmtest"
)

// with prepares testdata/clusters/slurm/with for a small cluster.
func with(t *testing.T, dir string, command ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("../../../testdata/clusters/slurm/with", append([]string{dir}, command...)...)
	cmd.Env = append(slurmtest.Open(t).Env(), "NODES=1", "ACCOUNTING=none")
	return cmd
}

// shortDir is a directory that is not there yet.
func shortDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(slurmtest.Open(t).SharedDir(), "c")
}

// left returns the processes that still use the cluster in a directory.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var pids []string
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && bytes.Contains(env, []byte("SLURM_CONF="+dir+"/")) {
			pids = append(pids, f)
		}
	}
	return pids
}

func TestSlurmWithKeepsExitCodeAndLogs(t *testing.T) {
	dir := shortDir(t)
	cmd := with(t, dir, "bash", "-c", "srun --overcommit hostname >/dev/null && sbatch --wrap 'sleep 600' --output=/dev/null; exit 3")
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("with: %v, exit code %d, want 3\n%s", err, code, out)
	}
	if !strings.Contains(string(out), "--- log/slurmctld.log\n") {
		t.Errorf("no end of the log of slurmctld in\n%s", out)
	}
	if pids := left(t, dir); len(pids) > 0 {
		t.Errorf("still there: %v", pids)
	}
}

func TestSlurmWithRemovesTheClusterOfASuccess(t *testing.T) {
	dir := shortDir(t)
	if out, err := with(t, dir, "srun", "true").CombinedOutput(); err != nil {
		t.Fatalf("with: %v\n%s", err, out)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if pids := left(t, dir); len(pids) > 0 {
		t.Errorf("still there: %v", pids)
	}
}

func TestSlurmWithEndsOnTERM(t *testing.T) {
	dir := shortDir(t)
	started := filepath.Join(filepath.Dir(dir), "started")
	cmd := with(t, dir, "bash", "-c", "touch "+started+"; bash -c 'sleep 600; true'; true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slurmtest.Open(t).Await("the command runs", func() bool { _, err := os.Stat(started); return err == nil })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if pids := left(t, dir); len(pids) > 0 {
		t.Errorf("still there: %v", pids)
	}
}

package rank_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/evidence"
)

// A scheduler that suspends a job stops the wrapper and the workload. The time is
// no part of the time limit, and the record says that it was so.
func TestSuspended(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo $$ > "$PIDS"; n=0; while [ $n -lt 20 ]; do sleep 0.1; n=$((n+1)); done; exit 0`)
	pids := filepath.Join(f.model, "pids")
	f.attempt.Job.Env = map[string]string{"PIDS": pids}
	f.attempt.Job.TimeoutSeconds = 5
	cmd := f.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(waitFor(t, pids))
	if err != nil {
		t.Fatal(err)
	}
	signal := func(sig syscall.Signal) {
		for _, p := range []int{cmd.Process.Pid, pid} {
			if err := syscall.Kill(p, sig); err != nil {
				t.Fatal(err)
			}
		}
	}
	signal(syscall.SIGSTOP)
	time.Sleep(6 * time.Second)
	signal(syscall.SIGCONT)
	if exit := exitCode(t, cmd.Wait()); exit != 0 {
		t.Errorf("exited %d, want 0", exit)
	}
	if end := f.end(); end.Outcome != evidence.OutcomeExited || !strings.Contains(end.Message, "was stopped for ") {
		t.Errorf("outcome %v, %q", end.Outcome, end.Message)
	}
}

package deploytest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/rundir"
)

func cancelRunning(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bash(`echo up > "$ASSAY_RESULTS_DIR/up"; sleep 300`, 2))
	for rank := range 2 {
		h.awaitFile(t, filepath.Join(rundir.RankDir(a.Dir, rank), rundir.ResultsDir, "up"))
	}
	// Another process cancels, and then does it again.
	for range 2 {
		if err := h.New(t).Cancel(t.Context(), handle); err != nil {
			t.Fatalf("cancel: %v", err)
		}
	}
	h.await(t, target, handle)
	if err := target.Cancel(t.Context(), handle); err != nil {
		t.Errorf("cancel after the end: %v", err)
	}
	for rank := range 2 {
		if m := mustEnd(t, a, rank); m.Outcome != evidence.OutcomeStopped || m.ExitCode == 0 {
			t.Errorf("rank %d: outcome %s with code %d, want stopped with another code than 0", rank, m.Outcome, m.ExitCode)
		}
	}
}

// nothingLeft runs a workload that leaves a daemon behind: a session of its own,
// deaf to TERM, that holds the output open.
func nothingLeft(t *testing.T, h Harness) {
	a := h.run(t, bash(`setsid bash -c 'trap "" TERM HUP; echo $$ > "$ASSAY_RESULTS_DIR/pid"; while :; do sleep 1; done' &
		while [ ! -s "$ASSAY_RESULTS_DIR/pid" ]; do sleep 0.01; done; exit 0`, 1))
	if m := mustEnd(t, a, 0); m.ExitCode != 0 {
		t.Errorf("exit code %d, want 0: what was left behind is no failure", m.ExitCode)
	}
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, 0), rundir.ResultsDir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(h.Patience)
	for _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil; _, err = os.Stat("/proc/" + strconv.Itoa(pid)) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d of the workload still runs", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

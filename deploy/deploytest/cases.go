package deploytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/rundir"
)

func renderIsPure(t *testing.T, h Harness) {
	a := h.prepare(t, h.New(t), bash("true", 2))
	first, err := h.New(t).Render(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.New(t).Render(a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the same attempt rendered differently:\n%s", diff)
	}
}

func handleSurvives(t *testing.T, h Harness) {
	a, handle := h.start(t, h.New(t), bash("exit 5", 1))
	data, err := json.Marshal(handle)
	if err != nil {
		t.Fatal(err)
	}
	var again deploy.Handle
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	h.await(t, h.New(t), again)
	if m := mustEnd(t, a, 0); m.ExitCode != 5 {
		t.Errorf("exit code %d, want 5", m.ExitCode)
	}
}

func exitCodes(t *testing.T, h Harness) {
	a := h.run(t, bash(`exit "$RANK"`, 4))
	for rank := range 4 {
		m := mustEnd(t, a, rank)
		if m.ExitCode != rank || m.Outcome != evidence.OutcomeExited {
			t.Errorf("rank %d: %s with code %d, want exited with %d", rank, m.Outcome, m.ExitCode, rank)
		}
	}
}

func deathBySignal(t *testing.T, h Harness) {
	a := h.run(t, bash(`kill -SEGV $$; sleep 60`, 1))
	m := mustEnd(t, a, 0)
	if m.Outcome != evidence.OutcomeSignaled || m.Signal != "SIGSEGV" || m.ExitCode != 128+11 {
		t.Errorf("outcome %s, signal %q, code %d; want signaled, SIGSEGV, 139", m.Outcome, m.Signal, m.ExitCode)
	}
}

func killedWrapper(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bash(`echo $$ > "$ASSAY_RESULTS_DIR/pid"; echo "performance: 5 GBs"; sleep 300`, 1))
	h.awaitFile(t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.ResultsDir, "pid"))
	h.KillRank(t, a, 0)
	h.await(t, target, handle)
	if m, ok := end(t, a, 0); ok {
		t.Errorf("a wrapper that was killed left an end marker: %+v", m)
	}
}

func outputIsComplete(t *testing.T, h Harness) {
	a := h.run(t, bash(`for i in {1..20000}; do echo "out $i"; echo "err $i" >&2; done; printf 'no newline'`, 1))
	mustEnd(t, a, 0)
	var wantOut, wantErr strings.Builder
	for i := 1; i <= 20000; i++ {
		fmt.Fprintf(&wantOut, "out %d\n", i)
		fmt.Fprintf(&wantErr, "err %d\n", i)
	}
	wantOut.WriteString("no newline")
	if got := output(t, a, 0, rundir.StdoutFile); got != wantOut.String() {
		t.Errorf("stdout has %d bytes, want %d, or differs", len(got), wantOut.Len())
	}
	if got := output(t, a, 0, rundir.StderrFile); got != wantErr.String() {
		t.Errorf("stderr has %d bytes, want %d, or differs", len(got), wantErr.Len())
	}
}

// hostile are words that break careless quoting.
func hostile() []string {
	return []string{
		"", " ", "two words", `"double" 'single'`, "$(touch /tmp/pwned) `id` ${HOME}", "line\nbreak\ttab", "-n", "--help",
		"*", "~", "a;b|c&d>e<f", `back\slash`, "é 漢字 🜚", "!history", "%s%d", "#comment", "=",
	}
}

func hostileWords(t *testing.T, h Harness) {
	job := bash(`printf '%s\0' "$@"; env -0 | grep -z '^HOSTILE_' | sort -z`, 1)
	job.Program.Command = append(job.Program.Command, "argv0")
	job.Program.Command = append(job.Program.Command, hostile()...)
	job.Env = map[string]string{}
	var want strings.Builder
	for _, w := range hostile() {
		want.WriteString(w + "\x00")
	}
	for i, w := range hostile() {
		name := fmt.Sprintf("HOSTILE_%02d", i)
		job.Env[name] = w
		want.WriteString(name + "=" + w + "\x00")
	}
	a := h.run(t, job)
	if m := mustEnd(t, a, 0); m.ExitCode != 0 {
		t.Fatalf("exit code %d: %s", m.ExitCode, output(t, a, 0, rundir.StderrFile))
	}
	if diff := cmp.Diff(want.String(), output(t, a, 0, rundir.StdoutFile)); diff != "" {
		t.Errorf("arguments or environment changed on the way:\n%s", diff)
	}
}

func rankEnvironment(t *testing.T, h Harness) {
	names := []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "NNODES", "NPROC_PER_NODE", "ASSAY_RUN_ID", "ASSAY_RANK", "ASSAY_NRANKS", "MAD_MODEL_NAME", "MAD_DEPLOYMENT_TYPE"}
	job := bash(`for v in "$@"; do printf '%s=%s\n' "$v" "${!v-(unset)}"; done; echo "meet $MASTER_ADDR:$MASTER_PORT"; [ -d "$ASSAY_RESULTS_DIR" ]`, 4)
	job.NNodes, job.NProcPerNode, job.RanksPerNode = 2, 2, 2
	job.Program.Command = append(append(job.Program.Command, "argv0"), names...)
	a := h.run(t, job)
	meet := map[string]bool{}
	for rank := range 4 {
		if m := mustEnd(t, a, rank); m.ExitCode != 0 {
			t.Fatalf("rank %d: exit code %d", rank, m.ExitCode)
		}
		lines := strings.Split(strings.TrimSpace(output(t, a, rank, rundir.StdoutFile)), "\n")
		got, last := lines[:len(lines)-1], lines[len(lines)-1]
		want := []string{
			"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=4", "LOCAL_RANK=" + strconv.Itoa(rank%2), "NODE_RANK=" + strconv.Itoa(rank/2),
			"NNODES=2", "NPROC_PER_NODE=2", "ASSAY_RUN_ID=run", "ASSAY_RANK=" + strconv.Itoa(rank), "ASSAY_NRANKS=4",
			"MAD_MODEL_NAME=job", "MAD_DEPLOYMENT_TYPE=test",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rank %d:\n%s", rank, diff)
		}
		meet[last] = true
	}
	if len(meet) != 1 || meet["meet :"] || meet["meet 127.0.0.1:0"] {
		t.Errorf("the ranks do not agree where to meet: %v", meet)
	}
}

func timeLimit(t *testing.T, h Harness) {
	job := bash(`trap '' TERM; echo up > "$ASSAY_RESULTS_DIR/up"; while :; do sleep 1; done`, 1)
	job.TimeoutSeconds = 1
	a := h.run(t, job)
	if m := mustEnd(t, a, 0); m.Outcome != evidence.OutcomeTimedOut || m.ExitCode == 0 {
		t.Errorf("outcome %s with code %d, want timed_out with another code than 0", m.Outcome, m.ExitCode)
	}
}

func refused(t *testing.T, h Harness) {
	target := h.New(t)
	a := h.prepare(t, target, bash("true", 1))
	// A file where the ranks' directory has to be is something no target can run in.
	if err := os.WriteFile(filepath.Join(a.Dir, "ranks"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := target.Submit(t.Context(), a)
	if !errors.Is(err, deploy.ErrRefused) {
		t.Errorf("submit gave %v, want a refusal", err)
	}
}

func contextEnd(t *testing.T, h Harness) {
	target := h.New(t)
	a := h.prepare(t, target, bash(`sleep 0.3; exit 4`, 1))
	ctx, cancel := context.WithCancel(t.Context())
	handle, err := target.Submit(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if w, ok := target.(deploy.Waiter); ok {
		if err := w.Wait(ctx, []deploy.Handle{handle}); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting with an ended context gave %v", err)
		}
	}
	h.await(t, target, handle)
	if m := mustEnd(t, a, 0); m.ExitCode != 4 {
		t.Errorf("exit code %d, want 4: the end of the context touched the job", m.ExitCode)
	}
}

func manyAtOnce(t *testing.T, h Harness) {
	target := h.New(t)
	var wg sync.WaitGroup
	ports := make([]string, 20)
	for i := range ports {
		wg.Go(func() {
			a := h.prepare(t, target, bash(`echo "$MASTER_PORT"`, 1))
			handle, err := target.Submit(t.Context(), a)
			if err != nil {
				t.Errorf("submit %d: %v", i, err)
				return
			}
			for seen := evidence.PhaseUnknown; !seen.Over(); {
				wait(t.Context(), target, handle)
				obs, err := target.Observe(t.Context(), []deploy.Handle{handle})
				if err != nil {
					t.Errorf("observe %d: %v", i, err)
					return
				}
				seen = obs[0].Phase
			}
			data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, 0), rundir.StdoutFile))
			if err != nil {
				t.Error(err)
			}
			ports[i] = strings.TrimSpace(string(data))
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for i, p := range ports {
		if before, twice := seen[p]; twice {
			t.Errorf("jobs %d and %d were given the same port %q", before, i, p)
		}
		seen[p] = i
	}
}

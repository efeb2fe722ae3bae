package deploytest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

func exitCodes(t *testing.T, h Harness) {
	a, v := h.run(t, bashOn(2, 2, `exit "$RANK"`))
	for rank := range 4 {
		m := mustEnd(t, a, rank)
		if m.ExitCode != rank || m.Outcome != evidence.OutcomeExited {
			t.Errorf("rank %d: %s with code %d, want exited with %d", rank, m.Outcome, m.ExitCode, rank)
		}
	}
	wantVerdict(t, v, verdict.Fail, verdict.CodeRankExit)
	for rank := 1; rank < 4; rank++ {
		says := fmt.Sprintf("exited %d", rank)
		if !slices.ContainsFunc(v.Reasons, func(r verdict.Reason) bool { return strings.Contains(r.Message, says) }) {
			t.Errorf("no reason says %q: %v", says, v.Reasons)
		}
	}
}

// endOfOne lets a rank fail on one node, while the one on the other has the
// measurement still to make: targets that end what is left, at once or after some
// time, are told not to.
func endOfOne(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bashOn(2, 1, untilGo+`[ "$RANK" = 0 ] && exit 3; sleep 1.5; echo "performance: 5 triadGBs"`))
	h.awaitUp(t, a, 0)
	h.awaitUp(t, a, 1)
	letGo(t, a, 0)
	h.awaitFile(t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.EndFile))
	if seen := observe(t, target, handle); seen.Phase.Over() {
		t.Errorf("of a job with a rank that runs it is said: %+v", seen)
	}
	letGo(t, a, 1)
	seen := h.await(t, target, handle)
	if m := mustEnd(t, a, 1); m.Outcome != evidence.OutcomeExited || m.ExitCode != 0 {
		t.Errorf("rank 1: %s with code %d, want exited with 0", m.Outcome, m.ExitCode)
	}
	wantVerdict(t, judge(t, a, handle, seen, false), verdict.Pass, verdict.CodeRankExit)
}

func deathBySignal(t *testing.T, h Harness) {
	a, v := h.run(t, bash(`kill -SEGV $$; sleep 60`, 1))
	m := mustEnd(t, a, 0)
	if m.Outcome != evidence.OutcomeSignaled || m.Signal != "SIGSEGV" || m.ExitCode != 128+11 {
		t.Errorf("outcome %s, signal %q, code %d; want signaled, SIGSEGV, 139", m.Outcome, m.Signal, m.ExitCode)
	}
	wantVerdict(t, v, verdict.Fail, verdict.CodeRankSignal)
}

// killedWrapper kills a wrapper whose rank has printed a measurement: nobody is
// left to vouch for it.
func killedWrapper(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bash(`echo "performance: 5 triadGBs"; echo up > "$ASSAY_RESULTS_DIR/up"; sleep 300`, 1))
	h.awaitUp(t, a, 0)
	h.KillRank(t, a, 0)
	seen := h.await(t, target, handle)
	if m, ok := end(t, a, 0); ok {
		t.Errorf("a wrapper that was killed left an end marker: %+v", m)
	}
	wantVerdict(t, judge(t, a, handle, seen, false), verdict.Fail, verdict.CodeRankLost)
	h.wantNothingLeft(t, a, handle)
}

func outputIsComplete(t *testing.T, h Harness) {
	a, _ := h.run(t, bash(`for i in {1..20000}; do echo "out $i"; echo "err $i" >&2; done; printf 'no newline'`, 1))
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
		"*", "~", "a;b|c&d>e<f", `back\slash`, "é 漢字 🜚", "!history", "%s%d", "%j %N", "#comment", "=", "a,b", "\x01\x7f", "trailing\n",
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
	a, _ := h.run(t, job)
	if m := mustEnd(t, a, 0); m.ExitCode != 0 {
		t.Fatalf("exit code %d: %s", m.ExitCode, output(t, a, 0, rundir.StderrFile))
	}
	if diff := cmp.Diff(want.String(), output(t, a, 0, rundir.StdoutFile)); diff != "" {
		t.Errorf("arguments or environment changed on the way:\n%s", diff)
	}
}

// hostileDirectory runs a job whose directory has a name that breaks careless
// quoting.
func hostileDirectory(t *testing.T, h Harness) {
	target := h.New(t)
	run := filepath.Join(h.Dir(t), "it's a \"run\"", `$(touch x) %j%% \n #1; é=`)
	a := h.prepareIn(t, target, bash(`pwd; echo "$ASSAY_RESULTS_DIR"`, 1), run)
	handle := h.submit(t, target, a)
	seen := h.await(t, target, handle)
	if m := mustEnd(t, a, 0); m.ExitCode != 0 {
		t.Errorf("exit code %d: %s", m.ExitCode, output(t, a, 0, rundir.StderrFile))
	}
	out := output(t, a, 0, rundir.StdoutFile)
	if !strings.HasSuffix(out, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.ResultsDir)+"\n") {
		t.Errorf("the rank was told other directories:\n%s", out)
	}
	if seen.Bad {
		t.Errorf("the target says of a job whose rank ended with 0: %+v", seen)
	}
	h.wantNothingLeft(t, a, handle)
}

func rankEnvironment(t *testing.T, h Harness) {
	names := []string{"RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK", "NNODES", "NPROC_PER_NODE", "ASSAY_RUN_ID", "ASSAY_RANK", "ASSAY_NRANKS", "MAD_MODEL_NAME", "MAD_DEPLOYMENT_TYPE"}
	job := bashOn(2, 2, `for v in "$@"; do printf '%s=%s\n' "$v" "${!v-(unset)}"; done; echo "meet $MASTER_ADDR:$MASTER_PORT"; [ -d "$ASSAY_RESULTS_DIR" ]`)
	job.Program.Command = append(append(job.Program.Command, "argv0"), names...)
	a, _ := h.run(t, job)
	meet := map[string]bool{}
	nodes := make([]string, 4)
	for rank := range 4 {
		m := mustEnd(t, a, rank)
		if m.ExitCode != 0 {
			t.Fatalf("rank %d: exit code %d", rank, m.ExitCode)
		}
		lines := strings.Split(strings.TrimSpace(output(t, a, rank, rundir.StdoutFile)), "\n")
		got, last := lines[:len(lines)-1], lines[len(lines)-1]
		local := rank % 2
		if h.Isolated {
			local = 0
		}
		want := []string{
			"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=4", "LOCAL_RANK=" + strconv.Itoa(local), "NODE_RANK=" + strconv.Itoa(rank/2),
			"NNODES=2", "NPROC_PER_NODE=2", "ASSAY_RUN_ID=run", "ASSAY_RANK=" + strconv.Itoa(rank), "ASSAY_NRANKS=4",
			"MAD_MODEL_NAME=job", "MAD_DEPLOYMENT_TYPE=test",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rank %d:\n%s", rank, diff)
		}
		meet[last] = true
		nodes[rank] = m.Node
	}
	if len(meet) != 1 || meet["meet :"] || meet["meet 127.0.0.1:0"] {
		t.Errorf("the ranks do not agree where to meet: %v", meet)
	}
	if nodes[0] == "" || nodes[0] != nodes[1] || nodes[2] != nodes[3] || (nodes[0] != nodes[2]) != h.Nodes {
		t.Errorf("the ranks name their nodes %q; two nodes have two names: %t", nodes, h.Nodes)
	}
}

// timeLimit gives a rank that is deaf to TERM a second.
func timeLimit(t *testing.T, h Harness) {
	job := bash(`trap '' TERM; echo up > "$ASSAY_RESULTS_DIR/up"; while :; do sleep 1; done`, 1)
	job.TimeoutSeconds = 1
	a, v := h.run(t, job)
	if m := mustEnd(t, a, 0); m.Outcome != evidence.OutcomeTimedOut || m.ExitCode == 0 {
		t.Errorf("outcome %s with code %d, want timed_out with another code than 0", m.Outcome, m.ExitCode)
	}
	wantVerdict(t, v, verdict.Fail, verdict.CodeRankTimeout)
}

// nothingLeft runs a workload that leaves a daemon behind: a session of its own,
// deaf to TERM, that holds the output open, and without a trace of the job in its
// arguments and environment.
func nothingLeft(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bash(`pid=$ASSAY_RESULTS_DIR/pid
		env -i PATH="$PATH" setsid bash -c 'trap "" TERM HUP; echo $$; while :; do sleep 1; done' > "$pid" &
		while [ ! -s "$pid" ]; do sleep 0.01; done; exit 0`, 1))
	h.await(t, target, handle)
	if m := mustEnd(t, a, 0); m.ExitCode != 0 {
		t.Errorf("exit code %d, want 0: what was left behind is no failure", m.ExitCode)
	}
	if h.Isolated {
		h.wantNothingLeft(t, a, handle)
		return
	}
	data, err := os.ReadFile(resultFile(a, 0, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	h.eventually(t, func() string {
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
			return fmt.Sprintf("process %d of the workload still runs", pid)
		}
		return ""
	})
	h.wantNothingLeft(t, a, handle)
}

// begun lists the ranks that left a begin marker.
func begun(t *testing.T, dir string, ranks int) []int {
	t.Helper()
	var found []int
	for rank := range ranks {
		var b evidence.Begin
		data, err := os.ReadFile(filepath.Join(rundir.RankDir(dir, rank), rundir.BeginFile))
		if err == nil && json.Unmarshal(data, &b) == nil {
			found = append(found, rank)
		}
	}
	return found
}

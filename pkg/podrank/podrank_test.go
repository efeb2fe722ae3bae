package podrank_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/pod"
	"assay/pkg/rundir"
)

// tree gives the files below a directory by their names.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		name, rerr := filepath.Rel(dir, path)
		out[name] = string(data)
		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Nothing is shared: whoever has the log and the termination message has what the
// rank left.
func TestUnshared(t *testing.T) {
	f := newFixture(t, `
		echo "$RANK $WORLD_SIZE $MASTER_ADDR $PWD $MODEL" >&2
		echo 'performance: 12.5 GBs'
		mkdir -p "$ASSAY_RESULTS_DIR/sub" && echo kept > "$ASSAY_RESULTS_DIR/sub/a.txt" && ln -s /etc/passwd "$ASSAY_RESULTS_DIR/link"
		echo work > scratch
		bash ./script.sh
		printf 'no end'
		exit 3`)
	f.write(filepath.Join(f.call.ModelDir, "script.sh"), "echo shipped\n")
	if code := f.run(); code != 3 {
		t.Fatalf("exit code %d, want 3", code)
	}
	dir := rundir.RankDir(f.call.AttemptDir, 1)
	said, files, omitted, err := f.received()
	if err != nil {
		t.Fatal(err)
	}
	if want := "performance: 12.5 GBs\nshipped\nno end"; said != want || f.read(filepath.Join(dir, "stdout")) != want {
		t.Errorf("read along: %q", said)
	}
	if !strings.HasPrefix(f.err.String(), "1 2 127.0.0.1 "+dir+"/work") {
		t.Errorf("stderr %q", f.err.String())
	}
	want := tree(t, dir)
	delete(want, "work/scratch")
	got := map[string]string{}
	for name, data := range files {
		got[name] = string(data)
	}
	if d := cmp.Diff(want, got); d != "" || got["results/sub/a.txt"] != "kept\n" || got["end.json"] == "" {
		t.Errorf("files (-left +received):\n%s", d)
	}
	if d := cmp.Diff([]pod.Omitted{{Name: "results/link", Why: "it is no regular file"}}, omitted); d != "" {
		t.Errorf("omitted:\n%s", d)
	}
	m := f.message()
	if m.End.Identity != f.attempt.Identity(1) || m.End.ExitCode != 3 || m.End.Host != "job-1-x7k2p" || m.End.Node != "node-b" ||
		len(m.Metrics.Readings) != 1 || m.Metrics.Readings[0].Value != 12.5 || m.End.Lost != "" {
		t.Errorf("message %+v", m)
	}
	var end evidence.End
	if err := json.Unmarshal(files["end.json"], &end); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(end, m.End); d != "" {
		t.Errorf("the end marker and the message differ:\n%s", d)
	}
}

// The attempt directory is shared when what lies at its path is of the same
// attempt, and then nobody has to be told by the log.
func TestShared(t *testing.T) {
	for name, tt := range map[string]struct {
		nonce   string
		backoff int
		shared  bool
	}{
		"the same attempt":          {"0123456789abcdef", 0, true},
		"another run":               {"fedcba9876543210", 0, false},
		"ranks that may come again": {"0123456789abcdef", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "echo out")
			f.attempt.Job.K8s.BackoffLimit = tt.backoff
			there := f.attempt
			there.Nonce = tt.nonce
			before := filepath.Join(f.attempt.Dir, rundir.JobFile)
			f.writeJob(before, there)
			text := f.read(before)
			if code := f.run(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			dir := f.attempt.Dir
			if !tt.shared {
				dir = f.call.AttemptDir
			}
			if f.read(filepath.Join(rundir.RankDir(dir, 1), "stdout")) != "out\n" || f.read(before) != text {
				t.Error("the rank is not where it should be, or changed the job file")
			}
			if records := strings.Contains(f.out.String(), "assay-record"); records == tt.shared {
				t.Errorf("log %q", f.out.String())
			}
			if m := f.message(); m.End.Outcome != evidence.OutcomeExited {
				t.Errorf("message %+v", m)
			}
		})
	}
}

func TestResultsVolume(t *testing.T) {
	f := newFixture(t, `echo out; echo a > "$ASSAY_RESULTS_DIR/a"; mkfifo "$ASSAY_RESULTS_DIR/pipe"; echo b > scratch`)
	volume := t.TempDir()
	f.call.Env = append(f.call.Env, pod.ResultsVariable+"="+volume)
	for start := range 3 { // the pod of a rank may be started again
		if err := os.RemoveAll(f.call.AttemptDir); err != nil {
			t.Fatal(err)
		}
		if code := f.run(); code != 0 {
			t.Fatalf("start %d: exit code %d", start, code)
		}
	}
	ranks := filepath.Join(volume, "r1", "job", "1", "ranks")
	want := tree(t, rundir.RankDir(f.call.AttemptDir, 1))
	delete(want, "work/scratch")
	if d := cmp.Diff(want, tree(t, filepath.Join(ranks, "1"))); d != "" || want["results/a"] != "a\n" {
		t.Errorf("(-left +copied):\n%s", d)
	}
	var names []string
	entries, err := os.ReadDir(ranks)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"1", "1.start-1", "1.start-2"}, names); d != "" {
		t.Errorf("copies:\n%s", d)
	}
}

// A results volume that takes nothing costs a remark, in all that is handed over.
func TestResultsVolumeFails(t *testing.T) {
	f := newFixture(t, `exit 5`)
	volume := filepath.Join(t.TempDir(), "file")
	f.write(volume, "")
	f.call.Env = append(f.call.Env, pod.ResultsVariable+"="+volume)
	if code := f.run(); code != 5 {
		t.Errorf("exit code %d, want that of the workload", code)
	}
	_, files, _, err := f.received()
	var end evidence.End
	if err := errors.Join(err, json.Unmarshal(files["end.json"], &end)); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{f.message().End.Lost, end.Lost, f.err.String()} {
		if !strings.Contains(lost, "results volume") || !strings.Contains(lost, "not a directory") {
			t.Errorf("lost: %q", lost)
		}
	}
}

// What cannot be handed over is said, and the exit code is that of the workload.
func TestHandOverFails(t *testing.T) {
	f := newFixture(t, "echo out; exit 7")
	if err := os.Remove(f.call.TerminationLog); err != nil {
		t.Fatal(err)
	}
	if code := f.run(); code != 7 || !strings.Contains(f.err.String(), "the termination message could not be written") {
		t.Errorf("exit code %d, stderr %q", code, f.err.String())
	}

	f = newFixture(t, "for i in {1..20000}; do echo a line that nobody reads; done; exit 7")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	cmd := f.command()
	cmd.Stdout = w
	code := exitCode(t, cmd.Run())
	_ = w.Close()
	if m := f.message(); code != 7 || m.End.ExitCode != 7 || !strings.Contains(f.err.String(), "could not be sent through the log") {
		t.Errorf("exit code %d, stderr %q, message %+v", code, f.err.String(), m)
	}
	out := f.read(filepath.Join(rundir.RankDir(f.call.AttemptDir, 1), "stdout"))
	if lines := strings.Count(out, "\n"); lines != 20000 {
		t.Errorf("the log file has %d lines, want all", lines)
	}
}

// Where there is no end marker the message says why, and is no record.
func TestNothingStarted(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f *fixture)
		code   int
		want   string
	}{
		"no index":    {func(f *fixture) { f.call.Env = f.call.Env[:1] }, 6, "JOB_COMPLETION_INDEX is"},
		"no rank":     {func(f *fixture) { f.call.Env = append(f.call.Env, pod.IndexVariable+"=2") }, 4, "rank 2 is not one of the 2 ranks"},
		"a bad job":   {func(f *fixture) { f.attempt.Version = 9 }, 4, "format version 9"},
		"no room":     {func(f *fixture) { f.write(f.call.AttemptDir, "") }, 6, "nothing was started"},
		"begun twice": {func(f *fixture) { f.run() }, 6, "has already begun"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "true")
			tt.change(f)
			code := f.run()
			text := f.read(f.call.TerminationLog)
			if _, err := pod.DecodeMessage([]byte(text)); code != tt.code || err == nil || !strings.HasPrefix(text, "assay rank ") || !strings.Contains(text, tt.want) {
				t.Errorf("exit code %d, message %q; want %d, %q", code, text, tt.code, tt.want)
			}
		})
	}
}

func TestRootWait(t *testing.T) {
	f := newFixture(t, "true")
	f.call.MasterAddr, f.attempt.Job.K8s.RootWaitSeconds = "job-0.no-such-name.invalid", 1
	f.attempt.Job.Launcher = "torchrun" // whose ranks meet
	if code := f.run(); code != 6 {
		t.Errorf("exit code %d", code)
	}
	if end := f.message().End; end.Code != "LAUNCH_REFUSED" || !strings.Contains(end.Message, "rank 0's name job-0.no-such-name.invalid did not resolve within 1 s") {
		t.Errorf("end %+v", end)
	}
}

// As the first process of a pod the rank reaps what others leave, ends it, and has
// said how it ended before the kubelet's patience is over.
func TestFirstProcess(t *testing.T) {
	unshare, err := exec.LookPath("unshare")
	if err == nil {
		err = exec.Command(unshare, "--pid", "--fork", "--mount-proc", "true").Run()
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no process namespaces: %v", err)
		}
		t.Skipf("no process namespaces: %v", err)
	}
	f := newFixture(t, `
		for i in 1 2 3; do (setsid sleep 600 &) ; (true &) ; done
		echo $$ > pid.new && mv pid.new "$ASSAY_RESULTS_DIR/pid"
		trap 'echo told; sleep 600 & wait' TERM
		while :; do sleep 0.1; done`)
	cmd := f.command(unshare, "--pid", "--fork", "--mount-proc")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := rundir.RankDir(f.call.AttemptDir, 1)
	for i := 0; ; i++ {
		if _, err := os.Stat(filepath.Join(dir, "results", "pid")); err == nil {
			break
		}
		if i == 1000 {
			t.Fatal("the workload did not start")
		}
		time.Sleep(10 * time.Millisecond)
	}
	first := childOf(t, cmd.Process.Pid)
	if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	var begin evidence.Begin
	if err := json.Unmarshal([]byte(f.read(filepath.Join(dir, "begin.json"))), &begin); err != nil || begin.PID != 1 {
		t.Errorf("it was process %d, %v", begin.PID, err)
	}
	m := f.message()
	if m.End.Outcome != evidence.OutcomeStopped || m.End.Signal != "SIGTERM" || strings.Contains(m.End.Message, "could not be killed") {
		t.Errorf("end %+v", m.End)
	}
	if said, _, _, err := f.received(); err != nil || !slices.Contains(strings.Split(said, "\n"), "told") {
		t.Errorf("the workload said %q, %v", said, err)
	}
}

// childOf is the only child of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		if words := strings.Fields(rest); len(words) > 1 && words[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return child
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}

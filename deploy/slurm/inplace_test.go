package slurm

import (
	"context"
	"errors"
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

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/procfs"
)

func TestDecideInPlace(t *testing.T) {
	ref := batch.Ref{ID: "41/job-1", Name: "assay-n-job-1", User: "1001", More: map[string]string{moreAllocation: "41", moreHost: "login", moreNodes: "node[1-2]"}}
	running := map[string]row{"41": {job: "41", user: "1001", state: "RUNNING"}}
	with := func(state, user string) map[string]row {
		return map[string]row{"41": {job: "41", user: user, state: state}}
	}
	stepped := map[string]step{ref.Name: {"41.3"}}
	away := errors.New("no controller")
	for name, c := range map[string]struct {
		local
		outside
		want      string // phase, word and flags
		uncertain bool
	}{
		"runs":                                {local{here: true, running: true}, outside{allocations: running}, "running RUNNING", false},
		"runs, nobody to ask":                 {local{here: true, running: true}, outside{err: away}, "running RUNNING", false},
		"runs on though the allocation ended": {local{here: true, running: true}, outside{allocations: with("TIMEOUT", "1001")}, "running COMPLETING draining", false},
		"ended clean":                         {local{here: true, ended: true}, outside{err: away}, "ended COMPLETED clean", false},
		"ended with a code":                   {local{here: true, ended: true, code: 3}, outside{}, "ended FAILED bad script", false},
		"ended, seen from elsewhere":          {local{ended: true, code: 1}, outside{err: away}, "ended FAILED bad script", false},
		"told to end":                         {local{here: true, ended: true, code: 15}, outside{allocations: running}, "ended FAILED bad script", false},
		"ended with its allocation":           {local{here: true, ended: true, code: 15}, outside{allocations: with("CANCELLED by 1001", "1001")}, "ended CANCELLED bad", false},
		"ended as the allocation did well":    {local{here: true, ended: true, code: 143}, outside{allocations: with("COMPLETED", "1001")}, "ended FAILED bad script", false},
		"failed before the allocation ended":  {local{here: true, ended: true, code: 3}, outside{allocations: with("TIMEOUT", "1001")}, "ended FAILED bad script", false},
		"gone without a code":                 {local{here: true}, outside{allocations: running}, "ended LOST bad", false},
		"gone, nobody to ask":                 {local{here: true}, outside{err: away}, "ended LOST bad", false},
		"gone with a reboot":                  {local{here: true, rebooted: true}, outside{allocations: running}, "ended LOST bad", false},
		"gone, the step runs":                 {local{here: true}, outside{allocations: running, steps: stepped}, "running RUNNING", false},
		"elsewhere, the step runs":            {local{}, outside{allocations: running, steps: stepped}, "running RUNNING", false},
		"elsewhere, no step":                  {local{}, outside{allocations: running}, "", true},
		"elsewhere, nobody to ask":            {local{}, outside{err: away}, "", true},
		"elsewhere, the allocation timed out": {local{}, outside{allocations: with("TIMEOUT", "1001")}, "ended TIMEOUT bad", false},
		"elsewhere, the allocation completed": {local{}, outside{allocations: with("COMPLETED", "1001")}, "ended LOST bad", false},
		"elsewhere, the allocation is purged": {local{}, outside{allocations: map[string]row{}}, "ended LOST bad", false},
		"elsewhere, the id is someone else's": {local{}, outside{allocations: with("RUNNING", "7")}, "ended LOST bad", false},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := decideInPlace(ref, c.local, c.outside)
			if (err != nil) != c.uncertain {
				t.Fatalf("error %v", err)
			}
			if got := inWords(a); got != c.want {
				t.Errorf("got %q, want %q (%s)", got, c.want, a.Detail)
			}
			if a.Known && (a.Nodes != "node[1-2]" || !a.Started) {
				t.Errorf("nodes %q, started %v", a.Nodes, a.Started)
			}
		})
	}
}

func inWords(a batch.Answer) string {
	if !a.Known {
		return ""
	}
	words := []string{a.Phase.String(), a.Word}
	for _, f := range []struct {
		is   bool
		word string
	}{{a.Bad, "bad"}, {a.Clean, "clean"}, {a.Script, "script"}, {a.Draining, "draining"}} {
		if f.is {
			words = append(words, f.word)
		}
	}
	return strings.Join(words, " ")
}

func TestHistoryInPlace(t *testing.T) {
	ref := func(name string) batch.Ref {
		return batch.Ref{ID: name, Name: name, More: map[string]string{moreAllocation: "41"}}
	}
	rows := parseHistory(strings.Join([]string{
		"41|RUNNING|0:0|0:0|0|1790000000|node[1-2]|None|bash",
		"41.0|COMPLETED|0:0||0|1790000000|node[1-2]||assay-n-a-1",
		"41.1|OUT_OF_MEMORY|0:125||0|1790000000|node[1-2]||assay-n-b-1",
		"41.2|FAILED|3:0||0|1790000000|node[1-2]||assay-n-c-1",
		"41.3|RUNNING|0:0||0|1790000000|node[1-2]||assay-n-d-1",
		"41.4|FAILED|15:0||0|1790000000|node[1-2]||assay-n-f-1",
		"42.0|FAILED|1:0||0|1790000000|node3||assay-n-e-1",
	}, "\n"))
	refs := []batch.Ref{ref("assay-n-a-1"), ref("assay-n-b-1"), ref("assay-n-c-1"), ref("assay-n-d-1"), ref("assay-n-e-1"), ref("assay-n-f-1")}
	out := make([]batch.Answer, len(refs))
	historyInPlace(rows, refs, []int{0, 1, 2, 3, 4, 5}, map[string]batch.Answer{"assay-n-f-1": {Word: "TIMEOUT", Detail: "the allocation ended"}}, out)
	var got []string
	for _, a := range out {
		got = append(got, inWords(a)+"; "+a.Detail)
	}
	want := []string{
		"ended COMPLETED clean; step 41.0", "ended OUT_OF_MEMORY bad; step 41.1: exit status 0:125",
		"ended FAILED bad; step 41.2: exit code 3", "running RUNNING; step 41.3", "; ",
		"ended TIMEOUT bad; the allocation ended; step 41.4: exit code 15",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestInPlaceEnv: what names the allocation is kept; what would be an option of
// srun, tokens and the variables of a step are not.
func TestInPlaceEnv(t *testing.T) {
	s := &scheduler{tools: tools{env: []string{"PATH=/bin", "TOKEN=x", "SBATCH_PARTITION=x"}}, opt: Options{Env: []string{
		"PATH=/bin", "TOKEN=x", "SLURM_JOB_ID=41", "SLURM_JOB_NODELIST=node[1-2]", "SLURM_NTASKS=7", "SLURM_NTASKS_PER_NODE=7",
		"SLURM_DISTRIBUTION=cyclic", "SLURM_STEP_NODELIST=node9", "SLURM_KILL_BAD_EXIT=1", "SLURM_WAIT=1", "SLURM_CPU_BIND=rank",
		"SLURM_EXPORT_ENV=ALL", "SLURM_RESTART_COUNT=3", "SLURM_JWT=x", "SLURM_OPEN_MODE=t", "SLURM_TIMELIMIT=1", "SRUN_EXPORT_ENV=ALL",
	}}}
	want := []string{"PATH=/bin", "SLURM_JOB_ID=41", "SLURM_JOB_NODELIST=node[1-2]"}
	if d := cmp.Diff(want, s.inPlaceEnv()); d != "" {
		t.Error(d)
	}
	s.opt.Env = append(s.opt.Env, "SLURM_STEP_ID=0")
	if d := cmp.Diff(append(want, "SLURM_OVERLAP=1"), s.inPlaceEnv()); d != "" {
		t.Error(d)
	}
}

// inAllocation returns a scheduler that believes to be inside an allocation, whose
// commands are scripts by name, and an attempt whose script is given.
func inAllocation(t *testing.T, script string, commands map[string]string) (*scheduler, plan.Attempt) {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	for name, text := range commands {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/bash\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, batch.ScriptFile), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "SLURM_JOB_ID=41", "SLURM_JOB_NODELIST=node[1-2]"}
	s := New(Options{Env: env}).s
	return s, plan.Attempt{Nonce: "0123456789abcdef", Number: 1, Dir: dir, Job: plan.Job{ID: "job", Key: "job", NNodes: 2, WorldSize: 2}}
}

// squeueRuns is an squeue that lists the allocation, and no step.
func squeueRuns() map[string]string {
	return map[string]string{"squeue": `case "$*" in
*--steps*) ;;
*) echo "41|RUNNING|0|0|1790000000|` + uid() + `|node[1-2]|bash|None" ;;
esac`}
}

func submitHere(t *testing.T, s *scheduler, a plan.Attempt) batch.Ref {
	t.Helper()
	ref, err := s.Submit(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session, _ := sessionOf(ref)
		for _, p := range session {
			_ = p.Handle().Signal(syscall.SIGKILL)
		}
	})
	return ref
}

func ask(t *testing.T, s *scheduler, ref batch.Ref) batch.Answer {
	t.Helper()
	out, err := s.Queue(context.Background(), []batch.Ref{ref})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func awaitEnd(t *testing.T, s *scheduler, ref batch.Ref) batch.Answer {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if a := ask(t, s, ref); a.Phase == evidence.PhaseEnded {
			return a
		}
	}
	t.Fatal("the job does not end")
	return batch.Answer{}
}

func TestInPlaceKeepsExitCode(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0": "ended COMPLETED clean", "exit 3": "ended FAILED bad script", "kill -9 $$": "ended FAILED bad script",
		"kill -TERM $$": "ended FAILED bad script", "syntax (": "ended FAILED bad script",
	} {
		s, a := inAllocation(t, script, squeueRuns())
		ref := submitHere(t, s, a)
		if got := inWords(awaitEnd(t, s, ref)); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
		// It is there for any later process, and again and again.
		other, _ := inAllocation(t, "", squeueRuns())
		if got := inWords(ask(t, other, ref)); got != want {
			t.Errorf("%s: another process sees %s", script, got)
		}
	}
}

func TestInPlaceIsASessionOfItsOwn(t *testing.T) {
	s, a := inAllocation(t, `echo "$SLURM_JOB_ID in $PWD"; echo err >&2; exec sleep 300`, squeueRuns())
	ref := submitHere(t, s, a)
	if got := inWords(ask(t, s, ref)); got != "running RUNNING" {
		t.Fatalf("it is %s", got)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if said, err := os.ReadFile(ref.Output); err == nil && strings.HasSuffix(string(said), "err\n") {
			break // else it would be killed before it has said anything
		}
	}
	pid, _ := strconv.Atoi(ref.More[morePID])
	p, err := procfs.Read(pid)
	if err != nil || p.Session != pid || p.Group != pid {
		t.Fatalf("%+v, %v", p, err)
	}
	// A process that was cut short before it had the handle finds the job.
	found, ok, err := s.findInPlace(context.Background(), a, alloc{"41", "node[1-2]"})
	if d := cmp.Diff(ref, found); d != "" || !ok || err != nil {
		t.Errorf("found %v, %v: %s", ok, err, d)
	}
	// The keeper of the code is killed: what it started is still the job.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := inWords(ask(t, s, ref)); got != "running RUNNING" {
		t.Errorf("without its keeper it is %s", got)
	}
	session, err := sessionOf(ref)
	if err != nil || len(session) == 0 {
		t.Fatalf("%v, %v", session, err)
	}
	for _, p := range session {
		if err := p.Handle().Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if got := inWords(awaitEnd(t, s, ref)); got != "ended LOST bad" {
		t.Errorf("killed, it is %s", got)
	}
	output, err := os.ReadFile(ref.Output)
	if err != nil || string(output) != "41 in "+a.Dir+"\nerr\n" {
		t.Errorf("it printed %q, %v", output, err)
	}
}

func TestInPlaceFindsNothingThatWasNotStarted(t *testing.T) {
	s, a := inAllocation(t, "", squeueRuns())
	if _, found, err := s.findInPlace(context.Background(), a, alloc{"41", "node[1-2]"}); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestInPlaceRefusesMoreNodesThanThereAre(t *testing.T) {
	s, a := inAllocation(t, "exit 0", squeueRuns())
	a.Job.NNodes = 3
	_, err := s.Submit(context.Background(), a)
	if !errors.Is(err, deploy.ErrRefused) || !strings.Contains(err.Error(), "needs 3 nodes and allocation 41 has 2 (node[1-2])") {
		t.Errorf("%v", err)
	}
}

// TestCancelInPlace: a step is asked to end through SLURM; before there is one,
// an srun that waits for nodes is ended; what keeps the code is spared.
func TestCancelInPlace(t *testing.T) {
	t.Run("step", func(t *testing.T) {
		commands := squeueRuns()
		commands["squeue"] = `case "$*" in
*--steps*) echo "41.5|` + "assay-0123456789ab-job-1" + `" ;;
esac`
		commands["scancel"] = `echo "$@" >>"$(dirname "$0")/asked"`
		s, a := inAllocation(t, "exec sleep 300", commands)
		ref := submitHere(t, s, a)
		for range 2 {
			if err := s.Cancel(context.Background(), ref); err != nil {
				t.Fatal(err)
			}
		}
		bin, _, _ := strings.Cut(strings.TrimPrefix(s.opt.Env[0], "PATH="), ":")
		asked, err := os.ReadFile(filepath.Join(bin, "asked"))
		if want := "--signal=TERM 41.5\n--signal=TERM 41.5\n"; err != nil || string(asked) != want {
			t.Errorf("scancel was asked %q, want %q (%v)", asked, want, err)
		}
	})
	t.Run("waiting srun", func(t *testing.T) {
		commands := squeueRuns()
		commands["srun"] = `echo started; exec -a srun sleep 300`
		s, a := inAllocation(t, "srun\nexit $?", commands)
		ref := submitHere(t, s, a)
		if err := s.Cancel(context.Background(), ref); err != nil {
			t.Fatal(err)
		}
		if got := awaitEnd(t, s, ref); got.Detail != "the script ended with exit code 143" {
			t.Errorf("%+v", got)
		}
		if err := s.Cancel(context.Background(), ref); err != nil {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestKindsOfProcesses(t *testing.T) {
	for want, args := range map[kind][]string{
		isKeeper: append([]string{"/usr/bin/bash"}, keeperArgs("/runs/x")...), isSrun: {"/usr/bin/srun", "--nodes=2"},
		isRank: {"/runs/.assay/assay-1", "rank", "--job"}, isOther: {"bash", "/runs/x/job.sh"},
	} {
		if got := kindOf(args); got != want {
			t.Errorf("%q is %d, want %d", args, got, want)
		}
	}
}

func TestInsideThereIsNoQueue(t *testing.T) {
	if New(Options{Env: []string{"SLURM_JOB_ID=41"}}).Queues() {
		t.Error("jobs inside an allocation are handed over all at once")
	}
	if !New(Options{}).Queues() {
		t.Error("jobs are not handed to the queue")
	}
}

func TestParseSteps(t *testing.T) {
	got := parseSteps("41.0                |assay-n-a-1      \n41.batch|batch\nsqueue: a message\n")
	want := map[string]step{"assay-n-a-1": {"41.0"}, "batch": {"41.batch"}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(step{})); d != "" {
		t.Error(d)
	}
}

// TestKeeperArguments: the arguments name one attempt, whatever its path is.
func TestKeeperArguments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b'$(x)")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, batch.ScriptFile), []byte("exit 5"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", keeperArgs(dir)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, ended := readCode(dir); code != 5 || !ended {
		t.Errorf("code %d, %v", code, ended)
	}
	if slices.Equal(keeperArgs(dir), keeperArgs(dir+"2")) {
		t.Error("two attempts cannot be told apart")
	}
}

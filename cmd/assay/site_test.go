//go:build slurm || k8s || docker

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// site is a directory in which a test runs assay, and the environment it gives it.
// The first word of PATH and every variable can be set for one site alone.
type site struct {
	t   *testing.T
	dir string
	bin string
	env map[string]string
}

// command is a command with the site's environment, in its directory.
func (s *site) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = s.dir
	for _, k := range slices.Sorted(maps.Keys(s.env)) {
		cmd.Env = append(cmd.Env, k+"="+s.env[k])
	}
	return cmd
}

// tool runs a command of the cluster, such as scontrol, and returns what it
// printed. The test fails when it fails.
func (s *site) tool(name string, args ...string) string {
	s.t.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// workload is an entry of a manifest: a bash script, and whatever else is to stand in
// the model.
type workload struct {
	name   string
	script string
	model  map[string]any
}

// judged is what a command of assay came to.
type judged struct {
	t              *testing.T
	code           int // -1 when a signal ended it
	stdout, stderr string
	report.Run     // of stdout, when it is a verdict object
}

// assay runs assay to its end.
func (s *site) assay(args ...string) judged {
	s.t.Helper()
	return s.start(args...).wait()
}

// runJSON runs m.json and returns the verdict object. The id of the run is "r".
func (s *site) runJSON(flags ...string) judged {
	s.t.Helper()
	return s.startRun(flags...).wait()
}

// startRun begins what runJSON does and does not wait.
func (s *site) startRun(flags ...string) *running {
	s.t.Helper()
	return s.start(append([]string{"run", "-m", "m.json", "--run-id", "r", "--json"}, flags...)...)
}

// running is an assay in the background, in a session of its own.
type running struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan struct{}
}

// start begins an assay. It is killed at the end of the test, if it still runs.
func (s *site) start(args ...string) *running {
	s.t.Helper()
	r := &running{t: s.t, cmd: s.command(s.bin, args...), done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = r.cmd.Wait() // the exit code is asked for later
		close(r.done)
	}()
	s.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
	})
	return r
}

// to lets another test, such as a part of the one that started it, fail with it.
func (r *running) to(t *testing.T) *running {
	r.t = t
	return r
}

// e2ePatience bounds every wait of these tests.
const e2ePatience = 150 * time.Second

// wait waits for the end of an assay.
func (r *running) wait() judged {
	t := r.t
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(e2ePatience):
		_ = r.cmd.Process.Kill()
		<-r.done
		t.Fatalf("assay %s did not end; it said:\n%s", strings.Join(r.cmd.Args[1:], " "), &r.stderr)
	}
	res := judged{t: t, code: r.cmd.ProcessState.ExitCode(), stdout: r.stdout.String(), stderr: r.stderr.String()}
	if strings.HasPrefix(res.stdout, "{") {
		rep, err := report.Decode(r.stdout.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, res.stdout)
		}
		res.Run = rep
	}
	return res
}

// eventually waits until done says true.
func (s *site) eventually(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(e2ePatience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// attempt is the directory of an attempt of a job of the run "r".
func (s *site) attempt(job string, n int) string {
	return rundir.AttemptDir(filepath.Join(s.dir, "runs", "r"), job, n)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// observations are the lines of scheduler.jsonl of an attempt.
func (s *site) observations(job string, attempt int) []evidence.Observation {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.attempt(job, attempt), rundir.SchedulerFile))
	if err != nil {
		s.t.Fatal(err)
	}
	var all []evidence.Observation
	for line := range bytes.Lines(data) {
		var o evidence.Observation
		if err := json.Unmarshal(line, &o); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		all = append(all, o)
	}
	return all
}

// want fails the test unless assay ended with the code of a verdict, and every job
// has it.
func (r judged) want(word verdict.Word) judged {
	r.t.Helper()
	if r.Verdict != word || r.code != int(r.ExitCode) || len(r.Jobs) == 0 {
		r.t.Fatalf("verdict %s, exit code %d, want %s\n%s%s", r.Verdict, r.code, word, r.stdout, r.stderr)
	}
	for _, j := range r.Jobs {
		if j.Verdict != word {
			r.t.Fatalf("job %s: %s, want %s\n%s%s", j.ID, j.Verdict, word, r.stdout, r.stderr)
		}
	}
	return r
}

// reason fails the test unless the first job has a reason with a code whose
// subject and message hold all the words.
func (r judged) reason(code string, words ...string) judged {
	r.t.Helper()
	return r.holds("reason", r.Jobs[0].Reasons, code, words)
}

// warning does as reason, for the warnings.
func (r judged) warning(code string, words ...string) judged {
	r.t.Helper()
	return r.holds("warning", r.Jobs[0].Warnings, code, words)
}

func (r judged) holds(kind string, list []verdict.Reason, code string, words []string) judged {
	r.t.Helper()
	for _, x := range list {
		lacks := func(w string) bool { return !strings.Contains(x.Subject+" "+x.Message, w) }
		if x.Code == code && !slices.ContainsFunc(words, lacks) {
			return r
		}
	}
	r.t.Errorf("no %s %s that names %q\n%s", kind, code, words, r.stdout)
	return r
}

// state fails the test unless the scheduler's last word on the job is this one.
func (r judged) state(word string) judged {
	r.t.Helper()
	if s := r.Jobs[0].Scheduler; s == nil || s.State != word {
		r.t.Errorf("the last word is %+v, want %s", s, word)
	}
	return r
}

// attempts fails the test unless the job was started so many times.
func (r judged) attempts(n int) judged {
	r.t.Helper()
	if got := r.Jobs[0].Attempts; got != n {
		r.t.Errorf("%d attempts, want %d", got, n)
	}
	return r
}

// clean fails the test if anything was warned about.
func (r judged) clean() judged {
	r.t.Helper()
	for _, j := range r.Jobs {
		if len(j.Warnings) > 0 {
			r.t.Errorf("warnings of job %s: %+v", j.ID, j.Warnings)
		}
	}
	return r
}

// rank returns what the verdict says of a rank of the first job.
func (r judged) rank(n int) report.Rank {
	r.t.Helper()
	if n >= len(r.Jobs[0].Ranks) {
		r.t.Fatalf("the verdict has no rank %d", n)
	}
	return r.Jobs[0].Ranks[n]
}

// exits fails the test unless assay ended with an exit code.
func (r judged) exits(code exitcode.Code) judged {
	r.t.Helper()
	if r.code != int(code) {
		r.t.Errorf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

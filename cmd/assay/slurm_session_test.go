//go:build slurm

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/report"
	"assay/pkg/verdict"
)

// started is an assay that runs.
type started struct {
	s              *session
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// result is what an assay that ended left.
type result struct {
	s              *session
	code           int // -1 when a signal ended it
	stdout, stderr string
	run            report.Run // of the JSON on stdout, if it is that
}

// start starts assay in the session's directory and, like a shell, in a process
// group of its own.
func (s *session) start(args ...string) *started {
	s.Helper()
	p := &started{s: s}
	if s.as != nil {
		p.cmd = s.as.Command(s.bin, args...)
		p.cmd.Env = append(p.cmd.Env, "NO_COLOR=1")
	} else {
		p.cmd = exec.Command(s.bin, args...)
		p.cmd.Env = s.env
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	p.cmd.Dir = s.dir
	p.cmd.SysProcAttr.Setpgid = true
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// runLimit is how long an assay may take: the longest scenario is an honest time
// limit of a minute.
const runLimit = 5 * time.Minute

// endAfter ends an assay that waits for what never comes, and fails the test.
func endAfter(t testing.TB, cmd *exec.Cmd) *time.Timer {
	return time.AfterFunc(runLimit, func() {
		t.Errorf("%v did not end within %s", cmd.Args[1:], runLimit)
		_ = cmd.Process.Kill()
	})
}

// wait waits for the end of an assay.
func (p *started) wait() *result {
	p.s.Helper()
	limit := endAfter(p.s, p.cmd)
	_ = p.cmd.Wait() // its code says it
	limit.Stop()
	r := &result{s: p.s, code: p.cmd.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String()}
	if strings.HasPrefix(r.stdout, "{") {
		if err := json.Unmarshal([]byte(r.stdout), &r.run); err != nil {
			p.s.Fatalf("%v: %v\n%s\n%s", p.cmd.Args[1:], err, r.stdout, r.stderr)
		}
	}
	return r
}

func (p *started) signal(sig os.Signal) {
	p.s.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.s.Fatal(err)
	}
}

// assay runs assay to its end.
func (s *session) assay(args ...string) *result { s.Helper(); return s.start(args...).wait() }

// runArgs are the arguments that run the manifest of the session.
func runArgs(more ...string) []string {
	return append([]string{"run", "-m", "m.json", "--run-id", "r", "--json"}, more...)
}

// run writes a manifest and runs it.
func (s *session) run(m object, more ...string) *result {
	s.Helper()
	s.writeManifest(m)
	return s.assay(runArgs(more...)...)
}

// startRun writes a manifest, starts its run, and waits until a job of it has
// an id.
func (s *session) startRun(m object, more ...string) (p *started, id string) {
	s.Helper()
	s.writeManifest(m)
	p = s.start(runArgs(more...)...)
	s.Await("the job is submitted", func() bool { id = s.jobID("job"); return id != "" })
	return p, id
}

// jobID is the id that SLURM gave a job of the run, "" before it has one.
func (s *session) jobID(job string) string {
	var launch struct {
		Handle struct {
			ID string `json:"id"`
		} `json:"handle"`
	}
	data, err := os.ReadFile(s.path("jobs", job, "1", "launch.json"))
	if err != nil || json.Unmarshal(data, &launch) != nil {
		return ""
	}
	return launch.Handle.ID
}

// path is a path below the run directory.
func (s *session) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir, "runs", "r"}, elem...)...)
}

// awaitFile waits until a file is there and has something in it.
func (s *session) awaitFile(path string) string {
	s.Helper()
	var data []byte
	s.Await(path+" is written", func() bool {
		data, _ = os.ReadFile(path)
		return len(data) > 0
	})
	return string(data)
}

// observations is what the scheduler was seen to say of an attempt of the job.
func (s *session) observations(attempt string) []evidence.Observation {
	s.Helper()
	data, err := os.ReadFile(s.path("jobs", "job", attempt, "scheduler.jsonl"))
	if err != nil {
		s.Fatal(err)
	}
	var seen []evidence.Observation
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var o evidence.Observation
		if err := d.Decode(&o); err != nil {
			s.Fatalf("scheduler.jsonl: %v\n%s", err, data)
		}
		seen = append(seen, o)
	}
	if len(seen) == 0 {
		s.Fatal("nothing was seen of the scheduler")
	}
	return seen
}

// last is the last word of the scheduler on the first attempt, as
// "phase WORD: detail".
func (s *session) last(attempt string) string {
	s.Helper()
	seen := s.observations(attempt)
	o := seen[len(seen)-1]
	phase, err := o.Phase.MarshalText()
	if err != nil {
		s.Fatal(err)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", phase, o.Word, o.Detail), ": ")
}

// rows are the rows of perf.csv, by column.
func (s *session) rows() []map[string]string {
	s.Helper()
	f, err := os.Open(filepath.Join(s.dir, "perf.csv"))
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		s.Fatal(err)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// row is the only row of perf.csv.
func (s *session) row() map[string]string {
	s.Helper()
	rows := s.rows()
	if len(rows) != 1 {
		s.Fatalf("perf.csv has %d rows, want 1: %v", len(rows), rows)
	}
	return rows[0]
}

// job is the only job of a run.
func (r *result) job() report.Job {
	r.s.Helper()
	if len(r.run.Jobs) != 1 {
		r.s.Fatalf("the verdict has %d jobs, want 1; exit code %d\n%s\n%s", len(r.run.Jobs), r.code, r.stdout, r.stderr)
	}
	return r.run.Jobs[0]
}

// is checks the exit code and the verdict of the only job, "PASS" or
// "FAIL benchmark 6", and that verdict.json says the same as stdout.
func (r *result) is(code int, word string) *result {
	r.s.Helper()
	j := r.job()
	got := j.Verdict.String()
	if strings.Contains(word, " ") {
		got += " " + j.Rule
	}
	if r.code != code || got != word {
		r.s.Errorf("exit code %d and %s, want %d and %s\n%s\n%s", r.code, got, code, word, r.stdout, r.stderr)
	}
	kept, err := os.ReadFile(filepath.Join(r.run.Dir, "verdict.json"))
	if err != nil || string(kept) != r.stdout {
		r.s.Errorf("verdict.json is not what was printed: %v\n%s", err, kept)
	}
	return r
}

// reasons checks that the reasons are the wanted ones, in order. Each is a
// regular expression for "CODE subject: message".
func (r *result) reasons(want ...string) *result {
	r.s.Helper()
	matchAll(r.s, "reasons", texts(r.job().Reasons), want)
	return r
}

// warnings is reasons for warnings.
func (r *result) warnings(want ...string) *result {
	r.s.Helper()
	matchAll(r.s, "warnings", texts(r.job().Warnings), want)
	return r
}

func texts(reasons []verdict.Reason) []string {
	var lines []string
	for _, r := range reasons {
		lines = append(lines, fmt.Sprintf("%s %s: %s", r.Code, r.Subject, r.Message))
	}
	return lines
}

// ranks checks how ranks ended: "0 node1 ended 3", "1 node2 ended 143 SIGTERM".
func (r *result) ranks(want ...string) *result {
	r.s.Helper()
	var got []string
	for _, k := range r.job().Ranks {
		state, err := k.State.MarshalText()
		if err != nil {
			r.s.Fatal(err)
		}
		line := fmt.Sprintf("%d %s %s", k.Rank, k.Node, state)
		if k.ExitCode != nil {
			line += fmt.Sprint(" ", *k.ExitCode)
		}
		if k.Signal != "" {
			line += " " + k.Signal
		}
		got = append(got, line)
	}
	matchAll(r.s, "ranks", got, want)
	return r
}

func matchAll(s *session, what string, got, want []string) {
	s.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = regexp.MustCompile("^(?:" + want[i] + ")$").MatchString(got[i])
	}
	if !ok {
		s.Errorf("%s are\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// match checks one text against a regular expression.
func (s *session) match(what, got, want string) {
	s.Helper()
	if !regexp.MustCompile("^(?:" + want + ")$").MatchString(got) {
		s.Errorf("%s is %q, want %q", what, got, want)
	}
}

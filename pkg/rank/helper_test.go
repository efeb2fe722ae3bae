package rank_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rank"
	"assay/pkg/rundir"
)

// wrapperVariable makes the test binary act as the wrapper: it holds the options
// as JSON. The wrapper has to be a process of its own.
const wrapperVariable = "RANK_TEST_WRAPPER"

type wrapperCall struct {
	JobFile    string
	Rank       int
	MasterAddr string
	MasterPort int
	Hosts      []string
	Node       string
	Env        []string
	Panic      bool // the wrapper is given what makes it panic
	Stopped    bool // the wrapper is told to stop before anything else
}

func TestMain(m *testing.M) {
	if text := os.Getenv(wrapperVariable); text != "" {
		os.Exit(runWrapper(text))
	}
	os.Exit(m.Run())
}

func runWrapper(text string) int {
	var c wrapperCall
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	o := rank.Options{
		JobFile: c.JobFile, Rank: c.Rank, MasterAddr: c.MasterAddr, MasterPort: c.MasterPort,
		Hosts: c.Hosts, Node: c.Node, Env: c.Env, Stderr: os.Stderr,
	}
	if c.Panic {
		signals := make(chan os.Signal, 1)
		o.Signals = signals
		time.AfterFunc(300*time.Millisecond, func() { signals <- nil })
	}
	if c.Stopped {
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		o.Signals = signals
	}
	code, err := rank.Run(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// fixture is a job to be run.
type fixture struct {
	t       testing.TB
	attempt plan.Attempt
	call    wrapperCall
	model   string // MODEL_DIR
}

// newFixture gives a one-rank job that runs the shell commands.
func newFixture(t testing.TB, script string) *fixture {
	t.Helper()
	run := t.TempDir()
	f := &fixture{t: t, model: t.TempDir()}
	f.attempt = plan.Attempt{
		Version: 1, RunID: "r1", Nonce: "n1", ManifestDigest: "d1", Number: 1,
		Dir: rundir.AttemptDir(run, "job", 1), KillGraceMS: 300,
		Job: plan.Job{
			Key: "job", ID: "job", Model: "a model", Scope: "job", NNodes: 1, NProcPerNode: 1, RanksPerNode: 1, WorldSize: 1,
			Launcher: "none", ModelDir: f.model, Deployment: "local",
			Program: plan.Program{Command: []string{"bash", "-c", script}},
		},
	}
	f.call = wrapperCall{
		JobFile: filepath.Join(run, "job.json"), MasterAddr: "127.0.0.1", MasterPort: 29500,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
	}
	return f
}

// file writes a file below the model directory.
func (f *fixture) file(name, text string, mode os.FileMode) string {
	f.t.Helper()
	path := filepath.Join(f.model, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f *fixture) dir() string { return rundir.RankDir(f.attempt.Dir, f.call.Rank) }

func (f *fixture) read(name string) string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir(), name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// command is the wrapper, ready to be started.
func (f *fixture) command() *exec.Cmd {
	f.t.Helper()
	if err := os.MkdirAll(f.attempt.Dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	data, err := json.Marshal(f.attempt)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(f.call.JobFile, data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	call, err := json.Marshal(f.call)
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), wrapperVariable+"="+string(call))
	return cmd
}

// run runs the wrapper to its end and returns its exit code and the end marker.
func (f *fixture) run() (int, evidence.End) {
	f.t.Helper()
	cmd := f.command()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	code := exitCode(f.t, cmd.Run())
	if stderr.Len() > 0 {
		f.t.Logf("wrapper: %s", stderr.String())
	}
	return code, f.end()
}

// refused runs the wrapper and expects it to give no end marker of its own.
func (f *fixture) refused() (code int, stderr string) {
	f.t.Helper()
	cmd := f.command()
	var b strings.Builder
	cmd.Stderr = &b
	return exitCode(f.t, cmd.Run()), b.String()
}

func exitCode(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func (f *fixture) end() evidence.End {
	f.t.Helper()
	var e evidence.End
	if err := json.Unmarshal([]byte(f.read(rundir.EndFile)), &e); err != nil {
		f.t.Fatal(err)
	}
	return e
}

func (f *fixture) metrics() evidence.Metrics {
	f.t.Helper()
	var m evidence.Metrics
	if err := json.Unmarshal([]byte(f.read(rundir.MetricsFile)), &m); err != nil {
		f.t.Fatal(err)
	}
	return m
}

// waitFor waits for a file that a process of the test writes, and returns it.
func waitFor(t testing.TB, path string) string {
	t.Helper()
	for range 1000 {
		if data, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(data), "\n") {
			return strings.TrimSpace(string(data))
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not appear", path)
	return ""
}

func itoa(n int) string { return strconv.Itoa(n) }

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ") && syscall.Kill(pid, 0) == nil
}

// gone fails the test unless the processes named in the file end soon.
func gone(t testing.TB, pids string) {
	t.Helper()
	for _, word := range strings.Fields(pids) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			if !alive(pid) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if alive(pid) {
			t.Errorf("process %d still runs", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

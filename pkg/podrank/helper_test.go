package podrank_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/podrank"
	"assay/pkg/rank"
	"assay/pkg/rundir"
)

// podVariable makes the test binary act as the process of a pod: it holds the
// options as JSON. A rank has to be a process of its own.
const podVariable = "PODRANK_TEST_POD"

type podCall struct {
	JobFile, MasterAddr                  string
	MasterPort                           int // 0: 29500
	Env                                  []string
	AttemptDir, ModelDir, TerminationLog string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(podVariable); text != "" {
		os.Exit(runPod(text))
	}
	os.Exit(m.Run())
}

func runPod(text string) int {
	var c podCall
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	if c.MasterPort == 0 {
		c.MasterPort = 29500
	}
	code, err := podrank.Run(context.Background(), podrank.Options{
		Rank: rank.Options{JobFile: c.JobFile, MasterAddr: c.MasterAddr, MasterPort: c.MasterPort, Env: c.Env},
		Out:  os.Stdout, Err: os.Stderr,
		AttemptDir: c.AttemptDir, ModelDir: c.ModelDir, TerminationLog: c.TerminationLog,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// fixture is a pod that is to be run.
type fixture struct {
	t       *testing.T
	attempt plan.Attempt // as it was submitted
	call    podCall
	out     bytes.Buffer // the log of the pod
	err     bytes.Buffer
}

// newFixture gives a job of two ranks, of which the pod is for the second.
func newFixture(t *testing.T, script string) *fixture {
	t.Helper()
	root, client := t.TempDir(), t.TempDir()
	f := &fixture{t: t}
	f.attempt = plan.Attempt{
		Version: 1, RunID: "r1", Nonce: "0123456789abcdef", ManifestDigest: "d1", Number: 1,
		Dir: rundir.AttemptDir(client, "job", 1), KillGraceMS: 2000,
		Job: plan.Job{
			Key: "job", ID: "job", Model: "a model", Scope: "job", NNodes: 2, NProcPerNode: 1, RanksPerNode: 1, WorldSize: 2,
			Launcher: "none", ModelDir: "/of/the/client", Deployment: "k8s",
			EnvFile: &plan.EnvFile{Path: "/of/the/client/env", Format: "shell"},
			Program: plan.Program{Command: []string{"bash", "-c", script}},
			K8s:     &plan.K8s{RootWaitSeconds: 60},
		},
	}
	f.call = podCall{
		JobFile: filepath.Join(root, "job.json"), MasterAddr: "127.0.0.1",
		AttemptDir: filepath.Join(root, "attempt"), ModelDir: filepath.Join(root, "model"), TerminationLog: filepath.Join(root, "termination-log"),
		Env: []string{
			"PATH=" + os.Getenv("PATH"), pod.IndexVariable + "=1", pod.NodeVariable + "=node-b", pod.PodVariable + "=job-1-x7k2p",
		},
	}
	f.write(f.call.TerminationLog, "")
	return f
}

func (f *fixture) write(path, text string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) writeJob(path string, a plan.Attempt) {
	f.t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(path, string(data))
}

func (f *fixture) read(path string) string {
	f.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// command is the process of the pod, ready to be started after the words of prefix.
func (f *fixture) command(prefix ...string) *exec.Cmd {
	f.t.Helper()
	f.writeJob(f.call.JobFile, f.attempt)
	call, err := json.Marshal(f.call)
	if err != nil {
		f.t.Fatal(err)
	}
	argv := append(prefix, os.Args[0])
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), podVariable+"="+string(call))
	cmd.Stdout, cmd.Stderr = &f.out, &f.err
	return cmd
}

func (f *fixture) run() (code int) {
	f.t.Helper()
	code = exitCode(f.t, f.command().Run())
	if f.err.Len() > 0 {
		f.t.Logf("stderr: %s", f.err.String())
	}
	return code
}

func exitCode(t *testing.T, err error) int {
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

func (f *fixture) message() pod.Message {
	f.t.Helper()
	m, err := pod.DecodeMessage([]byte(f.read(f.call.TerminationLog)))
	if err != nil {
		f.t.Fatal(err)
	}
	return m
}

// received is what whoever reads the log of the pod gets.
func (f *fixture) received() (said string, files map[string][]byte, omitted []pod.Omitted, err error) {
	f.t.Helper()
	var words bytes.Buffer
	r := pod.NewLogReader(&words, f.attempt.Nonce, 1)
	r.Resume()
	at := time.Unix(1e9, 0).UTC()
	for _, line := range strings.SplitAfter(f.out.String(), "\n") {
		if line != "" {
			r.Line([]byte(at.Format(time.RFC3339Nano) + " " + line))
			at = at.Add(time.Microsecond)
		}
	}
	if err := r.Close(); err != nil {
		f.t.Fatal(err)
	}
	files, omitted, err = r.Archive()
	return words.String(), files, omitted, err
}

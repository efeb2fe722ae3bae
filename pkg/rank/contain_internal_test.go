package rank

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/container"
	"assay/pkg/evidence"
	"assay/pkg/plan"
)

// aContained is the outside of a rank in a container, in a directory of its own.
func aContained(t *testing.T) *outer {
	t.Helper()
	dir := t.TempDir()
	c := &outer{
		a: plan.Attempt{RunID: "r", Nonce: "00112233445566", Number: 1, Dir: filepath.Join(dir, "runs", "1"), Job: plan.Job{
			ID: "m", NNodes: 1, RanksPerNode: 2, WorldSize: 2, ModelDir: dir, Launcher: "none",
			Container: &plan.Container{Image: "box", Runtime: plan.RuntimeDocker},
		}},
		o: Options{
			Rank: 1, MasterAddr: "127.0.0.1", MasterPort: 29500, Node: "node1", Binary: "/opt/assay", Stderr: io.Discard,
			Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/ada", "TOKEN=secret", "CUDA_VISIBLE_DEVICES=4,5", "SLURM_JOB_ID=7", "SLURM_JWT=token"},
		},
	}
	c.o.JobFile = filepath.Join(c.a.Dir, "job.json")
	return c
}

// TestContainedEnvironment is made of what the manifest and the scheduler give, in the
// order of precedence, and of nothing else of the node.
func TestContainedEnvironment(t *testing.T) {
	c := aContained(t)
	job := &c.a.Job
	job.GPUsPerNode, job.GPUVendor = 2, "NVIDIA"
	job.LauncherEnv = map[string]string{"DEFAULT": "launcher", "OVER": "launcher"}
	job.Env = map[string]string{"CARD": "manifest", "BOTH": "manifest"}
	file := filepath.Join(job.ModelDir, "env.sh")
	if err := os.WriteFile(file, []byte("export OVER=file BOTH=file FILE='a\nb'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job.EnvFile = &plan.EnvFile{Path: file, Format: "shell", TimeoutSeconds: 30}
	if r := c.environment(t.Context()); r != nil {
		t.Fatal(r)
	}
	want := map[string]string{
		"CUDA_VISIBLE_DEVICES": "5", "SLURM_JOB_ID": "7", "DEFAULT": "launcher", "OVER": "file", "FILE": "a\nb", "CARD": "manifest", "BOTH": "manifest",
	}
	if d := cmp.Diff(want, newVariables(c.env).values); d != "" {
		t.Error(d)
	}
	// Inside, what the container was given stands.
	w := &wrapper{attempt: c.a, rank: 1, options: Options{Contained: true, Env: append([]string{"PATH=/image"}, c.env...)}}
	env, ok := w.environment(t.Context())
	got := newVariables(env).values
	for name, value := range want {
		if got[name] != value {
			t.Errorf("inside %s is %q, want %q", name, got[name], value)
		}
	}
	if !ok || got["PATH"] != "/image" || got["RANK"] != "1" {
		t.Errorf("inside: %q", env)
	}
}

// TestContainedGPUsAreNumberedAnew where the engine gives some of the node's alone.
func TestContainedGPUsAreNumberedAnew(t *testing.T) {
	c := aContained(t)
	c.a.Job.GPUsPerNode, c.a.Job.GPUVendor = 4, "NVIDIA"
	c.o.Env = append(c.o.Env, "SLURM_STEP_GPUS=4,5,6,7")
	if r := c.environment(t.Context()); r != nil {
		t.Fatal(r)
	}
	if got := newVariables(c.env).values["CUDA_VISIBLE_DEVICES"]; got != "2,3" {
		t.Errorf("rank 1 of 2 sees %q of the four", got)
	}
	if d := cmp.Diff(container.GPUs{Vendor: "NVIDIA", Devices: []string{"4", "5", "6", "7"}}, c.gpus); d != "" {
		t.Error(d)
	}
}

// TestContainedMounts has each path once; those of the manifest win.
func TestContainedMounts(t *testing.T) {
	c := aContained(t)
	c.a.Job.Container.Mounts = map[string]string{"/data": "/srv/data", c.a.Job.ModelDir: "/srv/model", c.a.Dir: "/nowhere", "/": "/"}
	want := []container.Mount{
		{Source: "/opt/assay", Target: container.Inside, ReadOnly: true},
		{Source: c.a.Dir, Target: c.a.Dir},
		{Source: "/srv/data", Target: "/data"},
		{Source: "/srv/model", Target: c.a.Job.ModelDir},
	}
	if d := cmp.Diff(want, c.mounts()); d != "" {
		t.Error(d)
	}
	c = aContained(t)
	c.a.Job.ModelDir = "/only/in/the/image"
	if got := c.mounts(); len(got) != 2 {
		t.Errorf("a directory that the node has not is mounted: %+v", got)
	}
}

// TestContainedChild gives a runtime without a daemon the variables by its own names,
// and takes its exit code for that of a rank that left no record.
func TestContainedChild(t *testing.T) {
	c := aContained(t)
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + dir + "/args\nprintf %s \"$APPTAINERENV_CARD|$TOKEN\" >" + dir + "/env\nexit 7\n"
	if err := os.WriteFile(filepath.Join(dir, "apptainer"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	c.cli, c.image, c.env = container.CLI{Name: container.Apptainer, Path: filepath.Join(dir, "apptainer")}, "box.sif", []string{"CARD=a\nb"}
	c.a.Job.Program.Command = []string{"true"}
	if err := os.MkdirAll(filepath.Dir(c.a.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.a.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := c.runChild(t.Context()); err != nil {
		t.Fatal(err)
	}
	end, ok := c.readEnd()
	if !ok || end.Outcome != evidence.OutcomeRefused || !strings.Contains(end.Message, "exit code 7 before the rank began") {
		t.Errorf("%+v", end)
	}
	env, _ := os.ReadFile(filepath.Join(dir, "env"))
	args, _ := os.ReadFile(filepath.Join(dir, "args"))
	if string(env) != "a\nb|" || !strings.HasPrefix(string(args), "exec\n--cleanenv\n") || strings.Contains(string(args), "CARD") {
		t.Errorf("it was given %q and %q", args, env)
	}
}

// TestReadMemory reads the account of either version of control groups.
func TestReadMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  memory
	}{
		"version 2":           {map[string]string{"memory.events": "low 0\noom 2\noom_kill 3\noom_group_kill 0\n", "memory.max": "67108864\n"}, memory{3, 64 << 20}},
		"version 2, no limit": {map[string]string{"memory.events": "oom_kill 1\n", "memory.max": "max\n"}, memory{1, 0}},
		"version 1":           {map[string]string{"memory/memory.oom_control": "under_oom 0\noom_kill 1\n", "memory/memory.limit_in_bytes": "33554432\n"}, memory{1, 32 << 20}},
		"version 1, no limit": {map[string]string{"memory/memory.oom_control": "oom_kill 1\n", "memory/memory.limit_in_bytes": "9223372036854771712\n"}, memory{1, 0}},
		"neither":             {nil, memory{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := readMemory(dir); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// TestEndOfContainer says what the wrapper inside could not.
func TestEndOfContainer(t *testing.T) {
	c := aContained(t)
	begin := evidence.Begin{Identity: c.a.Identity(1), Host: "h", Node: "node1", StartedAt: time.Now()}
	for name, k := range map[string]struct {
		state   container.State
		gone    error
		outcome evidence.Outcome
		exit    int
		signal  string
		message string
	}{
		"out of memory": {container.State{ExitCode: 137, OOM: true, Memory: 1 << 30}, nil, evidence.OutcomeSignaled, 137, "SIGKILL", "the container ran out of memory (limit 1024 MiB)"},
		"killed":        {container.State{ExitCode: 137}, nil, evidence.OutcomeSignaled, 137, "SIGKILL", "its container was killed, and the wrapper in it"},
		"crashed":       {container.State{ExitCode: 2}, nil, evidence.OutcomeUnknown, 2, "", "its container ended with exit code 2 and without a record"},
		"removed":       {container.State{}, container.ErrGone, evidence.OutcomeSignaled, 137, "SIGKILL", "its container was removed while it ran"},
	} {
		t.Run(name, func(t *testing.T) {
			end := c.endOf(begin, k.state, k.gone, "")
			if end.Outcome != k.outcome || end.ExitCode != k.exit || end.Signal != k.signal || end.Message != k.message || end.Identity != begin.Identity || end.Node != "node1" {
				t.Errorf("%+v", end)
			}
		})
	}
}

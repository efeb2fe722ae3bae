package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"assay/pkg/cli"
)

// TestMain lets the test binary stand in for assay, in scripts and as the
// wrapper of the ranks that scripts start.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"assay": func() { os.Exit(cli.Main(cli.System("test"), os.Args[1:])) },
	})
}

// TestScripts runs whole commands, as testdata/script/*.txtar say. Besides the
// commands of testscript a script has
//
//	code N assay ARGS…        runs assay, which has to exit with code N
//	manifest FILE ENTRIES…    writes a manifest; an entry is NAME:RANKS:SCRIPT
//	same A B                  the files have the same bytes
//	waitfor FILE              waits until the file exists and is not empty
//	start NAME assay ARGS…    starts assay in the background in a session of its own
//	signal NAME SIG           sends it a signal
//	wait_end NAME CODE        waits for its end; CODE is its exit code, or a signal's name
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Values["started"] = map[string]*process{}
			e.Vars = append(e.Vars, "NO_COLOR=1", "HOME="+e.WorkDir)
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "root" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			if os.Getenv("CI") == "true" && os.Geteuid() != 0 {
				return false, errors.New("CI has to run as root, or a part of the tests is left out")
			}
			return os.Geteuid() == 0, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     code,
			"manifest": manifest,
			"same":     same,
			"waitfor":  waitFor,
			"start":    start,
			"signal":   sendSignal,
			"wait_end": waitEnd,
			"jq":       query,
			"keys":     keys,
			"tmpfs":    tmpfs,
			"fill":     fill,
			"alive":    alive,
		},
	})
}

// code runs assay and compares its exit code. stdout and stderr are as after exec.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// manifest writes a manifest whose entries run bash scripts.
func manifest(ts *testscript.TestScript, _ bool, args []string) {
	images, models := map[string]any{}, map[string]any{}
	for _, a := range args[1:] {
		name, rest, _ := strings.Cut(a, ":")
		ranks, script, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(ranks)
		ts.Check(err)
		images[name] = map[string]any{"docker_image": nil}
		models[name] = map[string]any{
			"name": name, "command": []string{"bash", "-c", script}, "n_gpus": 0,
			"distributed": map[string]any{"launcher": "none", "nnodes": 1, "nproc_per_node": n},
		}
	}
	data, err := json.MarshalIndent(map[string]any{"built_images": images, "built_models": models, "context": map[string]any{}}, "", "  ")
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o644))
}

func same(ts *testscript.TestScript, neg bool, args []string) {
	a, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	if bytes.Equal(a, b) == neg {
		ts.Fatalf("%s and %s: same is %t", args[0], args[1], !neg)
	}
}

// patience bounds every wait of a script.
const patience = 60 * time.Second

// await calls done until it says true.
func await(ts *testscript.TestScript, what string, done func() bool) {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain for %s", what)
		}
	}
}

func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		await(ts, name, func() bool {
			matches, _ := filepath.Glob(ts.MkAbs(name))
			for _, m := range matches {
				if info, err := os.Stat(m); err == nil && info.Size() > 0 {
					return true
				}
			}
			return false
		})
	}
}

// process is a command that a script started in the background.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	done           chan error
}

func start(ts *testscript.TestScript, _ bool, args []string) {
	started, ok := ts.Value("started").(map[string]*process)
	if !ok || len(args) < 2 {
		ts.Fatalf("usage: start NAME COMMAND ARGS…")
	}
	path := filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], args[1])
	p := &process{cmd: exec.Command(path, args[2:]...), done: make(chan error, 1)}
	p.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "NO_COLOR", "TMPDIR", "WORK"} {
		p.cmd.Env = append(p.cmd.Env, name+"="+ts.Getenv(name))
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ts.Check(p.cmd.Start())
	started[args[0]] = p
	go func() { p.done <- p.cmd.Wait() }()
	ts.Defer(func() { _ = p.cmd.Process.Kill() })
}

func background(ts *testscript.TestScript, name string) *process {
	started, _ := ts.Value("started").(map[string]*process)
	p := started[name]
	if p == nil {
		ts.Fatalf("nothing was started as %q", name)
	}
	return p
}

func sendSignal(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[1]]
	ts.Check(background(ts, args[0]).cmd.Process.Signal(sig))
}

// waitEnd waits for the end of a started command and leaves what it printed in
// the files NAME.stdout and NAME.stderr.
func waitEnd(ts *testscript.TestScript, _ bool, args []string) {
	p := background(ts, args[0])
	select {
	case <-p.done:
	case <-time.After(patience):
		ts.Fatalf("%s did not end; stderr so far:\n%s", args[0], p.stderr.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stdout"), p.stdout.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".stderr"), p.stderr.Bytes(), 0o600))
	got := strconv.Itoa(p.cmd.ProcessState.ExitCode())
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		got = status.Signal().String()
	}
	if got != args[1] {
		ts.Fatalf("%s ended with %s, want %s; stderr:\n%s", args[0], got, args[1], p.stderr.String())
	}
}

// query compares a value of a JSON file: jq FILE PATH WANT, where PATH is keys
// and indices joined by dots, and WANT is JSON or a plain string.
func query(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: jq FILE PATH WANT")
	}
	v := lookup(ts, args[0], args[1])
	got, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		ts.Check(err)
		got = string(data)
	}
	if (got == args[2]) == neg {
		ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
	}
}

// keys compares the keys of an object in a JSON file: keys FILE PATH KEY…, the
// keys sorted; the path "." is the whole.
func keys(ts *testscript.TestScript, _ bool, args []string) {
	object, ok := lookup(ts, args[0], args[1]).(map[string]any)
	if !ok {
		ts.Fatalf("%s is no object", args[1])
	}
	got := slices.Sorted(maps.Keys(object))
	if !slices.Equal(got, args[2:]) {
		ts.Fatalf("%s has the keys %s", args[1], strings.Join(got, " "))
	}
}

// lookup finds a value of a JSON file.
func lookup(ts *testscript.TestScript, file, path string) any {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &v))
	if path == "." {
		return v
	}
	for _, key := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if key == "len" {
				v = len(x)
				continue
			}
			ts.Check(err)
			if i >= len(x) {
				ts.Fatalf("%s: there is no element %d", path, i)
			}
			v = x[i]
		default:
			ts.Fatalf("%s: nothing below %q", path, key)
		}
	}
	return v
}

// tmpfs mounts a small file system: tmpfs DIR SIZE [ro].
func tmpfs(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	var flags uintptr
	if len(args) == 3 {
		flags = syscall.MS_RDONLY
	}
	ts.Check(syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+args[1]))
	ts.Defer(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fill leaves no room in a directory's file system.
func fill(ts *testscript.TestScript, _ bool, args []string) {
	f, err := os.Create(filepath.Join(ts.MkAbs(args[0]), "ballast"))
	ts.Check(err)
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		ts.Fatalf("%v", err)
	}
}

// alive says whether the process whose id is in a file runs; ! alive waits until
// it does not.
func alive(ts *testscript.TestScript, neg bool, args []string) {
	pid := strings.TrimSpace(ts.ReadFile(args[0]))
	runs := func() bool {
		data, err := os.ReadFile("/proc/" + pid + "/stat")
		return err == nil && !strings.Contains(string(data), ") Z ")
	}
	if !neg {
		if !runs() {
			ts.Fatalf("process %s does not run", pid)
		}
		return
	}
	await(ts, "the end of process "+pid, func() bool { return !runs() })
}

package rank_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

func TestPrograms(t *testing.T) {
	type files map[string]string // "name" or "name!" when executable
	tests := []struct {
		name    string
		files   files
		program plan.Program
		env     map[string]string
		out     string
	}{
		{
			"script without x bit, #!",
			files{"s/run.sh": "#!/bin/sh -e\necho sh $0 \"$@\" | sed 's|/.*/||'; false; echo not reached"},
			plan.Program{Script: "s/run.sh", Args: []string{"a b"}},
			nil, "sh run.sh a b\n",
		},
		{"script without x bit, no #!", files{"s/run.sh": "[[ $BASH ]] && echo bash"}, plan.Program{Script: "s/run.sh"}, nil, "bash\n"},
		{"python without x bit, no #!", files{"s/run.py": "print('python')"}, plan.Program{Script: "s/run.py"}, nil, "python\n"},
		{"executable without #!", files{"s/run.sh!": "[[ $BASH ]] && echo bash"}, plan.Program{Script: "s/run.sh"}, nil, "bash\n"},
		{"executable", files{"s/run.sh!": "#!/usr/bin/env bash\necho $# $1"}, plan.Program{Script: "s/run.sh", Args: []string{"x", "y"}}, nil, "2 x\n"},
		{"directory", files{"s/run.sh": "echo dir"}, plan.Program{Script: "s"}, nil, "dir\n"},
		{
			"siblings",
			files{"s/run.sh": "cat data.txt; cat sub/more.txt", "s/data.txt": "data\n", "s/sub/more.txt": "more\n"},
			plan.Program{Script: "s/run.sh"},
			nil, "data\nmore\n",
		},
		{
			"own directory is private",
			files{"s/run.sh!": "#!/bin/bash\ncd \"$(dirname \"$0\")\"; echo x > new.txt; cat \"$ASSAY_RESULTS_DIR/../work/new.txt\""},
			plan.Program{Script: "s/run.sh"},
			nil, "x\n",
		},
		{
			"encapsulated",
			files{"s/run.sh": "echo inner", "wrap.sh!": "#!/bin/bash\necho outer; exec \"$@\""},
			plan.Program{Script: "s/run.sh", Encapsulate: []string{"env", "X=1"}},
			nil, "inner\n",
		},
		{"MODEL_DIR", files{"other/s/run.sh": "echo other", "s/run.sh": "echo default"}, plan.Program{Script: "s/run.sh"}, map[string]string{"MODEL_DIR": "other"}, "other\n"},
		{"command with a slash", files{"bin/prog!": "#!/bin/sh\necho prog"}, plan.Program{Command: []string{"./bin/prog"}}, nil, "prog\n"},
		{"command wins over script", files{"s/run.sh": "echo script"}, plan.Program{Command: []string{"echo", "command"}, Script: "s/run.sh"}, nil, "command\n"},
		{"command by its own PATH", files{"bin/prog!": "#!/bin/sh\necho mine"}, plan.Program{Command: []string{"prog"}}, map[string]string{"PATH": "bin:/usr/bin:/bin"}, "mine\n"},
		{"files of the model directory", files{"data.txt": "data\n"}, plan.Program{Command: []string{"cat", "data.txt"}}, nil, "data\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, "")
			for name, text := range tt.files {
				mode := os.FileMode(0o644)
				if strings.HasSuffix(name, "!") {
					mode = 0o755
				}
				f.file(strings.TrimSuffix(name, "!"), text, mode)
			}
			f.attempt.Job.Program, f.attempt.Job.Env = tt.program, tt.env
			_, end := f.run()
			if got := f.read("stdout"); got != tt.out {
				t.Errorf("printed %q, want %q; %+v; stderr %s", got, tt.out, end, f.read("stderr"))
			}
		})
	}
}

func TestNothingToRun(t *testing.T) {
	tests := []struct {
		name    string
		program plan.Program
		exit    int
		says    string
	}{
		{"no such command", plan.Program{Command: []string{"no-such-program"}}, 127, "no-such-program"},
		{"no such file", plan.Program{Command: []string{"./no-such-file"}}, 127, "no-such-file"},
		{"no such script", plan.Program{Script: "scripts/absent.sh"}, 127, "scripts/absent.sh"},
		{"directory without run.sh", plan.Program{Script: "."}, 127, "run.sh"},
		{"not executable", plan.Program{Command: []string{"./plain.txt"}}, 126, "no execute permission"},
		{"no such interpreter", plan.Program{Script: "bad.sh"}, 127, "/no/such/interpreter"},
		{"executable, no such interpreter", plan.Program{Script: "badx.sh"}, 127, "interpreter"},
		{"executable, CR LF", plan.Program{Script: "crlf.sh"}, 127, "CR LF"},
		{"broken binary", plan.Program{Script: "broken"}, 126, "cannot be executed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, "")
			f.file("plain.txt", "x", 0o644)
			f.file("bad.sh", "#!/no/such/interpreter\n", 0o644)
			f.file("badx.sh", "#!/no/such/interpreter\n", 0o755)
			f.file("crlf.sh", "#!/bin/bash\r\necho\r\n", 0o755)
			f.file("broken", "\x7fELF\x00garbage", 0o755)
			f.attempt.Job.Program = tt.program
			exit, end := f.run()
			if exit != tt.exit || end.Outcome != evidence.OutcomeRefused || end.Code != "LAUNCH_REFUSED" {
				t.Errorf("exit %d, outcome %v, code %q, want %d refused LAUNCH_REFUSED", exit, end.Outcome, end.Code, tt.exit)
			}
			if !strings.Contains(end.Message, tt.says) {
				t.Errorf("%q does not say %q", end.Message, tt.says)
			}
		})
	}
}

// A script that was written on Windows and that env or bash cannot run says so.
func TestLineEndsAreExplained(t *testing.T) {
	f := newFixture(t, "")
	f.file("crlf.sh", "#!/usr/bin/env bash\r\necho\r\n", 0o755)
	f.attempt.Job.Program = plan.Program{Script: "crlf.sh"}
	exit, end := f.run()
	if exit != 127 || end.Outcome != evidence.OutcomeExited || !strings.Contains(end.Message, "CR LF") {
		t.Errorf("exit %d, end %+v", exit, end)
	}
}

// The results file of an earlier run, perf.csv, metrics.json and the runs
// themselves are not in the working directory.
func TestNeverLinked(t *testing.T) {
	f := newFixture(t, "ls -A")
	for _, name := range []string{"out/x.csv", "x.csv", "perf.csv", "metrics.json", "kept.csv", ".hidden"} {
		f.file(name, "x", 0o644)
	}
	f.attempt.Dir = rundir.AttemptDir(filepath.Join(f.model, "runs", "r1"), "job", 1)
	f.attempt.Job.Expect.MultipleResults = "out/x.csv"
	f.run()
	if got := f.read("stdout"); got != ".hidden\nkept.csv\n" {
		t.Errorf("the working directory has %q", got)
	}
}

func TestTooManyEntries(t *testing.T) {
	f := newFixture(t, "")
	for i := range 4100 {
		if err := os.WriteFile(filepath.Join(f.model, "f"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.file("run.sh", "ls | wc -l", 0o644)
	f.attempt.Job.Program = plan.Program{Script: "run.sh"}
	f.run()
	if got := strings.TrimSpace(f.read("stdout")); got != "1" {
		t.Errorf("the working directory has %s entries, want the script alone", got)
	}
	if log := f.read(rundir.WrapperLog); !strings.Contains(log, "more than 4096") {
		t.Errorf("the log does not say why: %q", log)
	}
}

// Ranks of one machine that write the same name keep their own.
func TestRanksDoNotClobberEachOther(t *testing.T) {
	f := newFixture(t, "")
	f.file("s/run.sh", "cd \"$(dirname \"$0\")\"; printf 'model,performance,metric\\nm,%s,x\\n' $RANK > r.csv; sleep 0.1; cat r.csv", 0o755)
	f.attempt.Job.Program = plan.Program{Script: "s/run.sh"}
	f.attempt.Job.NNodes, f.attempt.Job.WorldSize = 4, 4
	f.attempt.Job.Expect.MultipleResults = "r.csv"
	var wait sync.WaitGroup
	fixtures := make([]*fixture, 4)
	commands := make([]*exec.Cmd, 4)
	for i := range fixtures {
		g := *f
		g.call.Rank = i
		fixtures[i], commands[i] = &g, g.command()
	}
	for _, cmd := range commands {
		wait.Go(func() { _ = cmd.Run() })
	}
	wait.Wait()
	for i, g := range fixtures {
		want := "model,performance,metric\nm," + itoa(i) + ",x\n"
		if got := g.read("results/r.csv"); got != want {
			t.Errorf("rank %d kept %q, want %q", i, got, want)
		}
		if r := g.end().Results; r == nil || r.File != "r.csv" {
			t.Errorf("rank %d: results %+v", i, r)
		}
	}
	if _, err := os.Stat(filepath.Join(f.model, "s/r.csv")); err == nil {
		t.Error("a rank wrote into the shared directory")
	}
}

func TestSteps(t *testing.T) {
	f := newFixture(t, "cat made; echo workload; exit 3")
	f.file("pre/one.sh", "echo pre $1 $RANK; echo made > made", 0o644)
	f.file("post/one.sh", "echo post; exit 9", 0o644)
	f.file("post/two.sh", "echo post two", 0o644)
	f.attempt.Job.PreScripts = []plan.Script{{Path: "pre/one.sh", Args: []string{"x y"}}}
	f.attempt.Job.PostScripts = []plan.Script{{Path: "post/one.sh"}, {Path: "post/absent.sh"}, {Path: "post/two.sh"}}
	exit, end := f.run()
	if exit != 3 || end.Outcome != evidence.OutcomeExited {
		t.Errorf("exit %d, outcome %v, want the workload's 3", exit, end.Outcome)
	}
	if got := f.read("stdout"); got != "[assay: pre-script pre/one.sh]\npre x y 0\n[assay: workload]\nmade\nworkload\n[assay: post-script post/one.sh]\npost\n[assay: post-script post/two.sh]\npost two\n" {
		t.Errorf("stdout is %q", got)
	}
	var steps []string
	for _, s := range end.Steps {
		steps = append(steps, s.Kind+" "+s.Path+" "+itoa(s.ExitCode))
	}
	if got := strings.Join(steps, ", "); got != "pre pre/one.sh 0, post post/one.sh 9, post post/absent.sh 127, post post/two.sh 0" {
		t.Errorf("steps are %s", got)
	}
}

func TestPreScriptFails(t *testing.T) {
	tests := map[string]struct{ text, says string }{
		"exit":    {"exit 7", "pre.sh exited 7"},
		"signal":  {"kill -9 $$", "SIGKILL"},
		"missing": {"", "pre.sh"},
		"hangs":   {"sleep 600", "time limit"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "echo workload")
			if tt.text != "" {
				f.file("pre.sh", tt.text, 0o644)
			}
			f.attempt.Job.TimeoutSeconds = 1
			f.attempt.Job.PreScripts = []plan.Script{{Path: "pre.sh"}}
			exit, end := f.run()
			if exit != 6 || end.Outcome != evidence.OutcomeRefused || end.Code != "PRE_SCRIPT" || !strings.Contains(end.Message, tt.says) {
				t.Errorf("exit %d, outcome %v, code %s, message %q, want %q", exit, end.Outcome, end.Code, end.Message, tt.says)
			}
			if got := f.read("stdout"); got != "" {
				t.Errorf("the workload was started: %q", got)
			}
		})
	}
}

// A service that a pre-script starts lives until the post-scripts have run.
func TestServiceOfAPreScript(t *testing.T) {
	f := newFixture(t, `kill -0 $(cat service) && echo up; setsid sleep 600 & echo $! > "$MODEL_DIR/left"`)
	f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
	f.file("pre.sh", "setsid sleep 600 & echo $! > service; cp service $MODEL_DIR/pid", 0o644)
	f.file("post.sh", "kill -0 $(cat service) && echo still up; kill -0 $(cat $MODEL_DIR/left) 2>/dev/null || echo leftover gone", 0o644)
	f.attempt.Job.PreScripts = []plan.Script{{Path: "pre.sh"}}
	f.attempt.Job.PostScripts = []plan.Script{{Path: "post.sh"}}
	f.run()
	if got := f.read("stdout"); got != "up\n[assay: post-script post.sh]\nstill up\nleftover gone\n" {
		t.Errorf("stdout is %q, stderr %q", got, f.read("stderr"))
	}
	gone(t, waitFor(t, filepath.Join(f.model, "pid")))
}

// Post-scripts run after a workload that reached its time limit.
func TestPostScriptAfterTimeLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "sleep 600")
	f.file("post.sh", "echo post", 0o644)
	f.attempt.Job.TimeoutSeconds = 1
	f.attempt.Job.PostScripts = []plan.Script{{Path: "post.sh"}}
	exit, end := f.run()
	if exit != 124 || end.Outcome != evidence.OutcomeTimedOut || f.read("stdout") != "[assay: post-script post.sh]\npost\n" {
		t.Errorf("exit %d, outcome %v, stdout %q", exit, end.Outcome, f.read("stdout"))
	}
}

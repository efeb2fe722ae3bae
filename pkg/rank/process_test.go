package rank_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// Whatever a workload leaves behind is ended, and does not hold up the end.
func TestLeftovers(t *testing.T) {
	tests := map[string]string{
		"background":            `sleep 600 & echo $! >> "$PIDS"; exit 5`,
		"daemon":                `setsid sleep 600 & sleep 0.1; pgrep -s 0 >/dev/null; echo $! >> "$PIDS"; exit 5`,
		"double fork":           `( setsid bash -c 'echo $$ >> "$PIDS"; exec sleep 600' & ) ; while [ ! -s "$PIDS" ]; do :; done; exit 5`,
		"ignores TERM":          `( setsid bash -c 'trap "" TERM HUP; echo $$ >> "$PIDS"; while :; do sleep 1; done' & ) ; while [ ! -s "$PIDS" ]; do :; done; exit 5`,
		"closed its streams":    `( setsid sleep 600 >/dev/null 2>&1 & echo $! >> "$PIDS" ); exit 5`,
		"many":                  `for i in $(seq 50); do ( setsid bash -c 'echo $$ >> "$PIDS"; sleep 600 & sleep 600 & wait' & ); done; while [ "$(wc -l < "$PIDS")" -lt 50 ]; do sleep 0.01; done; exit 5`,
		"forks while it dies":   `( setsid bash -c 'trap "" TERM; echo $$ >> "$PIDS"; while :; do (trap "" TERM; sleep 0.05; sleep 600) & sleep 0.02; done' & ) ; while [ ! -s "$PIDS" ]; do :; done; exit 5`,
		"cleared environment":   `( setsid env -i sleep 600 & echo $! >> "$PIDS" ); exit 5`,
		"short-lived, by dozen": `for i in $(seq 100); do ( true & ) ; done; sleep 600 & echo $! >> "$PIDS"; exit 5`,
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, script)
			pids := filepath.Join(f.model, "pids")
			f.attempt.Job.Env = map[string]string{"PIDS": pids}
			exit, end := f.run()
			if exit != 5 || end.Outcome != evidence.OutcomeExited {
				t.Errorf("exit %d, outcome %v, want the workload's own 5; %s", exit, end.Outcome, end.Message)
			}
			gone(t, waitFor(t, pids))
			if !strings.Contains(f.read(rundir.WrapperLog), "left behind") {
				t.Error("the wrapper's log does not say that something was left behind")
			}
		})
	}
}

func TestTimeLimitEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `( setsid bash -c 'trap "" TERM; echo $$ >> "$PIDS"; while :; do sleep 1; done' & )
		trap "" TERM; echo $$ >> "$PIDS"; while :; do sleep 1; done`)
	pids := filepath.Join(f.model, "pids")
	f.attempt.Job.Env = map[string]string{"PIDS": pids}
	f.attempt.Job.TimeoutSeconds = 1
	exit, end := f.run()
	if exit != 124 || end.Outcome != evidence.OutcomeTimedOut || !strings.Contains(end.Message, "1s") {
		t.Errorf("exit %d, outcome %v, message %q", exit, end.Outcome, end.Message)
	}
	gone(t, waitFor(t, pids))
}

func TestSignalsArePassedOn(t *testing.T) {
	tests := []struct {
		name   string
		script string
		sig    syscall.Signal
		exit   int
		said   string
	}{
		{"TERM", `trap 'echo got TERM; exit 0' TERM; echo $$ > "$PIDS"; while :; do sleep 0.05; done`, syscall.SIGTERM, 143, "got TERM\n"},
		{"INT", `trap 'echo got INT; exit 0' INT; echo $$ > "$PIDS"; while :; do sleep 0.05; done`, syscall.SIGINT, 130, "got INT\n"},
		{"HUP", `trap 'echo got HUP; exit 0' HUP; echo $$ > "$PIDS"; while :; do sleep 0.05; done`, syscall.SIGHUP, 129, "got HUP\n"},
		{"ignored", `trap '' TERM; echo $$ > "$PIDS"; while :; do sleep 0.05; done`, syscall.SIGTERM, 143, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tt.script)
			pids := filepath.Join(f.model, "pids")
			f.attempt.Job.Env = map[string]string{"PIDS": pids}
			cmd := f.command()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := waitFor(t, pids)
			if err := cmd.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			if exit := exitCode(t, cmd.Wait()); exit != tt.exit {
				t.Errorf("exited %d, want %d", exit, tt.exit)
			}
			end := f.end()
			if end.Outcome != evidence.OutcomeStopped || end.ExitCode != tt.exit {
				t.Errorf("outcome %v, exit code %d", end.Outcome, end.ExitCode)
			}
			if got := f.read("stdout"); got != tt.said {
				t.Errorf("the workload said %q, want %q", got, tt.said)
			}
			gone(t, pid)
		})
	}
}

// A scheduler signals every process of a step at once: that is a stop, not a
// workload that died by itself.
func TestSignalledTogetherIsStopped(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo $$ > "$PIDS"; exec sleep 600`)
	pids := filepath.Join(f.model, "pids")
	f.attempt.Job.Env = map[string]string{"PIDS": pids}
	cmd := f.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(waitFor(t, pids))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if exit := exitCode(t, cmd.Wait()); exit != 143 {
		t.Errorf("exited %d, want 143", exit)
	}
	if end := f.end(); end.Outcome != evidence.OutcomeStopped {
		t.Errorf("outcome %v, want stopped", end.Outcome)
	}
}

// kill -9 of the wrapper leaves none of its processes, daemons included, and no
// end marker.
func TestKilledWrapperLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `( setsid bash -c 'trap "" TERM HUP; echo $$ >> "$PIDS"; while :; do sleep 1; done' & )
		sleep 600 & echo $! >> "$PIDS"; env -i setsid sleep 600 & echo $! >> "$PIDS"; sleep 1; echo $$ >> "$PIDS.main"; wait`)
	pids := filepath.Join(f.model, "pids")
	f.attempt.Job.Env = map[string]string{"PIDS": pids}
	cmd := f.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	main := waitFor(t, pids+".main")
	all := waitFor(t, pids)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, main+" "+all)
	if _, err := os.Stat(filepath.Join(f.dir(), rundir.EndFile)); err == nil {
		t.Error("there is an end marker")
	}
	if _, err := os.Stat(filepath.Join(f.dir(), rundir.BeginFile)); err != nil {
		t.Error("there is no begin marker")
	}
}

func TestStandardInputIsEmpty(t *testing.T) {
	f := newFixture(t, `cat; echo end`)
	cmd := f.command()
	cmd.Stdin = strings.NewReader("typed")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got := f.read("stdout"); got != "end\n" {
		t.Errorf("stdout is %q", got)
	}
}

// A bug in the wrapper still gives an end marker, and leaves nothing running.
func TestPanic(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo $$ > "$ASSAY_RESULTS_DIR/pid"; exec sleep 600`)
	f.call.Panic = true
	exit, end := f.run()
	if exit != 1 || end.Outcome != evidence.OutcomeRefused || end.Code != "INTERNAL" || !strings.Contains(end.Message, "a bug") {
		t.Errorf("exit %d, end %+v", exit, end)
	}
	if data, err := os.ReadFile(filepath.Join(f.dir(), "results/pid")); err == nil {
		gone(t, string(data))
	}
}

// A service that the env_file starts does not outlive the rank.
func TestServiceOfTheEnvFile(t *testing.T) {
	for name, last := range map[string]string{"used": "true", "refused": "false"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `kill -0 $(cat "$MODEL_DIR/pid") && echo up`)
			path := f.file("mad.env", "MODEL_DIR="+f.model+"\nsetsid sleep 600 >/dev/null 2>&1 & echo $! > "+f.model+"/pid\n"+last+"\n", 0o600)
			f.attempt.Job.EnvFile = &plan.EnvFile{Path: path, Format: "shell"}
			f.run()
			gone(t, waitFor(t, filepath.Join(f.model, "pid")))
			if got := f.read("stdout"); name == "used" && got != "up\n" {
				t.Errorf("stdout is %q", got)
			}
		})
	}
}

package rank_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/rundir"
)

// The begin marker is on disk before the workload runs.
func TestBeginComesFirst(t *testing.T) {
	f := newFixture(t, `cat "$ASSAY_RESULTS_DIR/../begin.json"`)
	f.run()
	var b evidence.Begin
	if err := json.Unmarshal([]byte(f.read("stdout")), &b); err != nil {
		t.Fatal(err)
	}
	if b.Nonce != "n1" || b.PID == 0 || b.Host == "" || b.Node == "" || b.StartedAt.IsZero() {
		t.Errorf("begin marker is %+v", b)
	}
}

func TestIsNotStartedTwice(t *testing.T) {
	f := newFixture(t, `echo once >> "$MODEL_DIR/ran"`)
	f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
	f.run()
	end := f.read(rundir.EndFile)
	code, stderr := f.refused()
	if code != 6 || !strings.Contains(stderr, "has already begun") || !strings.Contains(stderr, "not started twice") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if f.read(rundir.EndFile) != end {
		t.Error("the end marker of the first start was changed")
	}
	if data, _ := os.ReadFile(filepath.Join(f.model, "ran")); string(data) != "once\n" {
		t.Errorf("the workload ran again: %q", data)
	}
}

func TestLeftByAnotherRunIsReplaced(t *testing.T) {
	f := newFixture(t, `ls; echo second`)
	f.attempt.Nonce = "n0"
	f.attempt.Job.Program.Command = []string{"touch", "first"}
	f.run()
	f.attempt.Nonce = "n1"
	f.attempt.Job.Program.Command = []string{"bash", "-c", "ls; echo second"}
	exit, end := f.run()
	if exit != 0 || end.Nonce != "n1" {
		t.Errorf("exit %d, nonce %q", exit, end.Nonce)
	}
	if got := f.read("stdout"); got != "second\n" {
		t.Errorf("stdout is %q", got)
	}
}

// What a wrapper left that died before it began keeps nobody from starting.
func TestNeverBegan(t *testing.T) {
	f := newFixture(t, "ls; echo ran")
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile, rundir.MetricsFile, ".begin.json.123", "work/left", ".reserve"} {
		path := filepath.Join(f.dir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("left"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if exit, _ := f.run(); exit != 0 || f.read("stdout") != "ran\n" {
		t.Errorf("exit %d, stdout is %q", exit, f.read("stdout"))
	}
}

// Whatever lies in the place of the begin marker, a rank is started once.
func TestClaimOverLeftovers(t *testing.T) {
	for name, leave := range map[string]func(path string) error{
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"garbage":   func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"directory": func(path string) error { return os.MkdirAll(path+"/x", 0o700) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"dead link": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `echo ran >> "$MODEL_DIR/ran"`)
			f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
			if err := os.MkdirAll(f.dir(), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := leave(filepath.Join(f.dir(), rundir.BeginFile)); err != nil {
				t.Fatal(err)
			}
			var wrappers []*exec.Cmd
			for range 3 {
				cmd := f.command()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				wrappers = append(wrappers, cmd)
			}
			clean := 0
			for _, cmd := range wrappers {
				if exitCode(t, cmd.Wait()) == 0 {
					clean++
				}
			}
			if data, _ := os.ReadFile(filepath.Join(f.model, "ran")); clean != 1 || string(data) != "ran\n" {
				t.Errorf("%d wrappers went on, the workload wrote %q", clean, data)
			}
			if left, _ := filepath.Glob(filepath.Join(f.dir(), ".*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// The end marker alone keeps a rank from being started again.
func TestEndedIsNotStartedAgain(t *testing.T) {
	f := newFixture(t, "true")
	f.run()
	if err := os.Remove(filepath.Join(f.dir(), rundir.BeginFile)); err != nil {
		t.Fatal(err)
	}
	if code, stderr := f.refused(); code != 6 || !strings.Contains(stderr, "not started twice") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestTwoAtOnceStartOne(t *testing.T) {
	f := newFixture(t, `sleep 0.2; echo ran >> "$MODEL_DIR/ran"`)
	f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
	var wrappers []*exec.Cmd
	for range 5 {
		cmd := f.command()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wrappers = append(wrappers, cmd)
	}
	clean := 0
	for _, cmd := range wrappers {
		if exitCode(t, cmd.Wait()) == 0 {
			clean++
		}
	}
	data, _ := os.ReadFile(filepath.Join(f.model, "ran"))
	if clean != 1 || string(data) != "ran\n" {
		t.Errorf("%d wrappers went on, the workload wrote %q", clean, data)
	}
}

func TestBadJobFile(t *testing.T) {
	f := newFixture(t, "true")
	f.call.Rank = 1
	if code, stderr := f.refused(); code != 4 || !strings.Contains(stderr, "rank 1") {
		t.Errorf("rank out of range: exit %d, %q", code, stderr)
	}
	f = newFixture(t, "true")
	f.attempt.Job.Program.Command = nil
	if code, stderr := f.refused(); code != 4 || !strings.Contains(stderr, "neither a command nor a script") {
		t.Errorf("no program: exit %d, %q", code, stderr)
	}
	f = newFixture(t, "true")
	f.attempt.Dir = "relative"
	f.t.Chdir(t.TempDir())
	if code, stderr := f.refused(); code != 4 || !strings.Contains(stderr, "absolute") {
		t.Errorf("relative dir: exit %d, %q", code, stderr)
	}
}

// The directory of a rank is as shared as the attempt directory.
func TestModes(t *testing.T) {
	for _, tt := range []struct{ attempt, dir, file os.FileMode }{
		{0o700, 0o700, 0o600},
		{0o770 | os.ModeSetgid, 0o770 | os.ModeSetgid, 0o660},
	} {
		f := newFixture(t, "echo 'performance: 1 x'")
		if err := os.MkdirAll(f.attempt.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f.attempt.Dir, tt.attempt); err != nil {
			t.Fatal(err)
		}
		f.run()
		for name, want := range map[string]os.FileMode{
			"": tt.dir, "results": tt.dir, "work": tt.dir,
			"begin.json": tt.file, "end.json": tt.file, "stdout": tt.file, "stderr": tt.file, "metrics.json": tt.file,
		} {
			info, err := os.Stat(filepath.Join(f.dir(), name))
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode() & (os.ModePerm | os.ModeSetgid); got != want {
				t.Errorf("attempt %v: %q has mode %v, want %v", tt.attempt, name, got, want)
			}
		}
	}
}

func TestAttemptDirectoryIsNotThere(t *testing.T) {
	f := newFixture(t, "true")
	cmd := f.command()
	if err := os.Remove(f.attempt.Dir); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if exit := exitCode(t, cmd.Run()); exit != 6 || !strings.Contains(stderr.String(), "cannot be seen from this node") {
		t.Errorf("exit %d, %q", exit, stderr.String())
	}
}

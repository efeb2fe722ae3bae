package rank_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/rundir"
)

// However often and whenever a wrapper is told to stop, what began has an end
// marker, and what was measured is kept.
func TestSignalStorm(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}
	for round := range 8 {
		var wait sync.WaitGroup
		for i := range 8 {
			f := newFixture(t, `echo 'performance: 7 x'; sleep 0.05; echo said > "$MODEL_DIR/said"; [ $RANDOM -gt 16000 ] || sleep 600`)
			f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
			cmd := f.command()
			delay := time.Duration(rand.N(150)) * time.Millisecond
			wait.Go(func() {
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				over := make(chan struct{})
				go func() { defer close(over); _ = cmd.Wait() }()
				time.Sleep(delay)
				for n := i; ; n++ {
					select {
					case <-over:
						checkStormed(t, f)
						return
					case <-time.After(time.Duration(rand.N(2000)) * time.Microsecond):
						_ = cmd.Process.Signal(signals[n%len(signals)])
					}
				}
			})
		}
		wait.Wait()
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
}

func checkStormed(t *testing.T, f *fixture) {
	if _, err := os.Stat(filepath.Join(f.dir(), rundir.BeginFile)); err != nil {
		return
	}
	if _, err := os.Stat(filepath.Join(f.dir(), rundir.EndFile)); err != nil {
		t.Errorf("a rank began and left no end: %v", err)
		return
	}
	_, err := os.Stat(filepath.Join(f.model, "said"))
	if end := f.end(); err == nil && (!end.Metrics || len(f.metrics().Readings) != 1) {
		t.Errorf("the measurement is lost: %+v", end)
	}
}

// One who says twice that the rank is to stop does not cut its last words short.
func TestSecondSignalIsNotPassedOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `trap 'sleep 0.2; echo "performance: 7 x"; exit 0' TERM; echo $$ > "$MODEL_DIR/pid"; while :; do sleep 0.02; done`)
	f.file("post.sh", "sleep 0.2; echo post", 0o644)
	f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
	f.attempt.Job.PostScripts = append(f.attempt.Job.PostScripts, script("post.sh"))
	f.attempt.KillGraceMS = 3000
	cmd := f.command()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(f.model, "pid"))
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(10 * time.Millisecond):
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
		}
	}()
	exit := exitCode(t, cmd.Wait())
	close(over)
	if end := f.end(); exit != 143 || end.Outcome != evidence.OutcomeStopped || !end.Metrics || end.Steps[0].ExitCode != 0 {
		t.Errorf("exit %d, end %+v", exit, end)
	}
	if got := f.read("stdout"); !strings.Contains(got, "performance: 7 x\n") || !strings.HasSuffix(got, "post\n") {
		t.Errorf("stdout is %q", got)
	}
}

// A wrapper that is told to stop before its workload starts does not start it.
func TestStoppedBeforeTheStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo ran`)
	f.call.Stopped = true
	exit, end := f.run()
	if exit != 143 || end.Outcome != evidence.OutcomeStopped || f.read("stdout") != "" {
		t.Errorf("exit %d, end %+v, stdout %q", exit, end, f.read("stdout"))
	}
}

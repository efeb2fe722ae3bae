package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"assay/deploy"
	"assay/deploy/deploytest"
	"assay/pkg/plan"
	"assay/pkg/rank"
	"assay/pkg/rundir"
)

// TestMain lets the test binary stand in for assay: started as a rank, it is one.
func TestMain(m *testing.M) {
	if len(os.Args) > 9 && os.Args[1] == "rank" {
		os.Exit(wrap())
	}
	os.Exit(m.Run())
}

// wrap does what `assay rank` does with the arguments of rankArgs.
func wrap() int {
	number, _ := strconv.Atoi(os.Args[5])
	port, _ := strconv.Atoi(os.Args[9])
	node := ""
	if len(os.Args) > 11 {
		node = os.Args[11]
	}
	code, err := rank.Run(context.Background(), rank.Options{
		JobFile: os.Args[3], Rank: number, MasterAddr: os.Args[7], MasterPort: port, Node: node,
		Env: os.Environ(), Stderr: os.Stderr,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

func newTarget(t *testing.T) deploy.Target {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Binary: binary, Env: os.Environ()})
}

func TestConformance(t *testing.T) {
	const answers = "local asks the kernel, which always answers"
	deploytest.Run(t, deploytest.Harness{
		New:      newTarget,
		Dir:      func(t *testing.T) string { return t.TempDir() },
		Patience: time.Minute,
		Named:    []string{"node1", "node2", "it's"},
		KillRank: killRank,
		Refused:  refused,
		Lacking:  lacking,
		Purged:   purged,
		Recycled: recycled,
		Cannot: map[string]string{
			"cancel before the start": "local has no queue: a job that is accepted runs",
			"failing status command":  answers,
			"hanging status command":  answers,
		},
	})
}

// refused is a target whose wrapper the kernel does not start.
func refused(t *testing.T, job plan.Job) (deploy.Target, plan.Job, string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "assay")
	if err := os.WriteFile(binary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return New(Options{Binary: binary, Env: os.Environ()}), job, syscall.EACCES.Error()
}

// lacking is a target whose wrapper is not there.
func lacking(t *testing.T) (deploy.Target, string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "assay")
	return New(Options{Binary: binary, Env: os.Environ()}), binary
}

// noPID is larger than the number of any process: PID_MAX_LIMIT of Linux.
const noPID = 1 << 22

// purged is a job whose processes are no more, and whose pids are nobody's.
func purged(t *testing.T, h deploy.Handle) deploy.Handle {
	t.Helper()
	return withPID(t, h, noPID)
}

func withPID(t *testing.T, h deploy.Handle, pid int) deploy.Handle {
	t.Helper()
	j, err := decode(h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range j.Procs {
		j.Procs[i].PID = pid
	}
	if h, err = j.handle(); err != nil {
		t.Fatal(err)
	}
	return h
}

// recycled gives the pids of a job to another process.
func recycled(t *testing.T, h deploy.Handle) (deploy.Handle, func() bool) {
	t.Helper()
	// The kernel tells processes of one id apart by when they started, in ticks.
	time.Sleep(30 * time.Millisecond)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return withPID(t, h, cmd.Process.Pid), func() bool { return syscall.Kill(cmd.Process.Pid, 0) == nil }
}

func killRank(t *testing.T, a plan.Attempt, number int) {
	t.Helper()
	procs, err := wrappers(filepath.Join(a.Dir, rundir.JobFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if p.Rank == number {
			if err := p.signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("rank %d has no wrapper", number)
}

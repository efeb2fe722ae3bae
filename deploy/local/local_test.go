package local

import (
	"context"
	"fmt"
	"os"
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
	code, err := rank.Run(context.Background(), rank.Options{
		JobFile: os.Args[3], Rank: number, MasterAddr: os.Args[7], MasterPort: port,
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
	deploytest.Run(t, deploytest.Harness{
		New:      newTarget,
		Dir:      func(t *testing.T) string { return t.TempDir() },
		KillRank: killRank,
		Patience: time.Minute,
	})
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

package slurm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/procfs"
)

// The patience of a cancellation with a script that is about to start its step:
// how long until an srun that waits for nodes is ended, and how long until
// everything is.
const (
	stepPatience   = time.Second
	scriptPatience = 10 * time.Second
	cancelPause    = 50 * time.Millisecond
)

// cancelInPlace ends a job inside an allocation. Its ranks are sent TERM through
// SLURM, so that they leave their end: an srun that gets TERM itself kills them.
func (s *scheduler) cancelInPlace(ctx context.Context, r batch.Ref) error {
	ctx = context.WithoutCancel(ctx)
	for begun := time.Now(); ; time.Sleep(cancelPause) {
		l, err := lookAt(r)
		if err != nil || l.ended {
			return err
		}
		steps, err := s.steps(ctx, []string{r.More[moreAllocation]})
		if err != nil {
			return err
		}
		if found, running := steps[r.Name]; running {
			return s.endStep(ctx, found)
		}
		if !l.running {
			return s.nothingToCancel(ctx, r, l)
		}
		session, err := sessionOf(r)
		if err != nil {
			return err
		}
		if done, err := endProcesses(session, time.Since(begun)); done || err != nil {
			return err
		}
	}
}

// endStep asks the ranks of a step to end.
func (s *scheduler) endStep(ctx context.Context, found step) error {
	_, err := s.tools.run(ctx, nil, "scancel", "--signal=TERM", found.id)
	var f *failure
	if errors.As(err, &f) && says(f, "Invalid job id", "already completing or completed") {
		return nil // it has ended
	}
	if err != nil {
		return fmt.Errorf("scancel of step %s: %w", found.id, err)
	}
	return nil
}

// nothingToCancel: no step of the job runs, and nothing of it runs here. On
// another machine its script may be about to start one.
func (s *scheduler) nothingToCancel(ctx context.Context, r batch.Ref, l local) error {
	if l.here {
		return nil
	}
	_, err := decideInPlace(r, l, s.lookOutside(ctx, []batch.Ref{r}))
	if errors.Is(err, deploy.ErrUnavailable) {
		return fmt.Errorf("the job cannot be cancelled from here: %w", err)
	}
	return err
}

// endProcesses ends what of a job does not run under SLURM. done says that what
// was asked to end will.
func endProcesses(session []procfs.Process, waited time.Duration) (done bool, err error) {
	var errs []error
	for _, p := range session {
		args, _ := procfs.Args(p.PID) // none of a process that has just ended
		switch kind := kindOf(args); {
		case kind == isRank, kind == isSrun && waited >= stepPatience, kind != isKeeper && waited >= scriptPatience:
			done = true
			errs = append(errs, p.Handle().Signal(syscall.SIGTERM))
		}
	}
	return done, errors.Join(errs...)
}

// kind is what a process of a job is there for.
type kind int

const (
	isOther  kind = iota
	isKeeper      // keeps the exit code
	isSrun
	isRank // wraps the workload, where that starts its own steps
)

func kindOf(args []string) kind {
	switch {
	case len(args) > 3 && args[1] == "-c" && args[2] == keepCode:
		return isKeeper
	case len(args) > 0 && filepath.Base(args[0]) == "srun":
		return isSrun
	case len(args) > 1 && args[1] == "rank":
		return isRank
	}
	return isOther
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/phrase"
	"assay/pkg/report"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// runArg is what the commands that take a RUN have in common.
type runArg struct {
	runs string
	json bool
}

// onRun makes a command that works on one existing run.
func (a *app) onRun(c *cobra.Command, arg *runArg, do func(context.Context, *rundir.Run, deploy.Target) error) *cobra.Command {
	c.Use += " RUN"
	c.Long += "\n\nRUN is a run directory, an id, the beginning of one, or \"latest\"."
	c.Args = exactly(1, "one RUN")
	c.Flags().StringVar(&arg.runs, "runs", "", "directory of run directories (default ./runs, or ASSAY_RUNS_DIR)")
	jsonFlag(c, &arg.json)
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := run.Open(a.runsDir(arg.runs), args[0])
		if err != nil {
			return err
		}
		t, err := a.target(r.Ledger.Target)
		if err != nil {
			return err
		}
		return classify(do(c.Context(), r, t))
	}
	return c
}

// classify gives an error that nobody classified the code of evidence that cannot
// be read or written, which is what goes wrong with a run directory.
func classify(err error) error {
	if exitcode.Of(err) == exitcode.Internal {
		return exitcode.With(exitcode.Error, err)
	}
	return err
}

// look asks the target once and judges, writing nothing but what the target
// said.
func (a *app) look(ctx context.Context, r *rundir.Run, t deploy.Target) report.Run {
	unlock, err := r.Lock()
	a.refresh(ctx, r, t, err == nil, false)
	if err == nil {
		unlock()
	}
	return run.Judge(r)
}

// refresh asks the target once; when it cannot be asked, what is on disk has to
// do, and the person is told. alone says that the run's lock is held; settle, that
// records which may still appear are waited for.
func (a *app) refresh(ctx context.Context, r *rundir.Run, t deploy.Target, alone, settle bool) {
	if err := run.Refresh(ctx, r, t, alone, settle); err != nil {
		a.log.Warn("the target could not be asked; this is what the run directory says", "error", deploy.Said(err))
	}
}

func (a *app) statusCmd() *cobra.Command {
	var arg runArg
	c := &cobra.Command{
		Use:     "status",
		Short:   "Say how far a run is, without waiting",
		Long:    "status asks the target once and prints the verdicts so far. Nothing is written but what the target said.\nThe exit code is 8 while a job has not ended, then the verdict's.",
		Example: "  assay status latest\n  assay status runs/20260102-150405-a1b2c3 --json",
	}
	return a.onRun(c, &arg, func(ctx context.Context, r *rundir.Run, t deploy.Target) error {
		rep := a.look(ctx, r, t)
		if err := a.printRun(rep, arg.json); err != nil {
			return err
		}
		return exit(a.unfinished(r, rep))
	})
}

// unfinished is the exit code of a run that may not have ended. It says what can
// be done when nobody drives it.
func (a *app) unfinished(r *rundir.Run, rep report.Run) exitcode.Code {
	if rep.Pending() == 0 {
		return rep.ExitCode
	}
	if unlock, err := r.Lock(); err == nil {
		unlock()
		fmt.Fprintf(a.Err, "assay: the run has not ended, and no process drives it; go on with: assay attach %s\n", a.nameOf(r))
	}
	return exitcode.Pending
}

func (a *app) collectCmd() *cobra.Command {
	var arg runArg
	c := &cobra.Command{
		Use:   "collect",
		Short: "Rebuild evidence, verdict and reports from a run directory",
		Long: "collect asks the target once, judges what is in the run directory, and writes the verdicts, the reports and the\n" +
			"rows of perf.csv that are still missing. Doing it again gives the same bytes. The exit code is the verdict's,\n" +
			"8 while a job has not ended.",
		Example: "  assay collect latest",
	}
	return a.onRun(c, &arg, func(ctx context.Context, r *rundir.Run, t deploy.Target) error {
		unlock, err := r.Lock()
		switch {
		case errors.Is(err, rundir.ErrLocked): // writing the reports is the driver's part
			rep := a.look(ctx, r, t)
			return errors.Join(a.printRun(rep, arg.json), exit(a.unfinished(r, rep)))
		case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
			a.log.Warn("the run directory cannot be written; nothing is kept of this", "error", err)
			rep := run.Judge(r)
			return errors.Join(a.printRun(rep, arg.json), exit(rep.ExitCode))
		}
		if err != nil {
			return err
		}
		looked := run.Judge(r).Pending() > 0
		a.refresh(ctx, r, t, true, true)
		rep, err := run.Finish(r, a.notice)
		if err == nil && looked {
			if err := run.Clean(ctx, r, t, rep); err != nil {
				a.log.Warn("what is left of the jobs could not be removed", "error", err)
			}
		}
		unlock()
		if perr := a.printRun(rep, arg.json); perr != nil {
			return perr
		}
		if err != nil {
			return err
		}
		return exit(a.unfinished(r, rep))
	})
}

func (a *app) attachCmd() *cobra.Command {
	var arg runArg
	var live bool
	c := &cobra.Command{
		Use:   "attach",
		Short: "Watch a run to its end, and take it over when nobody drives it",
		Long: "attach waits for the end of a run as run itself does. When the process that drove the run is gone, attach\n" +
			"takes its place: it submits what is still planned, collects, judges and reports.",
		Example: "  assay attach latest",
	}
	c = a.onRun(c, &arg, func(ctx context.Context, r *rundir.Run, t deploy.Target) error {
		unlock, err := r.Lock()
		if errors.Is(err, rundir.ErrLocked) {
			return a.follow(ctx, r, t, arg.json)
		}
		if err != nil {
			return err
		}
		defer unlock()
		return a.drive(ctx, r, t, watchFlags{liveOutput: live, json: arg.json})
	})
	c.Flags().BoolVar(&live, "live-output", false, "print the ranks' output to stderr as it comes")
	return c
}

// follow waits for the process that drives the run, then concludes the run
// whether or not that process did.
func (a *app) follow(ctx context.Context, r *rundir.Run, t deploy.Target, asJSON bool) error {
	a.log.Info("another assay process drives this run; waiting for it")
	ctx, stop := interruptible(ctx)
	defer stop()
	unlock, err := r.WaitLock(ctx)
	if ctx.Err() != nil {
		fmt.Fprintf(a.Err, "assay: no longer watching; the run goes on: assay attach %s\n", a.nameOf(r))
		return exit(exitcode.Of(interrupted(ctx, ctx.Err())))
	}
	if err != nil {
		return err
	}
	defer unlock()
	return a.drive(ctx, r, t, watchFlags{json: asJSON})
}

func (a *app) cancelCmd() *cobra.Command {
	var arg runArg
	c := &cobra.Command{
		Use:     "cancel",
		Short:   "Ask for the end of a run",
		Long:    "cancel stops the jobs of a run that are running and drops those that were not submitted. It does not wait for\nthe ranks to end, and may be repeated. What ended before keeps its verdict.",
		Example: "  assay cancel latest",
	}
	return a.onRun(c, &arg, func(ctx context.Context, r *rundir.Run, t deploy.Target) error {
		unlock, lockErr := r.Lock()
		n, err := run.Cancel(ctx, r, t, evidence.Cancel{By: "assay cancel", At: time.Now().UTC()}, lockErr == nil)
		if lockErr == nil {
			unlock()
		}
		if err != nil {
			return err
		}
		if arg.json {
			return writeJSON(a.Out, map[string]any{"run_id": r.Ledger.RunID, "jobs_told_to_stop": n})
		}
		_, err = fmt.Fprintf(a.Out, "run %s: %s told to stop; see: assay collect %s\n", r.Ledger.RunID, phrase.Count(n, "job"), a.nameOf(r))
		return err
	})
}

// background starts another process that drives the run, and leaves it alone.
func (a *app) background(r *rundir.Run, asJSON bool) error {
	log, err := os.OpenFile(filepath.Join(r.Dir, rundir.DriverLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, r.FileMode())
	if err != nil {
		return exitcode.With(exitcode.Error, err)
	}
	defer log.Close()
	cmd := exec.Command(a.Binary, "attach", r.Dir) //nolint:noctx // it outlives this process
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = a.Env, a.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return exitcode.With(exitcode.Error, fmt.Errorf("the run is in %s, but the process that drives it could not be started: %w", r.Dir, err))
	}
	if err := cmd.Process.Release(); err != nil {
		return err
	}
	rep := run.Judge(r)
	fmt.Fprintf(a.Err, "assay: the run goes on in the background; wait for it with: assay attach %s\n", a.nameOf(r))
	if asJSON {
		if err := a.printRun(rep, true); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(a.Out, a.nameOf(r))
	}
	return exit(exitcode.Pending)
}

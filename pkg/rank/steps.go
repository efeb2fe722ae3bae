package rank

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/regular"
	"assay/pkg/signame"
	"assay/pkg/verdict"
)

// preScripts runs the pre-scripts in order. It reports false when the workload
// must not start: one of them failed, or the wrapper was told to stop.
func (w *wrapper) preScripts(ctx context.Context, p *prepared) bool {
	for _, s := range w.attempt.Job.PreScripts {
		step, e := w.step(ctx, p, "pre", s)
		if e.stopped != nil {
			w.stopped = e.stopped
			w.stopBeforeStart()
			return false
		}
		if step.ExitCode != 0 {
			message := fmt.Sprintf("pre-script %s exited %d", step.Path, step.ExitCode)
			if step.Message != "" {
				message = fmt.Sprintf("pre-script %s: %s", step.Path, step.Message)
			}
			w.refuse(verdict.CodePreScript, int(exitcode.Error), "%s", message)
			return false
		}
	}
	if len(w.attempt.Job.PreScripts) > 0 || w.attempt.Job.EnvFile != nil {
		w.tree.spareAll() // an env_file may start a service too
	}
	return true
}

// postScripts runs the post-scripts in order, all of them whatever happens.
// Their failure is recorded and changes nothing else.
func (w *wrapper) postScripts(ctx context.Context, p *prepared) {
	for _, s := range w.attempt.Job.PostScripts {
		w.step(context.WithoutCancel(ctx), p, "post", s)
	}
}

// step runs one script with the environment of the workload. Its output goes to
// the same logs, below a line that names it, and holds no readings. Each step has the time limit of the job; after a stop, only the grace.
func (w *wrapper) step(ctx context.Context, p *prepared, kind string, s plan.Script) (evidence.Step, ending) {
	began := time.Now()
	step := evidence.Step{Kind: kind, Path: s.Path}
	limit := time.Duration(w.attempt.Job.TimeoutSeconds) * time.Second
	if w.stopped != nil {
		limit = w.grace
	}
	e, err := w.runScript(ctx, p, s, kind+"-script "+s.Path, limit)
	switch {
	case err != nil:
		step.ExitCode, step.Message = notRunnableExit(err), err.Error()
	case e.timedOut:
		step.ExitCode, step.Message = ExitTimeout, fmt.Sprintf("ended at its time limit of %v", limit)
	case e.stopped != nil:
		step.ExitCode, step.Message = signalExit(e.stopped), "stopped by "+signame.Of(e.stopped)
	case e.status.Signaled():
		step.ExitCode, step.Message = signalExit(e.status.Signal()), "ended by "+signame.Of(e.status.Signal())
	default:
		step.ExitCode = e.status.ExitStatus()
	}
	step.ElapsedSeconds = time.Since(began).Seconds()
	w.end.Steps = append(w.end.Steps, step)
	return step, e
}

// runScript runs a script and waits for it alone: a pre-script may leave a
// service running.
func (w *wrapper) runScript(ctx context.Context, p *prepared, s plan.Script, who string, limit time.Duration) (ending, error) {
	path, err := findScript(p.modelDir, s.Path)
	if err != nil {
		return ending{}, err
	}
	argv, err := p.scriptArgv(path, s.Args)
	if err != nil {
		return ending{}, err
	}
	c, err := p.find(argv)
	if err != nil {
		return ending{}, err
	}
	started, err := w.launchStep(p, c, who)
	if err != nil {
		return ending{}, err
	}
	return w.await(ctx, started, limit), nil
}

// workload runs the workload. It reports whether it was started.
func (w *wrapper) workload(ctx context.Context, p *prepared) bool {
	w.lookBefore(p)
	c, err := w.resolve(p)
	before := readMemory(cgroups)
	if err == nil {
		var started *child
		if started, err = w.launchWorkload(p, c); err == nil {
			limit := time.Duration(w.attempt.Job.TimeoutSeconds) * time.Second
			release, leave := w.accompany(ctx)
			ending := w.watch(ctx, started, limit, release)
			leave()
			w.record(ending, limit)
			w.tell(ctx, State{Stage: StageDone})
			w.noteMemory(before)
			if code := w.end.ExitCode; code == ExitNotFound || code == ExitNotExecutable {
				w.explainLineEnds(p)
			}
			return true
		}
		err = launchError(c, err)
	}
	w.refuse(verdict.CodeLaunchRefused, notRunnableExit(err), "%v", err)
	return false
}

// launchError explains why the kernel did not execute a program that is there.
func launchError(c command, err error) error {
	exit, hint := ExitNotExecutable, ""
	switch {
	case errors.Is(err, syscall.ENOENT):
		exit, hint = ExitNotFound, "; the interpreter or loader that it names does not exist"
		if hasCRLF(c.path) {
			hint = "; " + crlfAdvice
		}
	case errors.Is(err, syscall.ENOEXEC):
		hint = "; it is made for another kind of machine, or damaged"
	case errors.Is(err, syscall.E2BIG):
		hint = "; its arguments and environment are too long"
	}
	return &notRunnable{exit, fmt.Sprintf("%s cannot be executed: %v%s", c.path, errors.Unwrap(err), hint)}
}

// crlfAdvice explains the failure of a script that was written on Windows.
const crlfAdvice = `its lines end in CR LF, and the CR is taken for a part of what the line names; convert it: sed -i 's/\r$//'`

// explainLineEnds says why a shell or env did not find what is there.
func (w *wrapper) explainLineEnds(p *prepared) {
	program := w.attempt.Job.Program
	if len(program.Command) > 0 {
		return
	}
	if script, err := findScript(p.modelDir, program.Script); err == nil && hasCRLF(script) {
		w.end.Message = sentence(w.end.Message, "script "+script+": "+crlfAdvice)
	}
}

// hasCRLF reports whether the first line of a script ends in CR LF.
func hasCRLF(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	return strings.HasSuffix(line, "\r\n") && !strings.HasPrefix(line, "\x7fELF")
}

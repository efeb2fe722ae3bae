package rank

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"assay/pkg/container"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/rundir"
	"assay/pkg/signame"
	"assay/pkg/verdict"
)

const (
	startLimit  = 2 * time.Minute  // for an engine to start a container
	askLimit    = 30 * time.Second // for an engine to answer
	innerRounds = 8 * time.Second  // beyond the grace: for the wrapper inside to kill and to record
	askAgain    = time.Second      // after an engine gave no answer
	askPatience = 2 * time.Minute  // for it to give one again
)

// watch starts the container, waits for its end, passes signals on, completes the
// record of the rank, and removes the container.
func (c *outer) watch(ctx context.Context) (int, error) {
	if err := c.start(ctx); err != nil {
		c.remove(ctx)
		return c.refuse(fmt.Errorf("on %s: the container could not be started: %w", c.node(), err))
	}
	c.untilEnd(ctx)
	if code, kept := c.kept(ctx); kept {
		return code, nil
	}
	state, err := c.finalState(ctx)
	code, merr := c.complete(ctx, state, err)
	c.remove(ctx)
	return code, merr
}

func (c *outer) start(ctx context.Context) error {
	// A signal while it starts is passed on right after.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	_, err := c.cli.Output(ctx, "start", c.name)
	return err
}

// untilEnd returns when the container does not run any more, or when its rank has
// ended and it is to be kept.
func (c *outer) untilEnd(ctx context.Context) {
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.waitForEnd(waiting)
	}()
	defer func() {
		cancel()
		<-done
	}()
	kill := time.NewTimer(time.Hour)
	kill.Stop()
	defer kill.Stop()
	var look <-chan time.Time
	if c.a.Job.Container.KeepAlive {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		look = ticker.C
	}
	told := map[string]bool{}
	cancelled := ctx.Done()
	tell := func(sig os.Signal) {
		name := signame.Of(sig)
		if told[name] {
			return
		}
		if len(told) == 0 {
			kill.Reset(c.grace() + innerRounds)
		}
		told[name] = true
		c.signal(ctx, strings.TrimPrefix(name, "SIG"))
	}
	for {
		select {
		case <-done:
			return
		case sig := <-c.o.Signals:
			tell(sig)
		case <-cancelled:
			cancelled = nil
			tell(stopSignal)
		case <-kill.C:
			c.signal(ctx, "KILL")
		case <-look:
			if _, kept := c.kept(ctx); kept {
				return
			}
		}
	}
}

// grace is what the wrapper inside gives its workload.
func (c *outer) grace() time.Duration {
	if ms := c.a.KillGraceMS; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return defaultGrace
}

func (c *outer) signal(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	c.told = true
	c.note("passing SIG%s on to container %s", name, c.name)
	if err := c.cli.Signal(ctx, c.name, name); err != nil {
		c.note("%v", err)
	}
}

// waitForEnd blocks until the container does not run any more, or the engine has not
// answered for long. The command that waits may itself be ended: schedulers signal
// every process of a step.
func (c *outer) waitForEnd(ctx context.Context) {
	silent := time.Now()
	for ctx.Err() == nil {
		if _, err := c.cli.Output(ctx, "wait", c.name); err == nil {
			return
		}
		s, err := c.state(ctx)
		switch {
		case errors.Is(err, container.ErrGone), err == nil && !s.Running:
			return
		case err == nil:
			silent = time.Now()
		case time.Since(silent) > askPatience:
			c.note("%s does not answer any more: %v", c.cli.Name, err)
			return
		}
		_ = pauseFor(ctx, askAgain)
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *outer) state(ctx context.Context) (container.State, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return c.cli.State(ctx, c.name)
}

func (c *outer) finalState(ctx context.Context) (container.State, error) {
	s, err := c.state(context.WithoutCancel(ctx))
	if err != nil && !errors.Is(err, container.ErrGone) { // its command may have got the signal that ended the rank
		s, err = c.state(context.WithoutCancel(ctx))
	}
	return s, err
}

// kept reports whether the rank has ended and its container is to stay, and says how
// to enter it.
func (c *outer) kept(ctx context.Context) (code int, kept bool) {
	if !c.a.Job.Container.KeepAlive {
		return 0, false
	}
	end, ok := c.readEnd()
	if !ok {
		return 0, false
	}
	s, err := c.state(context.WithoutCancel(ctx))
	if err != nil || !s.Running {
		return 0, false
	}
	text := container.HowToEnter(c.cli.Name, c.name)
	c.note("%s", text)
	_, _ = fmt.Fprintf(c.o.Stderr, "assay rank %d: %s: %s\n", c.o.Rank, c.node(), text)
	return end.ExitCode, true
}

// runChild runs the container as a child, with a runtime that has no daemon.
func (c *outer) runChild(ctx context.Context) (int, error) {
	spec, err := c.spec()
	if err != nil {
		return c.refuse(err)
	}
	args, vars, err := spec.Apptainer(c.env)
	if err != nil {
		return c.refuse(err)
	}
	// Not ended with ctx: the wrapper inside is told to stop, and records it.
	cmd := exec.Command(c.cli.Path, args...) //nolint:noctx // see above
	cmd.Env = childEnv(c.o.Env, vars)
	if c.log != nil {
		cmd.Stdout, cmd.Stderr = c.log, c.log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return c.refuse(fmt.Errorf("%s could not be run: %w", c.cli.Path, err))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its state is looked at
	}()
	kill := time.NewTimer(time.Hour)
	kill.Stop()
	defer kill.Stop()
	tell := func(sig os.Signal) {
		if n, ok := sig.(syscall.Signal); ok {
			_ = syscall.Kill(-cmd.Process.Pid, n)
		}
		kill.Reset(c.grace() + innerRounds)
	}
	for cancelled := ctx.Done(); ; {
		select {
		case <-done:
			s := container.State{Started: true, ExitCode: cmd.ProcessState.ExitCode()}
			if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
				s.ExitCode = 128 + int(st.Signal())
			}
			return c.complete(ctx, s, nil)
		case sig := <-c.o.Signals:
			tell(sig)
		case <-cancelled:
			cancelled = nil
			tell(stopSignal)
		case <-kill.C:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}

// complete makes sure that the rank has a record of its end, and returns the code to
// exit with: the one of the wrapper inside, which is the workload's own.
func (c *outer) complete(ctx context.Context, s container.State, err error) (int, error) {
	if end, ok := c.readEnd(); ok {
		if end.Outcome == evidence.OutcomeStopped && !c.told && end.Code == "" {
			end.Code = verdict.CodeCancelled
			end.Message = fmt.Sprintf("its container was told to stop, and not by this run: somebody did, or %s itself was stopped", c.cli.Name)
			if err := c.write(end); err != nil {
				c.note("%s, which could not be added to its record: %v", end.Message, err)
			}
		}
		if s.OOM && !strings.Contains(end.Message, ranOutOfMemory) {
			end.Message = sentence(end.Message, outOfMemory(s.Memory))
			if err := c.write(end); err != nil {
				c.note("%s, which could not be added to its record: %v", outOfMemory(s.Memory), err)
			}
		}
		return end.ExitCode, nil
	}
	if err != nil && !errors.Is(err, container.ErrGone) {
		return int(exitcode.Error), exitcode.Errorf(exitcode.Error, "rank %d: how its container ended is not known: %w", c.o.Rank, err)
	}
	said := c.logs(ctx)
	begin, began := c.readBegin()
	if !began {
		why := fmt.Sprintf("on %s: the container ended with exit code %d before the rank began", c.node(), s.ExitCode)
		if s.Error != "" {
			why += ": " + s.Error
		}
		if said != "" {
			why += ": " + said
		}
		return c.refuse(errors.New(why))
	}
	end := c.endOf(begin, s, err, said)
	if werr := c.write(end); werr != nil {
		return int(exitcode.Error), exitcode.Errorf(exitcode.Error, "rank %d ended (%v, exit code %d) but its end marker cannot be written: %w", c.o.Rank, end.Outcome, end.ExitCode, werr)
	}
	return end.ExitCode, nil
}

// endOf is the end of a rank whose wrapper was killed, or could not write it.
func (c *outer) endOf(b evidence.Begin, s container.State, gone error, said string) evidence.End {
	now := time.Now().UTC()
	end := evidence.End{
		Version: evidence.MarkerVersion, Identity: b.Identity, Host: b.Host, Node: b.Node, StartedAt: b.StartedAt,
		FinishedAt: now, ElapsedSeconds: now.Sub(b.StartedAt).Seconds(), By: c.cli.Name, ExitCode: s.ExitCode,
		Stdout: evidence.Log{Bytes: c.logSize(rundir.StdoutFile)}, Stderr: evidence.Log{Bytes: c.logSize(rundir.StderrFile)},
		Metrics: c.logSize(rundir.MetricsFile) > 0,
	}
	switch {
	case gone != nil:
		end.Outcome, end.Signal, end.ExitCode = evidence.OutcomeSignaled, "SIGKILL", signalExit(syscall.SIGKILL)
		end.Message = "its container was removed while it ran"
	case s.OOM:
		end.Outcome, end.Signal, end.ExitCode = evidence.OutcomeSignaled, "SIGKILL", signalExit(syscall.SIGKILL)
		end.Message = outOfMemory(s.Memory)
	case s.ExitCode > 128 && s.ExitCode < 128+65:
		end.Outcome, end.Signal = evidence.OutcomeSignaled, signame.Of(syscall.Signal(s.ExitCode-128))
		end.Message = "its container was killed, and the wrapper in it"
	default:
		end.Outcome = evidence.OutcomeUnknown
		end.Message = fmt.Sprintf("its container ended with exit code %d and without a record", s.ExitCode)
	}
	if said != "" {
		end.Message = sentence(end.Message, said)
	}
	c.note("%s", end.Message)
	return end
}

// logs are the last words of the wrapper inside.
func (c *outer) logs(ctx context.Context) string {
	if c.cli.Name == container.Apptainer {
		return "" // they are in the log of the rank
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	var out strings.Builder
	if _, err := c.cli.Run(ctx, nil, &out, &out, "logs", "--tail", "5", c.name); err != nil {
		return ""
	}
	return container.LastLines(out.String(), 3)
}

package rank

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"assay/pkg/container"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/rundir"
	"assay/pkg/signame"
	"assay/pkg/verdict"
)

// outer is the process on the node that starts a rank in a container, watches it and
// removes the container. The same program inside does all that a rank does on a host;
// what is written is in directories that both see at the same paths.
type outer struct {
	a   plan.Attempt
	o   Options
	cli container.CLI
	log *os.File // assay.log of the rank, which the wrapper inside appends to as well; may be nil

	env   []string // KEY=VALUE for the container
	gpus  container.GPUs
	image string // id of the image, or its name where the runtime does not say
	name  string // of the container, once it may be there

	stopped os.Signal // while nothing ran yet
	told    bool      // a signal was passed on to the container
}

// refusal is why a rank is not started.
type refusal struct {
	code string
	exit exitcode.Code
	err  error
}

func refusedFor(code string, exit exitcode.Code, err error) *refusal {
	if err == nil {
		return nil
	}
	return &refusal{code, exit, err}
}

// runContained runs one rank in a container, and returns as Run does.
func runContained(ctx context.Context, a plan.Attempt, o Options) (int, error) {
	c := &outer{a: a, o: o}
	dir, err := rundir.MakeRankDir(a.Dir, o.Rank)
	if err != nil {
		return int(exitcode.Error), exitcode.Errorf(exitcode.Error, "rank %d: %w", o.Rank, err)
	}
	for _, name := range []string{rundir.EndFile, rundir.BeginFile} {
		if err := c.bare().refuseOwn(filepath.Join(dir, name)); err != nil {
			return int(exitcode.Of(err)), err
		}
	}
	if c.log, err = os.OpenFile(filepath.Join(dir, rundir.WrapperLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err == nil {
		defer c.log.Close()
	}
	switch stop := c.untilStopped(ctx, func(ctx context.Context) { err = c.prepare(ctx) }); {
	case stop != nil:
		c.remove(ctx)
		return c.neverStarted(func(w *wrapper) {
			w.stopped = stop
			w.stopBeforeStart()
		})
	case err != nil:
		c.remove(ctx)
		return c.refuse(err)
	case c.cli.Name == container.Apptainer:
		return c.runChild(ctx)
	}
	return c.watch(ctx)
}

// bare is a wrapper that has claimed nothing.
func (c *outer) bare() *wrapper {
	w := &wrapper{attempt: c.a, options: c.o, rank: c.o.Rank, dir: rundir.RankDir(c.a.Dir, c.o.Rank)}
	w.end.Identity = c.a.Identity(c.o.Rank)
	return w
}

// Error makes a refusal an error.
func (r *refusal) Error() string { return r.err.Error() }

// prepare does everything up to the container, which is created and not started. With
// apptainer nothing is created.
func (c *outer) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) *refusal{c.findRunner, c.environment, c.ensureImage, c.create} {
		if r := step(ctx); r != nil {
			return r
		}
	}
	return nil
}

func (c *outer) findRunner(ctx context.Context) *refusal {
	cli, err := container.FindRunner(ctx, c.o.Env, c.a.Job.Container.Runtime)
	if err == nil {
		c.cli = cli
		err = container.CheckStatic(c.o.Binary)
	}
	return refusedFor(verdict.CodeLaunchRefused, exitcode.Error, err)
}

// pullLocks is where processes of a user on a node take turns.
const pullLocks = "/tmp"

func (c *outer) ensureImage(ctx context.Context) *refusal {
	k := c.a.Job.Container
	if c.cli.Name == container.Apptainer { // it pulls by itself, and has no ids
		if c.image = k.Pull; c.image == "" {
			c.image = k.Image
		}
		return nil
	}
	image := container.Image{Name: k.Image, Pull: k.Pull, SHA: k.SHA, ID: k.ImageID}
	began := time.Now()
	id, err := c.cli.Ensure(ctx, image, container.UserLocks(pullLocks), func(name string) { c.note("pulling %s", name) })
	c.image = id
	if err != nil {
		return refusedFor(verdict.CodeImage, exitcode.Error, fmt.Errorf("on %s: %w", c.node(), err))
	}
	c.note("image %s is there after %.1f s", id, time.Since(began).Seconds())
	return nil
}

// create creates the container.
func (c *outer) create(ctx context.Context) *refusal {
	if c.cli.Name == container.Apptainer {
		return nil
	}
	fail := func(err error) *refusal { return refusedFor(verdict.CodeLaunchRefused, exitcode.Error, err) }
	env := container.Divide(c.env)
	spec, err := c.spec()
	if err != nil {
		return fail(err)
	}
	spec.EnvNames, c.name = env.Names, spec.Name
	if len(env.File) > 0 {
		dir, err := os.MkdirTemp("", "assay-env-")
		if err != nil {
			return fail(err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // of nothing but that file
		spec.EnvFile = filepath.Join(dir, "env")
		if err := os.WriteFile(spec.EnvFile, env.File, 0o600); err != nil {
			return fail(err)
		}
	}
	cli := c.cli
	cli.Env = append(append([]string{}, cli.Env...), env.Env...)
	_, err = cli.Output(ctx, spec.Create(c.cli.Name)...)
	if err != nil {
		return fail(fmt.Errorf("on %s: the container could not be created: %w", c.node(), err))
	}
	c.note("created container %s", spec.Name)
	return nil
}

// node is how people call the node.
func (c *outer) node() string {
	if c.o.Node != "" {
		return c.o.Node
	}
	host, err := os.Hostname()
	if err != nil {
		return "this node"
	}
	return host
}

// note writes a line to the log of the rank.
func (c *outer) note(format string, args ...any) {
	if c.log != nil {
		_, _ = fmt.Fprintf(c.log, "%s %s\n", time.Now().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
	}
}

// untilStopped runs f, and ends its context when the process is told to stop. It
// returns the signal for that, nil when there was none.
func (c *outer) untilStopped(ctx context.Context, f func(context.Context)) os.Signal {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(limited)
	}()
	select {
	case <-done:
	case c.stopped = <-c.o.Signals:
		cancel()
		<-done
	}
	if c.stopped == nil && ctx.Err() != nil {
		c.stopped = stopSignal
	}
	if c.stopped != nil {
		c.note("received %s", signame.Of(c.stopped))
	}
	return c.stopped
}

// neverStarted records the end of a rank that did not get as far as its container.
func (c *outer) neverStarted(record func(*wrapper)) (int, error) {
	w, err := newWrapper(c.a, c.o)
	if err != nil {
		return int(exitcode.Of(err)), err
	}
	defer w.close()
	record(w)
	w.drain()
	if err := w.finish(); err != nil {
		return int(exitcode.Of(err)), err
	}
	return w.end.ExitCode, nil
}

// refuse records why the rank was not started.
func (c *outer) refuse(err error) (int, error) {
	r := &refusal{verdict.CodeLaunchRefused, exitcode.Error, err}
	if known, ok := err.(*refusal); ok { //nolint:errorlint // it is never wrapped
		r = known
	}
	return c.neverStarted(func(w *wrapper) { w.refuse(r.code, int(r.exit), "%v", r.err) })
}

// removal is how long the removal of a container may take.
const removal = time.Minute

// remove removes the container, whatever it does, if it is this process that made it:
// another that was started for the same rank has one of the same name.
func (c *outer) remove(ctx context.Context) {
	if c.name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removal)
	defer cancel()
	s, err := c.cli.State(ctx, c.name)
	if errors.Is(err, container.ErrGone) || err == nil && s.Labels[container.LabelWrapper] != wrapperID() {
		return
	}
	if err == nil {
		err = c.cli.Remove(ctx, s.ID)
	}
	if err != nil {
		c.note("the container %s could not be removed: %v; assay gc --cancel removes it", c.name, err)
	}
}

// wrapperID names this process for good, for a label.
func wrapperID() string {
	boot, err := procfs.BootID()
	if err != nil {
		return ""
	}
	now, err := procfs.Read(os.Getpid())
	if err != nil {
		return ""
	}
	return container.WrapperID(now.PID, now.Start, boot)
}

func (c *outer) labels() []container.Label {
	host, _ := os.Hostname()
	return []container.Label{
		{Name: container.LabelRun, Value: c.a.RunID},
		{Name: container.LabelNonce, Value: c.a.Nonce},
		{Name: container.LabelJob, Value: c.a.Job.ID},
		{Name: container.LabelAttempt, Value: strconv.Itoa(c.a.Number)},
		{Name: container.LabelRank, Value: strconv.Itoa(c.o.Rank)},
		{Name: container.LabelDir, Value: c.a.Dir},
		{Name: container.LabelHost, Value: host},
		{Name: container.LabelWrapper, Value: wrapperID()},
		{Name: container.LabelKeep, Value: strconv.FormatBool(c.a.Job.Container.KeepAlive)},
	}
}

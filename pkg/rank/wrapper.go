package rank

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// defaultGrace is the time between TERM and KILL when the job names none.
const defaultGrace = 10 * time.Second

// wrapper is one rank while it runs.
type wrapper struct {
	attempt plan.Attempt
	options Options
	rank    int
	dir     string      // of the rank
	claimed os.FileInfo // that directory, to know it again
	grace   time.Duration

	dirMode, fileMode os.FileMode // as shared as the attempt directory is

	end   evidence.End // filled while the rank goes on
	own   *os.File     // assay.log
	tree  *tree
	guard *guard
	pulse *pulse

	claims []*claim
	noRoom error // nothing could be set aside for the end marker

	stdout, stderr *output
	reader         *reader
	live           *live
	fileReadings   []metric.Reading
	fileProblems   []metric.Problem
	stopped        os.Signal // the last signal that told the wrapper to stop
	passedOn       map[syscall.Signal]bool

	ready  *readiness    // of rank 0 of a pair or group whose others wait for it; else nil
	waited time.Duration // for rank 0
	spoke  atomic.Int64  // when the workload last wrote something, in nanoseconds since StartedAt
}

// newWrapper claims the rank and creates its directories and logs.
func newWrapper(a plan.Attempt, o Options) (*wrapper, error) {
	w := &wrapper{
		attempt: a, options: o, rank: o.Rank, dir: rundir.RankDir(a.Dir, o.Rank),
		grace: time.Duration(a.KillGraceMS) * time.Millisecond, passedOn: map[syscall.Signal]bool{},
	}
	if w.grace <= 0 {
		w.grace = defaultGrace
	}
	host := o.Host
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil {
			host = "unknown"
		}
	}
	w.end = evidence.End{
		Version: evidence.MarkerVersion, Identity: a.Identity(o.Rank), Host: host, Node: o.Node, StartedAt: time.Now().UTC(),
	}
	if w.end.Node == "" {
		w.end.Node = host
	}
	if err := w.makeDirs(); err != nil {
		return nil, exitcode.Errorf(exitcode.Error, "rank %d: %w", o.Rank, err)
	}
	if err := w.claim(); err != nil {
		return nil, err
	}
	if err := w.open(); err != nil {
		w.close()
		w.unclaim()
		return nil, exitcode.Errorf(exitcode.Error, "rank %d: nothing was started: %w", o.Rank, err)
	}
	return w, nil
}

// open creates the directories and logs.
func (w *wrapper) open() error {
	err := w.clear(rundir.EndFile, rundir.StdoutFile, rundir.StderrFile, rundir.MetricsFile, rundir.ResultsDir, rundir.WorkDir, rundir.StateFile, rundir.ReadyFile, reserveFile)
	if err != nil {
		return err
	}
	for _, name := range []string{rundir.ResultsDir, rundir.WorkDir} {
		if err := w.makeDir(name); err != nil {
			return err
		}
	}
	w.own, err = os.OpenFile(w.file(rundir.WrapperLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, w.fileMode)
	if err != nil {
		return err
	}
	w.reader = newReader(w.attempt.Job)
	w.live = newLive(w.file(rundir.MetricsFile), w.passedBy, w.reader.collector.Changed)
	open := func(name string, along io.Writer) (*output, error) {
		o, err := newOutput(w.file(name), w.fileMode, w.attempt.LogLimit)
		if err == nil {
			o.workload.scan, o.workload.after = w.reader.scanner(name), w.live.poke
			o.sink.echo = newEcho(along, name)
		}
		return o, err
	}
	if w.stdout, err = open(rundir.StdoutFile, w.options.EchoOut); err != nil {
		return err
	}
	if w.stderr, err = open(rundir.StderrFile, w.options.EchoErr); err != nil {
		return err
	}
	w.noRoom = setAside(w.file(reserveFile))
	return nil
}

func (w *wrapper) close() {
	if w.own != nil {
		_ = w.own.Close()
	}
	for _, o := range []*output{w.stdout, w.stderr} {
		if o != nil {
			o.abandon()
		}
	}
}

// note writes a line to the wrapper's own log.
func (w *wrapper) note(format string, args ...any) {
	_, _ = fmt.Fprintf(w.own, "%s %s\n", time.Now().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}

// refuse records that the workload was not started.
func (w *wrapper) refuse(code string, exit int, format string, args ...any) {
	w.end.Outcome, w.end.Code, w.end.ExitCode = evidence.OutcomeRefused, code, exit
	w.end.Message = sentence(w.end.Message, fmt.Sprintf(format, args...))
	w.note("%s: %s", code, w.end.Message)
	_, _ = fmt.Fprintf(w.options.Stderr, "assay rank %d: %s: %s\n", w.rank, code, w.end.Message)
}

// execute does everything between the two markers. It never panics: whatever
// goes wrong in here becomes part of the end marker.
func (w *wrapper) execute(ctx context.Context) {
	w.pulse = newPulse()
	defer w.pulse.end()
	defer w.protect(func() { w.settle(ctx) })
	w.protect(func() {
		var err error
		if w.tree, err = newTree(); err != nil {
			w.note("%v", err)
		}
		w.steps(ctx)
	})
}

// protect runs f and turns a panic of it into the outcome of the rank.
func (w *wrapper) protect(f func()) {
	defer func() {
		if r := recover(); r != nil {
			w.note("panic: %v\n%s", r, debug.Stack())
			w.refuse(verdict.CodeInternal, int(exitcode.Internal), "the wrapper failed, which is a bug: %v", r)
		}
	}()
	f()
}

// steps is the life of the rank, in order.
func (w *wrapper) steps(ctx context.Context) {
	if w.noRoom != nil {
		w.refuse(verdict.CodeLaunchRefused, int(exitcode.Error),
			"there is no room for the evidence in %s, so nothing was started: %v", w.dir, w.noRoom)
		return
	}
	w.tell(ctx, State{Stage: StageBegun})
	env, ok := w.environment(ctx)
	if !ok || !w.awaitRoot(ctx) {
		return
	}
	job := w.prepare(env)
	if !w.watchForReady(ctx) {
		return
	}
	w.hear(w.stdout.workload)
	w.hear(w.stderr.workload)
	w.stdout.start()
	w.stderr.start()
	if w.preScripts(ctx, job) && w.awaitReady(ctx, job) && !w.toldToStop(ctx) && w.workload(ctx, job) {
		w.postScripts(ctx, job)
	}
	w.sweep(ctx)
	if err := w.regain(); err != nil {
		w.note("%v", err) // tried again, and told, at the end
	}
	w.drain()
	w.collect(job)
}

// settle ends what must not outlive the rank, whatever happened before.
func (w *wrapper) settle(ctx context.Context) {
	if w.tree != nil {
		if w.end.Code == verdict.CodeInternal {
			w.tree.signal(syscall.SIGKILL) // the workload may still run
		}
		w.protect(func() { w.sweep(ctx) })
	}
	w.drain()
	w.guard.dismiss()
	for _, c := range w.claims {
		c.release()
	}
	if w.tree != nil {
		w.tree.close()
	}
}

// drain waits for the last bytes of the output and closes the logs.
func (w *wrapper) drain() {
	defer w.stdout.sink.echo.hurry()()
	defer w.stderr.sink.echo.hurry()()
	for _, o := range []*output{w.stdout, w.stderr} {
		problem, lost := o.finish()
		switch {
		case problem == "":
			continue
		case lost:
			w.end.Lost = sentence(w.end.Lost, problem)
		default:
			w.end.Message = sentence(w.end.Message, problem)
		}
		w.note("%s", problem)
	}
	for _, o := range []*output{w.stdout, w.stderr} {
		if problem := o.sink.echo.finish(); problem != "" {
			w.note("%s", problem)
		}
	}
	w.end.Stdout, w.end.Stderr = w.stdout.log(), w.stderr.log()
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"assay/deploy"
	"assay/pkg/exitcode"
	"assay/pkg/hostlist"
	"assay/pkg/isolate"
	"assay/pkg/phrase"
	"assay/pkg/report"
	"assay/pkg/run"
	"assay/pkg/rundir"
	"assay/pkg/threshold"
)

// isolateFlags are the flags of isolate.
type isolateFlags struct {
	runArg
	job     string
	metric  string
	least   float64
	most    float64
	jobs    int
	timeout int
	force   bool

	leastSet, mostSet, jobsSet, timeoutSet bool
}

func (a *app) isolateCmd() *cobra.Command {
	var f isolateFlags
	c := &cobra.Command{
		Use:   "isolate",
		Short: "Find the nodes that make a group fail, by halving",
		Long: "isolate takes the group of a run that failed, and runs it again on parts of its nodes until it can say which of\n" +
			"them are to blame: first on all of them, then on halves; a single node with a partner that passed; at last on\n" +
			"all others. One culprit among N nodes takes 2·log2(N)+2 jobs. A part is bad when its verdict is FAIL, or ERROR\n" +
			"after its ranks began; a group that is slow but passed needs a bound, --metric with --min or --max.\n\n" +
			"Every part is a run of its own, RUN-isolate-1 and so on, that stays. The exit code is 0 when there is a\n" +
			"conclusion (culprits, a set that fails only together, or not reproducible), 6 when there is none.",
		Example: "  assay isolate latest\n  assay isolate latest --job allreduce --metric busbwGBs --min 300",
	}
	c = a.onRun(c, &f.runArg, func(ctx context.Context, r *rundir.Run, t deploy.Target) error {
		changed := c.Flags().Changed
		f.leastSet, f.mostSet, f.jobsSet, f.timeoutSet = changed("min"), changed("max"), changed("jobs"), changed("timeout")
		return a.isolate(ctx, r, t, f)
	})
	fl := c.Flags()
	fl.StringVar(&f.job, "job", "", "job of scope group: its id, key or test (default: the only one that failed)")
	fl.StringVar(&f.metric, "metric", "", "metric with a bound that makes a part of the nodes bad")
	fl.Float64Var(&f.least, "min", 0, "least value of --metric that is good")
	fl.Float64Var(&f.most, "max", 0, "largest value of --metric that is good")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "parts that run at the same time, 1 or 2 (default: as many jobs as RUN had at once)")
	fl.IntVar(&f.timeout, "timeout", 0, "time limit of every part in seconds, instead of the job's; 0 is none")
	fl.BoolVar(&f.force, "force", false, "go on although another run uses some of the nodes; that is recorded")
	return c
}

// bound is the threshold that the flags make; nil when there is none.
func (f isolateFlags) bound() (*threshold.Threshold, error) {
	t := threshold.Threshold{Metric: f.metric, Note: "given to isolate"}
	if f.leastSet {
		t.Min = &f.least
	}
	if f.mostSet {
		t.Max = &f.most
	}
	switch {
	case f.metric == "" && (f.leastSet || f.mostSet):
		return nil, errors.New("--min and --max are bounds of a metric: name it with --metric")
	case f.metric == "":
		return nil, nil
	case !f.leastSet && !f.mostSet:
		return nil, fmt.Errorf("--metric %s needs a bound: --min or --max", f.metric)
	case math.IsNaN(f.least) || math.IsInf(f.least, 0) || math.IsNaN(f.most) || math.IsInf(f.most, 0):
		return nil, errors.New("--min and --max take finite numbers")
	case f.leastSet && f.mostSet && f.least > f.most:
		return nil, fmt.Errorf("--min %g is above --max %g: nothing would be good", f.least, f.most)
	}
	return &t, nil
}

// isolation is a search that goes on.
type isolation struct {
	*app
	flags  isolateFlags
	group  *run.Group
	of     *rundir.Run
	target deploy.Target
	search *isolate.Search
	path   []isolatePart
	next   int // number of the next run
	step   int
}

// isolatePart is one part of the nodes that was run.
type isolatePart struct {
	Step    int      `json:"step"`
	Nodes   []string `json:"nodes"`
	RunID   string   `json:"run_id"`
	Verdict string   `json:"verdict"`
	Answer  string   `json:"answer"` // "good", "bad" or "unknown"
	Value   *float64 `json:"value"`  // of the metric that is gated; null when it was not measured
}

func (a *app) isolate(ctx context.Context, r *rundir.Run, t deploy.Target, f isolateFlags) error {
	s, err := a.newIsolation(r, t, f)
	if err != nil {
		return err
	}
	if err := a.checkTemplates(); err != nil {
		return err
	}
	a.log.Info(fmt.Sprintf("run %s: telling the nodes of %s apart: %s (%s)", r.Ledger.RunID, s.group.Name(), phrase.Count(len(s.group.Nodes), "node"), hostlist.Compress(s.group.Nodes)))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	stopped, err := s.seek(ctx, signals)
	if perr := s.print(stopped); err == nil {
		err = perr
	}
	switch {
	case err != nil:
		return err
	case stopped != nil:
		return exit(signalCode(stopped))
	}
	return exit(s.exitCode())
}

// newIsolation finds what is to be told apart. RUN must have ended.
func (a *app) newIsolation(r *rundir.Run, t deploy.Target, f isolateFlags) (*isolation, error) {
	bound, err := f.bound()
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	if f.jobsSet && f.jobs < 1 {
		return nil, exitcode.Errorf(exitcode.Invalid, "--jobs %d: at least 1 part has to run at once", f.jobs)
	}
	if f.timeout < 0 {
		return nil, exitcode.Errorf(exitcode.Invalid, "--timeout %d: seconds must not be negative; 0 is no limit", f.timeout)
	}
	rep := run.Judge(r)
	unlock, err := r.Lock()
	switch {
	case errors.Is(err, rundir.ErrLocked):
		return nil, exitcode.Errorf(exitcode.Invalid, "run %s still goes on in another process; wait for it with: assay attach %s", rep.RunID, a.nameOf(r))
	case err != nil && rep.Pending() > 0: // else a run that can only be read will do
		return nil, err
	case err == nil:
		unlock()
	}
	if rep.Pending() > 0 {
		return nil, exitcode.Errorf(exitcode.Invalid, "run %s has not ended; go on with: assay attach %s", rep.RunID, a.nameOf(r))
	}
	g, err := run.FindGroup(r, rep, f.job, bound != nil)
	if err != nil {
		return nil, err
	}
	if bound != nil {
		g.Bound(*bound)
	}
	return &isolation{app: a, flags: f, group: g, of: r, target: t, search: isolate.New(g.Nodes), next: 1}, nil
}

// seek runs parts until the search has ended, or a signal stops it.
func (s *isolation) seek(ctx context.Context, signals <-chan os.Signal) (stopped os.Signal, err error) {
	for sets := s.search.Next(); len(sets) > 0; sets = s.search.Next() {
		s.step++
		for _, together := range s.batches(sets) {
			select {
			case sig := <-signals:
				return sig, nil
			default:
			}
			if stopped, err = s.runParts(ctx, together, signals); stopped != nil || err != nil {
				return stopped, err
			}
		}
	}
	return nil, nil
}

// batches divides the sets of a step into those that may run at the same time: as many
// as jobs of the first run, or as the user says, and never more nodes under load than
// there.
func (s *isolation) batches(sets [][]string) [][][]string {
	most, nodes := s.of.Ledger.Concurrency, s.of.Ledger.MaxNodes
	if s.flags.jobsSet {
		most = s.flags.jobs
	}
	var out [][][]string
	load := 0
	for _, set := range sets {
		last := len(out) - 1
		if last < 0 || len(out[last]) >= max(1, most) || nodes > 0 && load+len(set) > nodes {
			out, load, last = append(out, nil), 0, len(out)
		}
		out[last] = append(out[last], set)
		load += len(set)
	}
	return out
}

// runParts makes a run of each set and drives them at the same time.
func (s *isolation) runParts(ctx context.Context, sets [][]string, signals <-chan os.Signal) (os.Signal, error) {
	runs := make([]*rundir.Run, 0, len(sets))
	for _, set := range sets {
		r, err := s.create(ctx, set)
		if err != nil {
			return nil, errors.Join(err, undo(runs))
		}
		runs = append(runs, r)
	}
	drives := make([]driven, len(runs))
	each := make([]chan os.Signal, len(runs))
	var wg sync.WaitGroup
	for i, r := range runs {
		each[i] = make(chan os.Signal, 2)
		wg.Go(func() { drives[i] = s.drivePart(ctx, r, each[i]) })
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	var stopped os.Signal
	for done := false; !done; {
		select {
		case sig := <-signals:
			if stopped == nil {
				stopped = sig
			}
			for _, c := range each {
				select {
				case c <- sig:
				default: // it has had two already
				}
			}
		case <-ended:
			done = true
		}
	}
	var errs []error
	for i, d := range drives {
		errs = append(errs, d.err)
		if d.said != "" {
			fmt.Fprintf(s.Err, "assay: run %s: %s\n", runs[i].Ledger.RunID, d.said)
		}
		if d.report != nil {
			s.learn(sets[i], *d.report)
		}
	}
	return stopped, errors.Join(errs...)
}

// driven is how the drive of a part ended.
type driven struct {
	report *report.Run // nil when it has not been judged
	said   string      // what a signal did to it; empty: there was none
	err    error
}

// undo removes runs of which nothing was run, because another of the same step could
// not be made.
func undo(runs []*rundir.Run) error {
	var errs []error
	for _, r := range runs {
		errs = append(errs, run.Unclaim(r), os.RemoveAll(r.Dir))
	}
	return errors.Join(errs...)
}

// create makes the run of a set of nodes, with the next id that is free.
func (s *isolation) create(ctx context.Context, nodes []string) (*rundir.Run, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	var timeout *int
	if s.flags.timeoutSet {
		timeout = &s.flags.timeout
	}
	p, err := s.group.Prepare(ctx, s.Env, nodes, timeout)
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	for ; ; s.next++ {
		id := fmt.Sprintf("%s-isolate-%d", s.of.Ledger.RunID, s.next)
		if _, err := os.Lstat(filepath.Join(filepath.Dir(s.of.Dir), id)); err == nil {
			continue // of an earlier search
		}
		s.next++
		r, err := p.Create(ctx, run.Settings{
			Runs: filepath.Dir(s.of.Dir), Concurrency: 1, Shared: s.of.Ledger.Shared, RunID: id, Force: s.flags.force, Now: time.Now(),
		}, s.target)
		return r, interrupted(ctx, err)
	}
}

// drivePart takes the run of a part to its end.
func (s *isolation) drivePart(ctx context.Context, r *rundir.Run, signals <-chan os.Signal) driven {
	unlock, err := r.Lock()
	if err != nil {
		return driven{err: err}
	}
	defer unlock()
	d := run.Driver{Run: r, Target: s.target, Signals: signals, OnEvent: func(e run.Event) {
		if e.Kind == run.EventNotice {
			s.notice(fmt.Sprintf("run %s: %s", r.Ledger.RunID, e.Text))
		}
	}}
	outcome, err := d.Drive(ctx)
	rep, ferr := run.Finish(r, s.notice)
	out := driven{report: &rep, err: errors.Join(err, ferr)}
	if outcome.Signal != nil {
		out.said = outcome.Describe(rep, s.nameOf(r))
	}
	return out
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"assay/deploy"
	"assay/pkg/exitcode"
	"assay/pkg/hostlist"
	"assay/pkg/isolate"
	"assay/pkg/phrase"
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
		PreRunE: checkOptions,
		Use:     "isolate",
		Short:   "Find the nodes that make a group fail, by halving",
		Long: "isolate takes the group of a run that failed, and runs it again on parts of its nodes until it can say which of\n" +
			"them are to blame: first on all of them, then on halves; a single node with a partner that passed; at last on\n" +
			"all others. One culprit among N nodes takes 2·log2(N)+2 jobs. A part is bad when its verdict is FAIL, or twice ERROR\n" +
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
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "parts that run at the same time, 1 or 2 (default: 2 where RUN had a limit of nodes under load, several jobs\nat once or a scheduler with a queue, else 1)")
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
	Answer  string   `json:"answer"` // "good", "bad", "suspect" or "unknown"
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
		if err := g.CheckMetric(bound.Metric); err != nil {
			return nil, exitcode.Errorf(exitcode.Invalid, "run %s: %w", rep.RunID, err)
		}
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

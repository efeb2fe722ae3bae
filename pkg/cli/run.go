package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"assay/deploy"
	"assay/pkg/exitcode"
	"assay/pkg/perfcsv"
	"assay/pkg/phrase"
	"assay/pkg/progress"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// defaultManifest is the manifest that is read and written when none is named.
const defaultManifest = "build_manifest.json"

// runFlags are the flags of run and render.
type runFlags struct {
	manifest   string
	sel        selection
	runs       string
	perfCSV    string
	timeout    int
	jobs       int
	strict     bool
	noWait     bool
	bare       bool
	dryRun     bool
	builds     bool // images of cards that --tags selects are built
	liveOutput bool
	keepAlive  bool
	json       bool
	share      string
	logLimit   int64
	id         string
	timeoutSet bool
	jobsSet    bool
	at         nodeFlags
	force      bool
	resume     string // a run to go on with
}

func (a *app) runCmd() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [-m MANIFEST | --tags TAGS | --suite FILE]",
		Short: "Run a manifest and judge what it left",
		Long: "run plans every entry of the manifest, hands it to its target, waits for the ranks to end, and judges the\n" +
			"evidence. The table of verdicts goes to stdout, everything else to stderr; the exit code is the verdict\n" +
			"(see: assay help exit-codes).\n\n" +
			"The first Ctrl-C cancels the jobs and waits for them, a second one leaves them alone at once. After a kill,\n" +
			"status, attach, collect and cancel go on from the run directory.",
		Example: `  assay run
  assay run -m build_manifest.json --jobs 4 --json
  assay run --tags demo
  assay run --dry-run`,
		Args: exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			f.timeoutSet, f.jobsSet = c.Flags().Changed("timeout"), c.Flags().Changed("jobs")
			if f.dryRun {
				return a.render(c.Context(), f)
			}
			if f.resume != "" {
				return classify(a.resume(c.Context(), f))
			}
			f.builds = true
			return classify(a.run(c.Context(), f))
		},
	}
	a.addRunFlags(c, &f)
	fl := c.Flags()
	fl.StringVar(&f.perfCSV, "perf-csv", "perf.csv", "file to which the rows of the run are added; \"\" adds none")
	fl.IntVarP(&f.jobs, "jobs", "j", 0, "jobs at once (default: 1 on this machine, all of them where a scheduler has a queue)")
	fl.BoolVar(&f.noWait, "no-wait", false, "return at once with exit code 8; the run goes on in the background")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print what would run, and run nothing")
	fl.BoolVar(&f.liveOutput, "live-output", false, "print the ranks' output to stderr as it comes")
	fl.StringVar(&f.share, "share", "", "\"group\" lets the group read and write the run directory")
	fl.StringVar(&f.id, "run-id", "", "id of the run (default: made from the time)")
	fl.BoolVar(&f.force, "force", false, "go on although another run uses some of the nodes; that is recorded")
	fl.StringVar(&f.resume, "resume", "", "a run (directory, id, \"latest\") to go on with: what it has not judged is run")
	jsonFlag(c, &f.json)
	return c
}

// addRunFlags adds the flags that run and render have in common.
func (a *app) addRunFlags(c *cobra.Command, f *runFlags) {
	c.PreRunE = checkOptions
	fl := c.Flags()
	fl.StringVarP(&f.manifest, "manifest", "m", "", "manifest to run (default "+defaultManifest+")")
	a.addSelection(c, &f.sel)
	addNodeFlags(c, &f.at)
	fl.StringVar(&f.runs, "runs", "", "directory of run directories (default ./runs, or ASSAY_RUNS_DIR)")
	fl.IntVar(&f.timeout, "timeout", 0, "time limit of every job in seconds, instead of the manifest's; 0 is none")
	fl.BoolVar(&f.strict, "strict", false, "a warning makes a verdict FAIL")
	fl.BoolVar(&f.bare, "bare", false, "ignore images and run directly on the host")
	fl.BoolVar(&f.keepAlive, "keep-alive", false, "leave the containers of ranks running when their ranks have ended, and say how to enter them")
	fl.StringVar(&a.templateDir, "template-dir", "", "directory whose templates of job scripts win over the embedded ones")
	fl.Int64Var(&f.logLimit, "log-limit", 0, "bytes kept of each output stream of a rank, head and tail; 0 keeps all")
}

func (a *app) runsDir(flag string) string {
	if flag != "" {
		return flag
	}
	if dir := a.getenv("ASSAY_RUNS_DIR"); dir != "" {
		return dir
	}
	return "runs"
}

// prepare reads, lints and plans the manifest of a run, and checks what can be
// known before anything is created.
func (a *app) prepare(ctx context.Context, f runFlags) (*run.Prepared, deploy.Target, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	p, t, err := a.prepareNow(ctx, f)
	return p, t, interrupted(ctx, err)
}

func (a *app) prepareNow(ctx context.Context, f runFlags) (*run.Prepared, deploy.Target, error) {
	path, data, err := a.manifestFor(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	in := run.Input{ManifestPath: path, Manifest: data, Env: a.Env, Bare: f.bare, Strict: f.strict, KeepAlive: f.keepAlive, LogLimit: f.logLimit}
	if f.timeoutSet {
		if f.timeout < 0 {
			return nil, nil, exitcode.Errorf(exitcode.Invalid, "--timeout %d: seconds must not be negative; 0 is no limit", f.timeout)
		}
		in.Timeout = &f.timeout
	}
	if f.logLimit < 0 {
		return nil, nil, exitcode.Errorf(exitcode.Invalid, "--log-limit %d: bytes must not be negative; 0 keeps all", f.logLimit)
	}
	if err := f.at.into(&in); err != nil {
		return nil, nil, err
	}
	p, err := run.Prepare(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if err := a.checkTemplates(); err != nil {
		return nil, nil, err
	}
	t, err := a.target(p.Target)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range p.Warnings {
		a.log.Warn(w)
	}
	return p, t, nil
}

// checkTarget asks the target what would fail.
func (a *app) checkTarget(ctx context.Context, p *run.Prepared, t deploy.Target, runs string) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	return interrupted(ctx, p.Check(ctx, t, runs, a.notice))
}

// runsFor is the directory of run directories of a manifest: the one that the user
// names, else in the workspace that its nodes share.
func (a *app) runsFor(flag string, p *run.Prepared) string {
	if dir := p.SharedWorkspace(); dir != "" && flag == "" && a.getenv("ASSAY_RUNS_DIR") == "" {
		return filepath.Join(dir, "runs")
	}
	return a.runsDir(flag)
}

// nameOf is what the other commands can be given for a run: its id where they find
// it by that, else its directory.
func (a *app) nameOf(r *rundir.Run) string {
	runs, err := filepath.Abs(a.runsDir(""))
	if err == nil && filepath.Dir(r.Dir) == runs {
		return r.Ledger.RunID
	}
	return r.Dir
}

// atOnce is how many jobs are handed to the target at the same time. Where a suite
// limits the nodes under load, that is enough.
func atOnce(asked int, p *run.Prepared, t deploy.Target) int {
	q, ok := t.(deploy.Queue)
	if asked == 0 && (ok && q.Queues() || p.Suite != nil && len(p.Nodes) > 0) {
		return len(p.Jobs)
	}
	return asked
}

// manifestFor returns the manifest of a run: the file that was named, or one
// built from the selected cards.
func (a *app) manifestFor(ctx context.Context, f runFlags) (path string, data []byte, err error) {
	if len(f.sel.tags) > 0 || f.sel.suite != "" {
		if f.manifest != "" {
			return "", nil, exitcode.Errorf(exitcode.Invalid, "--manifest excludes --tags and --suite: a manifest says what runs")
		}
		f.sel.chooseRoot()
		path := filepath.Join(f.sel.root, defaultManifest)
		images := imageFlags{jobs: defaultBuildJobs, noImages: f.bare, unbuilt: !f.builds}
		res, err := a.buildManifest(ctx, buildFlags{sel: f.sel, output: path, images: images})
		return path, res.JSON, err
	}
	if f.sel.target != "" {
		return "", nil, exitcode.Errorf(exitcode.Invalid, "--target goes with --tags or --suite: a manifest says where it runs (deployment_config.target)")
	}
	path = f.manifest
	if path == "" {
		path = defaultManifest
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return "", nil, exitcode.Errorf(exitcode.Invalid, "there is no %s here: build one with 'assay build --tags TAGS', or name one with -m", path)
		}
	}
	data, err = a.readManifest(path)
	return path, data, err
}

func (a *app) run(ctx context.Context, f runFlags) error {
	if f.share != "" && f.share != "group" {
		return exitcode.Errorf(exitcode.Invalid, "--share %q: the only value is \"group\"", f.share)
	}
	if f.jobsSet && f.jobs < 1 {
		return exitcode.Errorf(exitcode.Invalid, "--jobs %d: at least 1 job has to run at once", f.jobs)
	}
	p, t, err := a.prepare(ctx, f)
	if err != nil {
		return err
	}
	runs := a.runsFor(f.runs, p)
	if err := a.checkTarget(ctx, p, t, runs); err != nil {
		return err
	}
	if f.perfCSV != "" {
		if err := perfcsv.Check(f.perfCSV); err != nil {
			return err
		}
	}
	r, err := p.Create(ctx, run.Settings{
		Runs: runs, PerfCSV: f.perfCSV, Concurrency: atOnce(f.jobs, p, t), Shared: f.share != "", RunID: f.id, Force: f.force, Now: time.Now(),
	}, t)
	if err != nil {
		return err
	}
	a.tellNodes(p)
	a.log.Info(fmt.Sprintf("run %s: %s on %s, in %s", r.Ledger.RunID, phrase.Count(len(p.Jobs), "job"), t.Name(), a.short(r.Dir)))
	if f.noWait {
		return a.background(r, f.json)
	}
	unlock, err := r.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	err = a.drive(ctx, r, t, watchFlags{liveOutput: f.liveOutput, json: f.json})
	a.tellKept(ctx, r, p.Jobs)
	return err
}

// watchFlags say how a run is shown while it goes on and when it has ended.
type watchFlags struct {
	liveOutput bool
	json       bool
}

// drive takes a run to its end, or to where a signal stops it, and reports.
func (a *app) drive(ctx context.Context, r *rundir.Run, t deploy.Target, f watchFlags) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	show := progress.New(progress.Options{
		Out: a.Err, Live: a.ErrTTY && a.color(a.ErrTTY) && !a.quiet, Color: a.color(a.ErrTTY), Width: a.Width,
		Tail: f.liveOutput, Quiet: a.quiet,
	})
	d := run.Driver{Run: r, Target: t, Signals: signals, OnEvent: show.Event}
	outcome, err := d.Drive(ctx)
	// From here on a signal ends the process: what is left to do can be done again.
	signal.Stop(signals)
	show.Close()
	rep, finishErr := run.Finish(r, a.notice)
	if err := a.stepSummary(rep); err != nil {
		a.log.Warn("the summary could not be written", "file", a.getenv("GITHUB_STEP_SUMMARY"), "error", err)
	}
	if perr := a.printRun(rep, f.json); perr != nil && !errors.Is(perr, syscall.EPIPE) { // nobody reads it any more
		finishErr = errors.Join(finishErr, fmt.Errorf("the verdicts could not be printed: %w", perr))
	}
	return a.conclude(r, rep, outcome, errors.Join(err, finishErr))
}

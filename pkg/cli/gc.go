package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/phrase"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

// orphan is a run that has not ended and that no process drives.
type orphan struct {
	RunID     string `json:"run_id"`
	Dir       string `json:"dir"`
	Pending   int    `json:"jobs_pending"`
	Cancelled int    `json:"jobs_told_to_stop"`
	// Lost says that the scheduler has jobs of a run whose directory is not there.
	Lost bool `json:"run_directory_lost,omitempty"`
	// Over says that the scheduler has jobs of a run that has all of its verdicts: a
	// submission without an answer may appear after it was given up.
	Over      bool     `json:"run_over,omitempty"`
	Elsewhere string   `json:"submitted_from,omitempty"` // another host, which may see it
	JobIDs    []string `json:"job_ids,omitempty"`        // the scheduler's own
	// Container is a container on this machine that a rank of the run left.
	Container string `json:"container,omitempty"`
	Kept      bool   `json:"container_kept,omitempty"` // on purpose
	Removed   bool   `json:"container_removed,omitempty"`
	far       bool   // its directory is not below the runs directory
}

// describe says what became of an orphan, or what can be done about it.
func (o orphan) describe(cancel bool) string {
	switch {
	case o.Container != "":
		return o.describeContainer()
	case o.Elsewhere != "":
		return fmt.Sprintf("job %s: the run directory %s is not here, and was made on %s: run gc there", strings.Join(o.JobIDs, ", "), o.Dir, o.Elsewhere)
	case o.Over && cancel:
		return fmt.Sprintf("job %s is not over although the run %s is, %d told to stop", strings.Join(o.JobIDs, ", "), o.Dir, o.Cancelled)
	case o.Over:
		return fmt.Sprintf("job %s is not over although the run %s is; end it with: assay gc --cancel", strings.Join(o.JobIDs, ", "), o.Dir)
	case o.Lost && cancel:
		return fmt.Sprintf("job %s: the run directory %s is gone, %d told to stop", strings.Join(o.JobIDs, ", "), o.Dir, o.Cancelled)
	case o.Lost:
		return fmt.Sprintf("job %s: the run directory %s is gone; end them with: assay gc --cancel", strings.Join(o.JobIDs, ", "), o.Dir)
	case cancel:
		return fmt.Sprintf("%d told to stop", o.Cancelled)
	}
	return "go on with: assay attach " + o.name()
}

// name is what the other commands can be given.
func (o orphan) name() string {
	if o.far {
		return o.Dir
	}
	return o.RunID
}

func (a *app) gcCmd() *cobra.Command {
	var arg runArg
	var cancel bool
	c := &cobra.Command{
		Use:   "gc",
		Short: "Find runs that have not ended and that no process drives",
		Long: "gc lists the runs below the runs directory whose driving process is gone while jobs have no verdict. It\n" +
			"also lists what a scheduler still has of runs that are elsewhere, that have all their verdicts, or whose directory\n" +
			"is gone, by the names of the jobs, and containers that ranks left on this machine. With --cancel their jobs are told\n" +
			"to stop and their containers removed. No run directory is ever removed.",
		Example: "  assay gc\n  assay gc --cancel",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.gc(c.Context(), arg.runs, cancel, arg.json)
		},
	}
	c.Flags().StringVar(&arg.runs, "runs", "", "directory of run directories (default ./runs, or ASSAY_RUNS_DIR)")
	c.Flags().BoolVar(&cancel, "cancel", false, "tell the jobs of these runs to stop, and remove their containers")
	jsonFlag(c, &arg.json)
	return c
}

func (a *app) gc(ctx context.Context, named string, cancel, asJSON bool) error {
	runs := a.runsDir(named)
	ids, problems, err := run.IDs(runs)
	// Without a name nothing has to be here: a scheduler may have jobs of runs that
	// were.
	if err != nil && (named != "" || !errors.Is(err, fs.ErrNotExist)) {
		return exitcode.With(exitcode.Invalid, err)
	}
	found := []orphan{}
	var known []string
	for _, id := range ids {
		if dir, err := filepath.Abs(filepath.Join(runs, id)); err == nil {
			known = append(known, dir)
		}
		o, err := a.orphan(ctx, runs, id, cancel)
		if err != nil {
			problems = append(problems, fmt.Errorf("run %s: %w", id, err))
		}
		if o != nil {
			found = append(found, *o)
		}
	}
	strays, more := a.strays(ctx, known, cancel)
	for i := range strays {
		strays[i].far = true
	}
	found, problems = append(found, strays...), append(problems, more...)
	left, more := a.leftContainers(ctx, cancel)
	found, problems = append(found, left...), append(problems, more...)
	if err := a.printOrphans(found, cancel, asJSON); err != nil {
		return err
	}
	return exitcode.With(exitcode.Error, errors.Join(problems...))
}

func (a *app) printOrphans(found []orphan, cancel, asJSON bool) error {
	if asJSON {
		return writeJSON(a.Out, found)
	}
	for _, o := range found {
		without := phrase.Count(o.Pending, "job") + " without a verdict, "
		if o.Over || o.Container != "" {
			without = ""
		}
		if _, err := fmt.Fprintf(a.Out, "%s: %s%s\n", o.RunID, without, o.describe(cancel)); err != nil {
			return err
		}
	}
	return nil
}

// orphan looks at one run; nil means that it ended or that a process drives it.
func (a *app) orphan(ctx context.Context, runs, id string, cancel bool) (*orphan, error) {
	r, err := run.Open(runs, id)
	if err != nil {
		return nil, err
	}
	unlock, err := r.Lock()
	if errors.Is(err, rundir.ErrLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	t, err := a.target(r.Ledger.Target)
	if err != nil {
		return nil, err
	}
	a.refresh(ctx, r, t, true, true)
	rep := run.Judge(r)
	o := &orphan{RunID: id, Dir: r.Dir, Pending: rep.Pending()}
	if o.Pending == 0 {
		return nil, nil
	}
	if cancel {
		o.Cancelled, err = run.Cancel(ctx, r, t, evidence.Cancel{By: "assay gc", At: time.Now().UTC()}, true)
	}
	return o, err
}

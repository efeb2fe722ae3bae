package cli

import (
	"context"
	"errors"
	"fmt"
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
}

func (a *app) gcCmd() *cobra.Command {
	var arg runArg
	var cancel bool
	c := &cobra.Command{
		Use:   "gc",
		Short: "Find runs that have not ended and that no process drives",
		Long: "gc lists the runs below the runs directory whose driving process is gone while jobs have no verdict. With\n" +
			"--cancel their jobs are told to stop. No run directory is ever removed.",
		Example: "  assay gc\n  assay gc --cancel",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.gc(c.Context(), a.runsDir(arg.runs), cancel, arg.json)
		},
	}
	c.Flags().StringVar(&arg.runs, "runs", "", "directory of run directories (default ./runs, or ASSAY_RUNS_DIR)")
	c.Flags().BoolVar(&cancel, "cancel", false, "tell the jobs of these runs to stop")
	jsonFlag(c, &arg.json)
	return c
}

func (a *app) gc(ctx context.Context, runs string, cancel, asJSON bool) error {
	ids, problems, err := run.IDs(runs)
	if err != nil {
		return exitcode.With(exitcode.Invalid, err)
	}
	found := []orphan{}
	for _, id := range ids {
		o, err := a.orphan(ctx, runs, id, cancel)
		if err != nil {
			problems = append(problems, fmt.Errorf("run %s: %w", id, err))
		}
		if o != nil {
			found = append(found, *o)
		}
	}
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
		state := "go on with: assay attach " + o.RunID
		if cancel {
			state = fmt.Sprintf("%d told to stop", o.Cancelled)
		}
		if _, err := fmt.Fprintf(a.Out, "%s: %s without a verdict, %s\n", o.RunID, phrase.Count(o.Pending, "job"), state); err != nil {
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

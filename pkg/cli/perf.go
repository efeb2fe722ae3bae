package cli

import (
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
	"assay/pkg/perfcsv"
	"assay/pkg/run"
)

func (a *app) perfCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "perf",
		Short:   "Check or rebuild a perf.csv",
		Long:    "perf works on the table of results that runs add their rows to.",
		Example: "  assay perf validate perf.csv\n  assay perf rebuild --perf-csv perf.csv",
		Args:    between(0, 0, "the name of a command: validate or rebuild"),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.perfValidateCmd(), a.perfRebuildCmd())
	return c
}

func (a *app) perfValidateCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "validate [FILE]",
		Short:   "Check every row of a perf.csv",
		Long:    "validate lists what is wrong with a perf.csv, and exits with 4 when anything is. FILE is perf.csv when not given.",
		Example: "  assay perf validate\n  assay perf validate results/perf.csv --json",
		Args:    between(0, 1, "at most one FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "perf.csv"
			if len(args) == 1 {
				path = args[0]
			}
			return a.perfValidate(path, asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

func (a *app) perfValidate(path string, asJSON bool) error {
	sum, err := perfcsv.Validate(path)
	if err != nil {
		return exitcode.With(exitcode.Invalid, err)
	}
	if asJSON {
		type problem struct {
			Line    int    `json:"line"`
			Column  string `json:"column"`
			Message string `json:"message"`
		}
		list := make([]problem, 0, len(sum.Problems))
		for _, p := range sum.Problems {
			list = append(list, problem{p.Line, p.Column, p.Message})
		}
		if err := writeJSON(a.Out, map[string]any{"file": path, "rows": sum.Rows, "problems": list, "more": sum.More}); err != nil {
			return err
		}
	} else {
		for _, p := range sum.Problems {
			fmt.Fprintf(a.Out, "%s: %s\n", path, p)
		}
		if sum.More > 0 {
			fmt.Fprintf(a.Out, "%s: and %d more\n", path, sum.More)
		}
	}
	if len(sum.Problems) > 0 {
		return exit(exitcode.Invalid)
	}
	if !asJSON {
		fmt.Fprintf(a.Out, "%s: %d rows, nothing wrong\n", path, sum.Rows)
	}
	return nil
}

func (a *app) perfRebuildCmd() *cobra.Command {
	var runs, path string
	var asJSON bool
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Make perf.csv again from the run directories",
		Long: "rebuild judges every run below the runs directory again, the oldest first, and writes their rows to a new file\n" +
			"that takes the place of the old one at once. The old one is kept beside it. Runs that have not ended are left out.",
		Example: "  assay perf rebuild\n  assay perf rebuild --runs runs --perf-csv fresh.csv",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			done, err := perfcsv.Rebuild(path, a.allRows(a.runsDir(runs)))
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.Out, map[string]any{"file": path, "rows": done.Rows, "kept": done.Kept})
			}
			fmt.Fprintf(a.Out, "%s: %d rows\n", path, done.Rows)
			if done.Kept != "" {
				fmt.Fprintf(a.Err, "assay: the old file is %s\n", done.Kept)
			}
			return nil
		},
	}
	c.Flags().StringVar(&runs, "runs", "", "directory of run directories (default ./runs, or ASSAY_RUNS_DIR)")
	c.Flags().StringVar(&path, "perf-csv", "perf.csv", "file to make again")
	jsonFlag(c, &asJSON)
	return c
}

// allRows gives the rows of every run, one batch a run.
func (a *app) allRows(runs string) iter.Seq2[[]perfcsv.Row, error] {
	return func(yield func([]perfcsv.Row, error) bool) {
		ids, damaged, err := run.IDs(runs)
		if err != nil {
			yield(nil, exitcode.With(exitcode.Invalid, err))
			return
		}
		if len(damaged) > 0 {
			yield(nil, exitcode.Errorf(exitcode.Error, "%w\ntheir rows would be missing: repair or move away these run directories", errors.Join(damaged...)))
			return
		}
		for _, id := range ids {
			rows, err := a.rowsOf(runs, id)
			if err != nil {
				err = fmt.Errorf("run %s: %w", id, err)
			}
			if !yield(rows, err) || err != nil {
				return
			}
		}
	}
}

func (a *app) rowsOf(runs, id string) ([]perfcsv.Row, error) {
	r, err := run.Open(runs, id)
	if err != nil {
		return nil, err
	}
	rep := run.Judge(r)
	if rep.Pending() > 0 {
		a.log.Warn("left out: the run has not ended", "run", id)
		return nil, nil
	}
	return run.PerfRows(r, rep)
}

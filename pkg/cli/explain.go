package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"assay/deploy"
	"assay/pkg/exitcode"
	"assay/pkg/report"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

func (a *app) explainCmd() *cobra.Command {
	var arg runArg
	var lines int
	var name string
	c := &cobra.Command{
		Use:   "explain",
		Short: "Print the evidence behind a verdict and the rule that decided",
		Long: "explain prints what every rank left, what the target said, what was measured, the rule that decided, and the\n" +
			"last lines of the log of the rank that failed first. JOB limits it to one job, by its id, its key, or its\n" +
			"name as the table of the run prints it.",
		Example: "  assay explain latest\n  assay explain latest allreduce-2",
	}
	c = a.onRun(c, &arg, func(ctx context.Context, r *rundir.Run, t deploy.Target) error {
		rep := a.look(ctx, r, t)
		var err error
		if rep.Jobs, err = chooseJobs(rep, name); err != nil {
			return err
		}
		if arg.json {
			return a.printRun(rep, true)
		}
		return a.explainJobs(r, rep, lines)
	})
	// JOB is a second, optional argument.
	one := c.RunE
	c.Use = "explain RUN [JOB]"
	c.Args = between(1, 2, "one RUN and at most one JOB")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 2 {
			name = args[1]
		}
		return one(c, args[:1])
	}
	c.Flags().IntVarP(&lines, "lines", "n", 20, "lines of the log to print")
	return c
}

func (a *app) explainJobs(r *rundir.Run, rep report.Run, lines int) error {
	for i, j := range rep.Jobs {
		if i > 0 {
			if _, err := fmt.Fprintln(a.Out); err != nil {
				return err
			}
		}
		ev, err := run.JudgedEvidence(r, j)
		if err != nil {
			return exitcode.With(exitcode.Error, err)
		}
		var tail *report.LogTail
		if tails := run.Tails(r, j, ev, lines); len(tails) > 0 {
			tail = &tails[0]
		}
		if err := report.Explain(a.Out, rep, j, ev, tail, a.reportOptions()); err != nil {
			return err
		}
	}
	return nil
}

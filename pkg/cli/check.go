package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay/deploy"
	"assay/deploy/slurm"
	"assay/pkg/exitcode"
	"assay/pkg/phrase"
)

func (a *app) checkCmd() *cobra.Command {
	var f runFlags
	var onNode bool
	c := &cobra.Command{
		Use:   "check [-m MANIFEST | --tags TAGS]",
		Short: "Say what would keep a manifest from running on its target, and run nothing",
		Long: "check plans the manifest as run does and looks at everything that its target can tell before a submission: tools,\n" +
			"services, partitions and nodes, accounts, and the directory of runs. run refuses what is a problem here. The exit\n" +
			"code is 4 when the manifest asks for what the target does not have, and 6 when the target itself is at fault.\n\n" +
			"With --on-node something is run on a node too, which waits up to 20 s for one that is free.",
		Example: "  assay check\n  assay check -m build_manifest.json --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			f.timeoutSet = c.Flags().Changed("timeout")
			return a.check(c.Context(), f, onNode)
		},
	}
	a.addRunFlags(c, &f)
	c.Flags().BoolVar(&onNode, "on-node", false, "also run something on a node and look from there")
	jsonFlag(c, &f.json)
	return c
}

func (a *app) check(ctx context.Context, f runFlags, onNode bool) error {
	p, t, err := a.prepare(ctx, f)
	if err != nil {
		return err
	}
	runs, err := filepath.Abs(a.runsFor(f.runs, p))
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	found := []deploy.Finding{}
	if c, checks := t.(deploy.Checker); checks {
		req := p.CheckRequest(runs)
		req.OnNode, req.Thorough = onNode, true
		found = append(found, c.Check(ctx, req)...)
	}
	if ctx.Err() != nil {
		return interrupted(ctx, ctx.Err())
	}
	if err := a.printFindings(found, f.json); err != nil {
		return err
	}
	return exit(codeOf(found))
}

// codeOf is the exit code of some findings.
func codeOf(found []deploy.Finding) exitcode.Code {
	code := exitcode.Pass
	for _, f := range found {
		switch {
		case f.State != deploy.FindingProblem:
		case f.Unavailable:
			return exitcode.Error
		default:
			code = exitcode.Invalid
		}
	}
	return code
}

func (a *app) printFindings(found []deploy.Finding, asJSON bool) error {
	if asJSON {
		return writeJSON(a.Out, found)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATE\tSUBJECT\tFOUND")
	for _, f := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.State, phrase.Line(f.Subject), phrase.Line(f.Message))
		if f.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", phrase.Line(f.Fix))
		}
	}
	return w.Flush()
}

// nodeLookCmd is what check --on-node runs on a node.
func (a *app) nodeLookCmd() *cobra.Command {
	var dir, name string
	var programs, runtimes []string
	c := &cobra.Command{
		Use:     "node-look --dir DIR --name NAME",
		Short:   "Look at the directory of a check from a node",
		Long:    "node-look is what check --on-node runs on a node. It prints what it sees as JSON.",
		Example: "  assay node-look --dir /shared/runs/.assay-check-1 --name 0",
		Hidden:  true,
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return writeJSON(a.Out, slurm.LookFromNode(c.Context(), a.Env, dir, name, programs, runtimes))
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "directory of the check")
	c.Flags().StringVar(&name, "name", "", "name of this look")
	c.Flags().StringArrayVar(&programs, "program", nil, "program to look for")
	c.Flags().StringArrayVar(&runtimes, "runtime", nil, "container runtime to look for")
	jsonFlag(c, new(bool)) // it prints nothing else
	return c
}

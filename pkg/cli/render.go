package cli

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/deploy"
	"assay/pkg/plan"
	"assay/pkg/run"
	"assay/pkg/rundir"
)

func (a *app) renderCmd() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "render [-m MANIFEST | --tags TAGS]",
		Short: "Print exactly what run would run, and run nothing",
		Long: "render plans the manifest as run does and prints each job: what every rank executes, where, and in which\n" +
			"environment. Values of an env_file are never shown, nor those of variables whose names sound secret.",
		Example: "  assay render\n  assay render -m build_manifest.json --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			f.timeoutSet = c.Flags().Changed("timeout")
			return a.render(c.Context(), f)
		},
	}
	a.addRunFlags(c, &f)
	jsonFlag(c, &f.json)
	return c
}

// rendered is one job as --json prints it.
type rendered struct {
	Job   plan.Job          `json:"job"`
	Files map[string]string `json:"files"` // what a target would be handed, by name; the job file is Job itself
}

func (a *app) render(ctx context.Context, f runFlags) error {
	p, t, err := a.prepare(ctx, f)
	if err != nil {
		return err
	}
	runs, err := filepath.Abs(a.runsFor(f.runs, p))
	if err != nil {
		return err
	}
	if _, queues := t.(deploy.Queue); !queues { // the others need not be there to be shown what they would get
		if err := p.Check(ctx, t, runs, a.notice); err != nil {
			return err
		}
	}
	// The id stands for the one that a run would get.
	l := rundir.Ledger{RunID: "RUN", Nonce: "NONCE", ManifestDigest: run.Digest(p.Manifest), CreatedAt: time.Time{}}
	out := []rendered{}
	for _, j := range p.Jobs {
		files, err := t.Render(p.Attempt(l, rundir.AttemptDir(filepath.Join(runs, l.RunID), j.ID, 1), j, p.RankBinary()))
		if err != nil {
			return err
		}
		shown := rendered{Job: plan.Redact(j), Files: map[string]string{}}
		for _, file := range files {
			if file.Name != rundir.JobFile {
				shown.Files[file.Name] = string(file.Data)
			}
		}
		out = append(out, shown)
		if !f.json {
			if err := a.printRendered(j, shown.Files); err != nil {
				return err
			}
		}
	}
	if f.json {
		return writeJSON(a.Out, out)
	}
	return nil
}

func (a *app) printRendered(j plan.Job, files map[string]string) error {
	text := plan.Describe(j)
	if len(files) > 0 { // what is printed can be handed to who reads the files
		text = "# " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n# ") + "\n"
	}
	if _, err := fmt.Fprint(a.Out, text); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := fmt.Fprintf(a.Out, "\n# %s\n%s\n", name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

package cli

import (
	"io"
	"strings"

	"github.com/charmbracelet/log"
	"github.com/muesli/termenv"
	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
)

// root assembles the commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "assay",
		Short: "Qualify clusters and gate CI on benchmarks, with an honest verdict",
		Long: "assay builds a manifest from model cards, runs it, and collects what every rank left into one verdict:\n" +
			"PASS, FAIL, NO_METRIC, ERROR or SKIP, each with its own exit code (see: assay help exit-codes).",
		Example: `  assay build --tags demo
  assay lint build_manifest.json
  assay run -m build_manifest.json`,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.log = a.logger()
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "print only results and errors")
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "print details to stderr")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return exitcode.Errorf(exitcode.Invalid, "%w; see: %s --help", err, c.CommandPath())
	})
	root.AddCommand(
		a.discoverCmd(), a.buildCmd(), a.lintCmd(), a.schemaCmd(), a.renderCmd(), a.checkCmd(), a.runCmd(),
		a.statusCmd(), a.attachCmd(), a.collectCmd(), a.cancelCmd(), a.explainCmd(), a.isolateCmd(),
		a.perfCmd(), a.gcCmd(), a.probeCmd(), a.rankCmd(), a.placeCmd(), a.installCmd(), a.nodeLookCmd(), a.versionCmd(), a.completionCmd(), a.docsCmd(), exitCodesTopic(),
	)
	root.SetHelpCommand(helpCmd())
	return root
}

// knownCommand refuses a word that is no command.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "; see: assay --help"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return exitcode.Errorf(exitcode.Invalid, "there is no command %q%s", args[0], hint)
}

// logger writes to stderr. The library asks a terminal for its colours and waits
// for the answer as soon as it sees one; a writer that is no file keeps it from
// that, and we know already whether there shall be colours.
func (a *app) logger() *log.Logger {
	l := log.NewWithOptions(struct{ io.Writer }{a.Err}, log.Options{Level: a.level()})
	if a.color(a.ErrTTY) {
		l.SetColorProfile(termenv.ANSI)
	}
	return l
}

func (a *app) level() log.Level {
	switch {
	case a.verbose:
		return log.DebugLevel
	case a.quiet:
		return log.ErrorLevel
	}
	return log.InfoLevel
}

// exactly refuses any other number of arguments, with exit code INVALID.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return exitcode.Errorf(exitcode.Invalid, "%s takes %s, %d given; see: %s --help", c.CommandPath(), what, len(args), c.CommandPath())
		}
		return nil
	}
}

// between refuses a number of arguments outside a range; most < 0 is no bound.
func between(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least || (most >= 0 && len(args) > most) {
			return exitcode.Errorf(exitcode.Invalid, "%s takes %s, %d given; see: %s --help", c.CommandPath(), what, len(args), c.CommandPath())
		}
		return nil
	}
}

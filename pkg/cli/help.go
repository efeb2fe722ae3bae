package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
)

// helpCmd prints the help of a command or topic, and refuses a word that is
// neither.
func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Help about a command or topic",
		Long:    "help prints what a command does, or a topic such as exit-codes.",
		Example: "  assay help run\n  assay help exit-codes",
		RunE: func(c *cobra.Command, args []string) error {
			target, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return exitcode.Errorf(exitcode.Invalid, "there is no help about %q; see: assay --help", strings.Join(args, " "))
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

// completionCmd prints a completion script.
func (a *app) completionCmd() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print a completion script for a shell",
		Long:      "completion prints a script that completes commands and flags.\n\n  bash: source <(assay completion bash)\n  zsh:  assay completion zsh > \"${fpath[1]}/_assay\"\n  fish: assay completion fish > ~/.config/fish/completions/assay.fish",
		Example:   "  assay completion bash",
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      exactly(1, "the name of a shell: bash, zsh or fish"),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			}
			return exitcode.Errorf(exitcode.Invalid, "there is no completion for %q: bash, zsh or fish", args[0])
		},
	}
}

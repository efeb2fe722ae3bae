package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
)

func (a *app) versionCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "version prints the version of assay, the Go release it was built with, and the platform.",
		Example: "  assay version\n  assay version --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(a.Out, map[string]string{
					"version": a.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(a.Out, "assay %s (%s %s/%s)\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// exitCodesTopic is the help topic that prints the exit-code table.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "The exit codes and when each is given", Long: ExitCodes()}
}

// ExitCodes renders the exit-code table as plain text.
func ExitCodes() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CODE\tNAME\tWHEN")
	for _, r := range exitcode.Table() {
		fmt.Fprintf(w, "%d\t%s\t%s\n", int(r.Code), r.Name, r.When)
	}
	_ = w.Flush() // a strings.Builder never fails
	b.WriteString("\nOf several verdicts the run takes the first of FAIL, ERROR, NO_METRIC, PASS and SKIP that occurs.\n")
	return b.String()
}

func jsonFlag(c *cobra.Command, v *bool) {
	c.Flags().BoolVar(v, "json", false, "print the result as JSON")
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"assay/pkg/exitcode"
	"assay/pkg/lint"
	"assay/schemas"
)

func (a *app) lintCmd() *cobra.Command {
	var format string
	var asJSON, strict, fix bool
	c := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check manifests, cards, suites and perf.csv files",
		Long: "lint checks files against their schema and across their fields, and prints every finding in the order of the\n" +
			"document. An env_file that a manifest names is parsed, never run. The exit code is 0, or 4 when there is an\n" +
			"error (with --strict: or a warning).\n\n" +
			"--fix rewrites what has one right answer and prints the difference.",
		Example: "  assay lint build_manifest.json\n" +
			"  assay lint models/*.yaml --format github\n" +
			"  assay lint build_manifest.json --fix",
		Args: between(1, -1, "at least one FILE"),
		RunE: func(c *cobra.Command, files []string) error {
			if asJSON && c.Flags().Changed("format") && format != "json" {
				return exitcode.Errorf(exitcode.Invalid, "--json and --format %s exclude each other", format)
			}
			if asJSON {
				format = "json"
			}
			if fix {
				if err := a.fix(files); err != nil {
					return err
				}
			}
			return a.lint(files, format, strict)
		},
	}
	f := c.Flags()
	f.StringVar(&format, "format", "text", "text, json, github or sarif")
	f.BoolVar(&strict, "strict", false, "a warning fails as an error does")
	f.BoolVar(&fix, "fix", false, "rewrite what has one right answer, and print the difference to stderr")
	jsonFlag(c, &asJSON)
	return c
}

func (a *app) lint(files []string, format string, strict bool) error {
	var results []*lint.Result
	bad := false
	linter := lint.New()
	for _, name := range files {
		res := linter.File(name, lint.Options{})
		results = append(results, res)
		bad = bad || res.HasErrors() || (strict && res.HasWarnings())
	}
	if err := lint.Write(a.Out, format, results, a.lintStyle(a.OutTTY)); err != nil {
		return exitcode.With(exitcode.Invalid, err)
	}
	if bad {
		return exit(exitcode.Invalid)
	}
	return nil
}

func (a *app) lintStyle(tty bool) lint.WriteOptions {
	return lint.WriteOptions{Source: tty, Color: a.color(tty), Version: a.Version}
}

func (a *app) fix(files []string) error {
	var errs []error
	for _, name := range files {
		diff, changed, err := lint.Fix(name)
		if err != nil {
			errs = append(errs, err)
		}
		if changed {
			fmt.Fprint(a.Err, diff)
		}
	}
	return exitcode.With(exitcode.Invalid, errors.Join(errs...))
}

// readManifest lints a manifest and returns it as JSON. Findings go to stderr;
// an error among them refuses the manifest.
func (a *app) readManifest(path string) ([]byte, error) {
	res := lint.File(path, lint.Options{Kind: lint.Manifest})
	if len(res.Findings) > 0 && (!a.quiet || res.HasErrors()) {
		if err := lint.Write(a.Err, "text", []*lint.Result{res}, a.lintStyle(a.ErrTTY)); err != nil {
			return nil, err
		}
	}
	if res.HasErrors() {
		return nil, exitcode.Errorf(exitcode.Invalid, "%s is refused: correct the errors above (assay lint %s shows them again)", path, path)
	}
	return res.Document.JSON(), nil
}

// refuseFindings checks a manifest that was just made.
func (a *app) refuseFindings(name string, data []byte) error {
	res := lint.Bytes(name+" (not written)", data, lint.Options{Kind: lint.Manifest})
	if !res.HasErrors() {
		return nil
	}
	if err := lint.Write(a.Err, "text", []*lint.Result{res}, a.lintStyle(a.ErrTTY)); err != nil {
		return err
	}
	return exitcode.Errorf(exitcode.Invalid, "the cards and the context do not give a valid manifest: correct the errors above; nothing was written")
}

func (a *app) schemaCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "schema [NAME]",
		Short:   "Print a schema, or the names of all",
		Long:    "schema prints one of the JSON Schemas (draft 2020-12) that files are checked against.",
		Example: "  assay schema\n  assay schema manifest",
		Args:    between(0, 1, "at most one NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && asJSON {
				return writeJSON(a.Out, schemas.Names())
			}
			if len(args) == 0 {
				_, err := fmt.Fprintln(a.Out, strings.Join(schemas.Names(), "\n"))
				return err
			}
			text, err := schemas.Read(args[0])
			if err != nil {
				return exitcode.Errorf(exitcode.Invalid, "there is no schema %q; there are: %s", args[0], strings.Join(schemas.Names(), ", "))
			}
			_, err = a.Out.Write(text)
			return err
		},
	}
	jsonFlag(c, &asJSON) // a schema itself is JSON already
	return c
}

package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"assay/pkg/document"
	"assay/pkg/exitcode"
	"assay/pkg/lint"
	"assay/pkg/phrase"
	"assay/schemas"
)

// docsCmd writes the parts of the documentation that are made from the program.
func (a *app) docsCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "docs man|reference DIR",
		Short:   "Write man pages, or the generated part of the reference",
		Long:    "docs writes files that are made from the program itself: man pages, or markdown pages of the commands, the\nschemas, the exit codes and the findings of lint.",
		Example: "  assay docs man man1\n  assay docs reference reference",
		Args:    exactly(2, "man or reference, and a directory"),
		Hidden:  true,
		RunE: func(c *cobra.Command, args []string) error {
			dir := args[1]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return exitcode.With(exitcode.Invalid, err)
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			switch args[0] {
			case "man":
				// A fixed date keeps the pages the same from one build to the next.
				return doc.GenManTree(root, &doc.GenManHeader{Title: "ASSAY", Section: "1", Source: "assay"}, dir)
			case "reference":
				return writeReference(root, dir)
			}
			return exitcode.Errorf(exitcode.Invalid, "%q is no kind of documentation: man or reference", args[0])
		},
	}
	return c
}

func writeReference(root *cobra.Command, dir string) error {
	cli := filepath.Join(dir, "cli")
	if err := os.MkdirAll(cli, 0o755); err != nil {
		return err
	}
	if err := doc.GenMarkdownTree(root, cli); err != nil {
		return err
	}
	for _, name := range schemas.Names() {
		page, err := document.SchemaPage(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "schema-"+name+".md"), []byte(page), 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "lint-codes.md"), []byte(lintCodes()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "exit-codes.md"), []byte("# Exit codes\n\n```\n"+ExitCodes()+"```\n"), 0o644)
}

func lintCodes() string {
	page := "# Findings of lint\n\n| code | meaning |\n|---|---|\n"
	for _, c := range lint.Codes() {
		page += fmt.Sprintf("| %s | %s |\n", c.Code, c.Text)
	}
	return page
}

// tellBuilt says what was built.
func (a *app) tellBuilt(path string, manifest []byte, asJSON bool) error {
	var m struct {
		BuiltModels map[string]json.RawMessage `json:"built_models"`
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return err
	}
	keys := slices.Sorted(maps.Keys(m.BuiltModels))
	if asJSON {
		return writeJSON(a.Out, map[string]any{"manifest": path, "models": keys})
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s\n", path, phrase.Count(len(keys), "model"))
	return err
}

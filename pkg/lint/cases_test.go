package lint_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"assay/pkg/lint"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/lint")

// TestCases lints the first file of each archive of testdata/lint and compares
// all findings with the section "want". The other files lie beside it.
func TestCases(t *testing.T) {
	archives, err := filepath.Glob("../../testdata/lint/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			want := ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := render(lint.File(filepath.Join(dir, archive.Files[0].Name), lint.Options{}), dir)
			if *update {
				rewrite(t, path, archive, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func render(r *lint.Result, dir string) string {
	var b strings.Builder
	for _, f := range r.Findings {
		file := strings.TrimPrefix(f.File, dir+"/")
		message := strings.ReplaceAll(strings.ReplaceAll(f.Message, dir+"/", ""), "below "+dir, "below .")
		fmt.Fprintf(&b, "%s:%d:%d: %s: %s: %s (%s)\n", file, f.Line, f.Column, f.Severity, f.Code, message, f.Pointer)
		if f.Fix != "" {
			fmt.Fprintf(&b, "    fix: %s\n", f.Fix)
		}
	}
	return b.String()
}

func rewrite(t *testing.T, path string, archive *txtar.Archive, got string) {
	t.Helper()
	files := archive.Files[:0]
	for _, f := range archive.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	archive.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

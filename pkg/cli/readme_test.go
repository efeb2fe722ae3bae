package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay/pkg/exitcode"
)

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadmeHasTheExitCodes(t *testing.T) {
	text := readme(t)
	var want strings.Builder
	want.WriteString("| code | name | when |\n|---|---|---|\n")
	for _, r := range exitcode.Table() {
		fmt.Fprintf(&want, "| %d | %s | %s |\n", int(r.Code), r.Name, r.When)
	}
	if !strings.Contains(text, want.String()+"\n") {
		t.Errorf("README.md does not have the exit-code table as it is:\n%s", &want)
	}
}

// Every link between the pages leads somewhere.
func TestDocsLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

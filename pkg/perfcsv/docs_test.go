package perfcsv

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated part of docs/perf-csv.md again")

// TestDocsListTheColumns holds the table in docs/perf-csv.md to the schema.
func TestDocsListTheColumns(t *testing.T) {
	const (
		page       = "../../docs/perf-csv.md"
		begin, end = "<!-- columns: begin -->\n", "<!-- columns: end -->"
	)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	want := head + begin + columnTable(readSchema(t)) + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is not current, `go test ./pkg/perfcsv -run Docs -update` writes it again (-want +got):\n%s", page, diff)
	}
}

func columnTable(s schemaFile) string {
	var b strings.Builder
	b.WriteString("| # | column | type | meaning |\n|---|---|---|---|\n")
	for i, name := range s.Columns {
		p := s.Properties[name]
		kinds := []string{fmt.Sprint(p.Type)}
		if list, ok := p.Type.([]any); ok {
			kinds = nil
			for _, k := range list {
				kinds = append(kinds, fmt.Sprint(k))
			}
		}
		kind := strings.Replace(strings.Join(kinds, " or "), "null", "empty", 1)
		if p.Enum != nil {
			kind = "`" + strings.Join(p.Enum, "` `") + "`"
		}
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", i+1, name, kind, p.Description)
	}
	return b.String()
}

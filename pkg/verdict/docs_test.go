package verdict

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docsPage is the page that explains verdicts to users.
const docsPage = "../../docs/verdicts.md"

func TestEveryCodeAndRuleIsDocumented(t *testing.T) {
	data, err := os.ReadFile(docsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	rows := map[string]string{}
	for _, row := range ReasonCodes() {
		if _, twice := rows[row.Code]; twice || row.Meaning == "" {
			t.Errorf("row %+v", row)
		}
		rows[row.Code] = row.Meaning
		if line := "| `" + row.Code + "` | " + row.Meaning + " |"; !strings.Contains(page, line) {
			t.Errorf("%s has no line\n%s", docsPage, line)
		}
	}
	for name, value := range constants(t) {
		switch {
		case strings.HasPrefix(name, "Code"):
			if rows[value] == "" {
				t.Errorf("%s (%s) is not in ReasonCodes", name, value)
			}
		case strings.HasPrefix(name, "Rule"):
			if !strings.Contains(page, "`"+value+"`") {
				t.Errorf("%s does not explain the rule %q", docsPage, value)
			}
		}
	}
}

// constants lists the string constants of the package, and what the codes that
// are named after another package's stand for.
func constants(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if i >= len(spec.Values) {
					continue
				}
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					values[name.Name] = strings.Trim(lit.Value, "\"")
				}
			}
			return true
		})
	}
	if len(values) < 30 {
		t.Fatalf("only %d constants were found", len(values))
	}
	return values
}

// Every rule decides at least one case.
func TestEveryRuleHasACase(t *testing.T) {
	decided := map[string]int{}
	for _, c := range loadCases(t) {
		decided[c.Want.Rule]++
	}
	for name, value := range constants(t) {
		if name == "RuleAttempts" { // it puts verdicts together; see TestPolicy
			continue
		}
		if strings.HasPrefix(name, "Rule") && decided[value] == 0 {
			t.Errorf("no case is decided by %s (%s)", name, value)
		}
	}
}

package threshold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// mutated is the file whose comparisons are changed one at a time.
const mutated = "check.go"

// mutantVariable says which change is made; none is when it is not set.
const mutantVariable = "THRESHOLD_TEST_MUTANT"

// equivalent lists the changes that change nothing, with the reason.
func equivalent() map[string]string {
	return map[string]string{
		"len(faults) > 0 → !=":       "a length is never negative",
		"len(Malformed(t)) > 0 → !=": "a length is never negative",
	}
}

// Every change of a comparison, a condition or a boundary makes a test fail. All of
// them are built into one binary, and a variable says which of them is made.
func TestEveryMutantIsCaught(t *testing.T) {
	if testing.Short() || os.Getenv(mutantVariable) != "" {
		t.Skip("takes a build")
	}
	binary, mutants := buildMutants(t)
	if len(mutants) < 30 {
		t.Fatalf("only %d mutants: %q", len(mutants), mutants)
	}
	if out, err := runMutant(binary, -1); err != nil {
		t.Fatalf("the tests fail without a change: %v\n%s", err, out)
	}
	left := equivalent()
	for n, name := range mutants {
		_, err := runMutant(binary, n)
		if _, ok := left[name]; ok {
			if err != nil {
				t.Errorf("%s is listed as equivalent, and a test fails with it", name)
			}
			delete(left, name)
			continue
		}
		if err == nil {
			t.Errorf("no test fails with %s", name)
		}
	}
	for name := range left {
		t.Errorf("%s is listed as equivalent, and is no mutant", name)
	}
}

func runMutant(binary string, n int) ([]byte, error) {
	cmd := exec.Command(binary, "-test.short", "-test.failfast", "-rapid.checks=40", "-rapid.nofailfile", "-rapid.shrinktime=1ms", "-test.timeout=20s")
	cmd.Env = append(os.Environ(), mutantVariable+"="+strconv.Itoa(n))
	return cmd.CombinedOutput()
}

// buildMutants builds the tests of the package with every change that can be switched
// on, and returns the binary and the changes in their order.
func buildMutants(t *testing.T) (binary string, mutants []string) {
	t.Helper()
	dir := t.TempDir()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, mutated, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	m := mutator{t: t, set: set}
	m.file(file)
	var source bytes.Buffer
	if err := format.Node(&source, set, file); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, text := range map[string]string{
		mutated: source.String(),
		"mutant_switch.go": "package threshold\n\nimport \"os\"\n\nfunc mutant(n string, changed, plain func() bool) bool {\n" +
			"\tif os.Getenv(\"" + mutantVariable + "\") == n {\n\t\treturn changed()\n\t}\n\treturn plain()\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "mutants.test")
	if out, err := exec.Command("go", "test", "-vet=off", "-c", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, source.String())
	}
	return binary, m.names
}

// mutator wraps every condition of a file so that it can be changed.
type mutator struct {
	t     *testing.T
	set   *token.FileSet
	names []string
}

func (m *mutator) file(file *ast.File) {
	var places []*ast.Expr
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			places = append(places, &n.Cond)
		case *ast.CaseClause:
			for i := range n.List {
				places = append(places, &n.List[i])
			}
		case *ast.ReturnStmt:
			for i, e := range n.Results {
				if b, ok := e.(*ast.BinaryExpr); ok && len(others(b.Op)) > 0 {
					places = append(places, &n.Results[i])
				}
			}
		}
		return true
	})
	for _, place := range places {
		*place = m.condition(*place)
	}
}

// condition changes e as a whole, and what it is made of.
func (m *mutator) condition(e ast.Expr) ast.Expr {
	was := m.text(e)
	switch e := e.(type) {
	case *ast.ParenExpr:
		e.X = m.condition(e.X)
		return e
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return m.choose(e, e.X, was+" → without !")
		}
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			e.X, e.Y = m.condition(e.X), m.condition(e.Y)
		}
		var out ast.Expr = e
		for _, op := range others(e.Op) {
			out = m.choose(out, &ast.BinaryExpr{X: e.X, Op: op, Y: e.Y}, fmt.Sprintf("%s → %s", was, op))
		}
		return out
	case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr:
		return m.choose(e, &ast.UnaryExpr{Op: token.NOT, X: e}, was+" → not")
	}
	return e
}

// others are the operators that an operator is changed to.
func others(op token.Token) []token.Token {
	return map[token.Token][]token.Token{
		token.LAND: {token.LOR},
		token.LOR:  {token.LAND},
		token.LSS:  {token.LEQ, token.GTR, token.NEQ},
		token.GTR:  {token.GEQ, token.LSS, token.NEQ},
		token.LEQ:  {token.LSS, token.GEQ, token.EQL},
		token.GEQ:  {token.GTR, token.LEQ, token.EQL},
		token.EQL:  {token.NEQ},
		token.NEQ:  {token.EQL},
	}[op]
}

// choose is plain, or changed when the mutant of that name is asked for.
func (m *mutator) choose(plain, changed ast.Expr, name string) ast.Expr {
	n := strconv.Itoa(len(m.names))
	m.names = append(m.names, name)
	function := func(e ast.Expr) ast.Expr {
		return &ast.FuncLit{
			Type: &ast.FuncType{Params: &ast.FieldList{}, Results: &ast.FieldList{List: []*ast.Field{{Type: ast.NewIdent("bool")}}}},
			Body: &ast.BlockStmt{List: []ast.Stmt{&ast.ReturnStmt{Results: []ast.Expr{e}}}},
		}
	}
	return &ast.CallExpr{Fun: ast.NewIdent("mutant"), Args: []ast.Expr{
		&ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(n)}, function(changed), function(plain),
	}}
}

func (m *mutator) text(e ast.Expr) string {
	var b strings.Builder
	if err := format.Node(&b, m.set, e); err != nil {
		m.t.Fatal(err)
	}
	return b.String()
}

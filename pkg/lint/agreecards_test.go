package lint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/discover"
	"assay/pkg/lint"
)

// TestLintRefusesWhatDiscoverRefuses tries every field with values of every kind.
func TestLintRefusesWhatDiscoverRefuses(t *testing.T) {
	cards := []string{
		`{"name": "a", "scripts": "s"}`,
		`{"scripts": "s"}`,
		`{"name": 1, "scripts": "s"}`,
		`{"name": "", "scripts": "s"}`,
		`{"name": " ", "scripts": "s"}`,
		`{"name": "a\u0001", "scripts": "s"}`,
		`{"name": "a\nb", "scripts": "s"}`,
		`{"name": "` + strings.Repeat("a", 256) + `", "scripts": "s"}`,
		`{"name": "a", "name": "b", "scripts": "s"}`,
		`{"name": "a", "scripts": "s", "repeats": 2.0}`,
		`{"name": "a", "scripts": "s", "retries": 1e1}`,
		`[1]`, `1`, `[]`, ``, `{`,
	}
	for _, field := range shape(t, "card").Keys {
		for _, v := range []string{
			"null", "1", "-2", "1.5", `"x"`, `""`, `"1"`, "true", "[]", "{}", "[1]", "[null]", `["a"]`, `{"A": 1}`, `{"A": null}`, `{"A": []}`,
			"[{}]", `[{"name": 1}]`, `[{"metric": 1}]`, "1e30", "99999999999999999999", `{"nodes": "x"}`, `{"nnodes": []}`, `{"time": {}}`, `{"launcher": 1}`,
		} {
			cards = append(cards, fmt.Sprintf(`{"name": "a", "scripts": "s", %q: %s}`, field, v))
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "models", "x.json")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, text := range cards {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := discover.Find(t.Context(), discover.Options{Root: dir})
		if err == nil {
			continue
		}
		refused++
		if r := lint.File(path, lint.Options{}); !r.HasErrors() {
			t.Errorf("%s: discover says %v, and lint nothing", text, err)
		}
	}
	if refused < 100 {
		t.Errorf("only %d cards are refused", refused)
	}
}

package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"assay/pkg/discover"
	"assay/pkg/document"
	"assay/pkg/exitcode"
	"assay/pkg/suite"
)

// frozen is what the cases compare.
type frozen struct {
	Block map[string]any   `json:"block"`
	Tests []map[string]any `json:"tests"`
}

// TestCases resolves the suite of each archive of testdata over its cards, and compares
// what build would freeze with want.json, and the problems with problems.txt.
func TestCases(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			dir := t.TempDir()
			want := map[string]string{}
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range archive.Files {
				want[f.Name] = string(f.Data)
				name := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(dir, "models/suites/s.yaml")
			if got := suite.Root(file); got != dir {
				t.Errorf("the cards of %s are looked for in %q", file, got)
			}
			s, err := suite.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			catalog, err := discover.Load(t.Context(), discover.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			f, problems := s.Resolve(catalog)
			th, err := s.ReadThresholds()
			if err != nil {
				t.Fatal(err)
			}
			if th != nil {
				f.Block["thresholds"] = th.Block()
			}
			if diff := cmp.Diff(want["problems.txt"], told(problems, dir)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			got := frozen{Block: f.Block}
			for _, test := range f.Tests {
				got.Tests = append(got.Tests, map[string]any{"key": test.Key, "model": test.Raw, "entry": test.Entry})
			}
			if diff := cmp.Diff(plain(t, []byte(want["want.json"])), plain(t, encode(t, got, dir))); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, encode(t, got, dir))
			}
		})
	}
}

func told(problems []document.Problem, dir string) string {
	var b strings.Builder
	for _, p := range problems {
		word := "error"
		if p.Warning {
			word = "warning"
		}
		fmt.Fprintf(&b, "%d:%d: %s: %s: %s (%s)\n", p.Line, p.Column, word, p.Code, strings.ReplaceAll(p.Message, dir, "DIR"), p.Pointer)
	}
	return b.String()
}

func encode(t *testing.T, v any, dir string) []byte {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.ReplaceAll(string(data), dir, "DIR"))
}

// plain reads JSON; digests are not compared.
func plain(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	var drop func(v any)
	drop = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if d, ok := v["digest"].(string); ok && strings.HasPrefix(d, "sha256:") && len(d) == 71 {
				v["digest"] = "sha256"
			}
			for _, c := range v {
				drop(c)
			}
		case []any:
			for _, c := range v {
				drop(c)
			}
		}
	}
	drop(v)
	return v
}

func of(t interface{ Fatal(...any) }, text string) *suite.Suite {
	doc, problems := document.Parse("s.json", []byte(text))
	if doc == nil {
		t.Fatal(problems)
	}
	return suite.Of("s.json", doc.Root())
}

// A matrix has every combination once, the last axis changing fastest, and every test
// a key of its own.
func TestMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,4}`), 1, 4, rapid.ID).Draw(t, "axes")
		combinations := 1
		var parts []string
		values := map[string][]string{}
		for _, axis := range axes {
			values[axis] = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9=,/ ]{0,4}`), 1, 4, rapid.ID).Draw(t, axis)
			list, _ := json.Marshal(values[axis])
			parts = append(parts, fmt.Sprintf("%q: %s", axis, list))
			combinations *= len(values[axis])
		}
		s := of(t, `{"tests": [{"card": "c", "variants": {`+strings.Join(parts, ", ")+`}}, "d"]}`)
		tests, problems := s.Tests()
		keys := map[string]bool{}
		var order []int
		for _, test := range tests {
			if keys[test.Key] {
				t.Fatalf("two tests %q", test.Key)
			}
			keys[test.Key] = true
			if test.Card != "c" {
				continue
			}
			at := 0
			for _, axis := range axes {
				at = at*len(values[axis]) + slices.Index(values[axis], test.Variant[axis])
			}
			order = append(order, at)
			if len(test.Variant) != len(axes) || test.Name != "c" {
				t.Fatalf("%+v", test)
			}
		}
		// Values that hold commas and equals signs can give one key to two combinations:
		// these are refused.
		if len(order)+len(problems) != combinations || !slices.IsSorted(order) {
			t.Fatalf("%d combinations gave %d tests in the order %v, and %v", combinations, len(order), order, problems)
		}
	})
}

// What has no axis in it stays as it is, braces and all.
func TestPlaceholdersLeaveOthersAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[{}sizeab ]{0,12}`).Draw(t, "text")
		quoted, _ := json.Marshal(text)
		s := of(t, `{"tests": [{"card": "c", "variants": {"size": ["1 MiB"]}}]}`)
		tests, _ := s.Tests()
		raw, _ := s.Apply(tests[0], map[string]any{"args": []any{text, json.Number("7")}, "name": "c"})
		got := raw["args"].([]any)
		if want := strings.ReplaceAll(text, "{size}", "1 MiB"); got[0] != want || got[1] != json.Number("7") {
			t.Fatalf("%s gives %v", quoted, got)
		}
	})
}

// A value with spaces is one word, also in args that are one string.
func TestPlaceholdersStayOneWord(t *testing.T) {
	s := of(t, `{"tests": [{"card": "c", "args": "--size {size} '{x}'", "variants": {"size": ["1 MiB; rm -rf"], "x": [true]}}]}`)
	tests, _ := s.Tests()
	raw, problems := s.Apply(tests[0], map[string]any{})
	if diff := cmp.Diff([]any{"--size", "1 MiB; rm -rf", "true"}, raw["args"]); diff != "" || len(problems) > 0 {
		t.Error(diff, problems)
	}
}

func TestTooManyTests(t *testing.T) {
	axis := "[" + strings.TrimSuffix(strings.Repeat("1,", 101), ",") + "]"
	s := of(t, `{"tests": ["a", {"card": "c", "variants": {"x": `+axis+`, "y": `+axis+`}}]}`)
	tests, problems := s.Tests()
	if len(tests) != 1 || len(problems) != 1 || problems[0].Code != suite.CodeSize {
		t.Errorf("%d tests, %v", len(tests), problems)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("tests: [a\nb: }"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, filepath.Join(dir, "missing.yaml"), dir} {
		if _, err := suite.Read(path); exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRootOfNoModels(t *testing.T) {
	if got := suite.Root(filepath.Join(t.TempDir(), "a", "s.yaml")); got != "" {
		t.Skipf("there are models above the temporary directory, in %s", got)
	}
	if got := suite.Root("testdata/s.yaml"); got != "testdata/../../.." {
		clean, err := filepath.Abs(got)
		if err != nil || filepath.Base(filepath.Join(clean, "models")) != "models" {
			t.Error(got, err)
		}
	}
}

func FuzzTests(f *testing.F) {
	f.Add(`{"tests": ["a", {"card": "b", "variants": {"x": [1, 2]}}, {"card": "b", "variants": [{"name": "v"}]}]}`)
	f.Add(`{"tests": [{"card": {}, "variants": {"x": 7}}], "variants": [], "retries": null}`)
	catalog, err := discover.Load(context.Background(), discover.Options{Root: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, _ := document.Parse("s.yaml", []byte(text))
		if doc == nil {
			return
		}
		s := suite.Of("s.yaml", doc.Root())
		tests, _ := s.Tests()
		for _, test := range tests {
			s.Apply(test, map[string]any{"args": "{x} a", "command": nil, "env_vars": map[string]any{"A": "{x}"}})
			s.Where(test, "/env_vars/A")
		}
		s.Resolve(catalog)
	})
}

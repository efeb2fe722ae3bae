package build

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPythonToJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                                      `{}`,
		`{'a': True, 'b': None, 'c': False,}`:                     `{"a": true, "b": null, "c": false}`,
		`{"a": 'it\'s', 'b': "say \"x\""}`:                        `{"a": "it's", "b": "say \"x\""}`,
		`{'a': (1, -2, +3, 1_000, .5, 1e3, 0x10)}`:                `{"a": [1, -2, 3, 1000, 0.5, 1e3, 16]}`,
		`{'a': r'\d', 'b': '\d', 'c': '\x41\u00e9\n'}`:            `{"a": "\\d", "b": "\\d", "c": "Aé\n"}`,
		"{'a': 'one' 'two', # comment\n 'b': '''three\nlines'''}": `{"a": "onetwo", "b": "three\nlines"}`,
		`{'a': '<&>'}`:                                            `{"a": "<&>"}`,
		`[]`:                                                      `[]`,
	} {
		got, ok := pythonToJSON(text)
		if !ok || got != want {
			t.Errorf("%s: got %s, %v; want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{
		``, `{`, `{'a'}`, `{'a': }`, `{'a': 1 'b': 2}`, `{1: 2}`, `{'a': nan}`, `{'a': inf}`, `{'a': open('x')}`, `{'a': 'x`, `{'a': b}`,
		`{} {}`, `{'a': 1,, }`, "{'a': 'x\ny'}", `{'a': "\ud800"}`, strings.Repeat("[", 100000), `{'a': '\`, "{'a': '\xff'}",
	} {
		if got, ok := pythonToJSON(text); ok {
			t.Errorf("%.40q was taken for %s", text, got)
		}
	}
}

// What Python would print for a value comes back as that value.
func TestPythonRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := drawValue(t, 3)
		text, ok := pythonToJSON(python3(value))
		if !ok {
			t.Fatalf("%s was not read", python3(value))
		}
		var got any
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(value, got); diff != "" {
			t.Fatalf("%s\n%s", python3(value), diff)
		}
	})
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	text := rapid.StringMatching(`[a-z'"\\ é{}:,#\n]{0,6}`)
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.Bool().Draw(t, "bool")
	case 1:
		return float64(rapid.IntRange(-1000, 1000).Draw(t, "int"))
	case 2:
		return text.Draw(t, "text")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	case 5:
		m := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			m[text.Draw(t, "key")] = drawValue(t, depth-1)
		}
		return m
	}
	return nil
}

// python3 writes a value as repr does.
func python3(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(v) + "'"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, python3(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for k, e := range v {
			parts = append(parts, python3(k)+": "+python3(e))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}

func FuzzPythonToJSON(f *testing.F) {
	for _, seed := range []string{`{'a': True}`, `{"a": (1,)}`, `'''`, `{'\u12`, `{'a': 0x}`, `r'`, "#", `{'a': 1__0}`, `{'a': -}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if out, ok := pythonToJSON(text); ok && !json.Valid([]byte(out)) {
			t.Fatalf("%q became %q, which is no JSON", text, out)
		}
	})
}

// Merging gives the upper value where both have one, and changes neither.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		under, over := drawValue(t, 3), drawValue(t, 3)
		before := python3Sorted(under) + python3Sorted(over)
		got := merge(under, over)
		if after := python3Sorted(under) + python3Sorted(over); after != before {
			t.Fatalf("the arguments changed from %s to %s", before, after)
		}
		if diff := cmp.Diff(got, merge(got, over)); diff != "" {
			t.Fatalf("merging again changes it:\n%s", diff)
		}
		a, isA := under.(map[string]any)
		b, isB := over.(map[string]any)
		if !isA || !isB {
			if diff := cmp.Diff(over, got); diff != "" {
				t.Fatal(diff)
			}
			return
		}
		for k := range a {
			if _, both := b[k]; !both {
				if diff := cmp.Diff(a[k], got.(map[string]any)[k]); diff != "" {
					t.Fatalf("%s: %s", k, diff)
				}
			}
		}
	})
}

func python3Sorted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

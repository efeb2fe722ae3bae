package document_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/document"
)

// TestRefused pins the code, the place and the words for input that is not what
// it should be.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, file, data, want string }{
		{"empty", "a.json", "", `1:1 EMPTY the file is empty`},
		{"only space", "a.json", " \n\t\r\n", `1:1 EMPTY the file is empty`},
		{"only a byte order mark", "a.json", "\ufeff", `1:1 BOM the file begins with a byte order mark, which many tools do not accept; 1:1 EMPTY the file is empty`},
		{"UTF-16", "a.json", "\xff\xfe{\x00}\x00", `1:1 ENCODING the file is UTF-16`},
		{"trailing comma in an object", "a.json", "{\n \"a\": 1,\n}", `2:8 SYNTAX a comma before } is not JSON`},
		{"trailing comma in a list", "a.json", `{"é": [1, ]}`, `1:9 SYNTAX a comma before ] is not JSON`},
		{"two commas", "a.json", `[1,,2]`, `1:4 SYNTAX a value is missing before this comma`},
		{"NaN", "a.json", `{"a": NaN}`, `1:7 SYNTAX NaN is not JSON: a number is finite`},
		{"minus Infinity", "a.json", `[-Infinity]`, `1:2 SYNTAX -Infinity is not JSON: a number is finite`},
		{"line comment", "a.json", "{\"a\": 1 // one\n}", `1:9 SYNTAX JSON has no comments`},
		{"comment first", "a.json", "# hello\n{}", `1:1 SYNTAX JSON has no comments`},
		{"comment last", "a.json", "{}\n/* end */", `2:1 SYNTAX JSON has no comments`},
		{"True", "a.json", `{"a": True}`, `1:7 SYNTAX True is Python, not JSON`},
		{"None", "a.json", `{"a": None}`, `1:7 SYNTAX None is Python, not JSON`},
		{"single quotes", "a.json", `{'a': 1}`, `1:2 SYNTAX this is Python, not JSON: a string stands in double quotes`},
		{"bare key", "a.json", `{a: 1}`, `1:2 SYNTAX the key a stands without quotes`},
		{"missing comma", "a.json", "{\"a\": \"1\"\n \"b\": 2}", `2:2 SYNTAX a comma or colon is missing before this string`},
		{"line break in a string", "a.json", "{\"a\": \"x\ny\"}", `1:9 SYNTAX a string may not contain the control character '\n' as it stands`},
		{"not UTF-8", "a.json", "{\"a\": \"\xff\"}", `1:8 SYNTAX the file is not UTF-8 here`},
		{"cut short", "a.json", "{\"a\": {\"b\": [1, 2", `1:18 SYNTAX the file ends before the ] that closes line 1, column 13`},
		{"two values", "a.json", "{}\n{}", `2:1 SYNTAX there is more after the end of the document`},
		{"NUL bytes", "a.json", "\x00\x00", `1:1 SYNTAX a string may not contain the control character '\x00' as it stands`},
		{"1e999", "a.json", `{"a": [1, 1e999]}`, `1:11 NUMBER_RANGE 1e999 is not a finite number: its magnitude is beyond 1.8e308`},
		{"duplicate", "a.json", "{\"a\": 1,\n \"\\u0061\": 2}", `2:2 DUPLICATE_KEY the key "a" is already on line 1; only the last one counts`},
		{"tabs", "a.yaml", "a:\n\t- b\n", `2:1 SYNTAX found character that cannot start any token`},
		{"two documents", "a.yaml", "a: 1\n---\nb: 2\n", `2:1 YAML_UNSUPPORTED a second YAML document begins here`},
		{"only comments", "a.yaml", "# nothing\n", `1:1 EMPTY the file has only comments`},
		{"duplicate key", "a.yaml", "a: 1\nb: 2\na: 3\n", `3:1 DUPLICATE_KEY the key "a" is already on line 1; only the last one counts`},
		{"complex key", "a.yaml", "? [a, b]\n: 1\n", `1:3 YAML_UNSUPPORTED a key must be a word or a quoted string`},
		{"nan", "a.yaml", "a: 1\nb: .nan\n", `2:4 NUMBER_RANGE .nan is not a finite number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := document.Parse(c.file, []byte(c.data))
			if got := say(problems); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func say(problems []document.Problem) string {
	var all []string
	for _, p := range problems {
		all = append(all, fmt.Sprintf("%d:%d %s %s", p.Line, p.Column, p.Code, p.Message))
	}
	return strings.Join(all, "; ")
}

func TestDepth(t *testing.T) {
	for _, c := range []struct {
		file, open, shut string
		depth            int
		refused          bool
	}{
		{"a.json", "[", "]", 100, false},
		{"a.json", `{"a":`, "}", 1000, false},
		{"a.json", "[", "]", 1001, true},
		{"a.json", "[", "", 100_000, true},
		{"a.json", `{"a":`, "", 100_000, true},
		{"a.yaml", "[", "]", 1000, false},
		{"a.yaml", "[", "]", 1001, true},
		{"a.yaml", "[", "", 100_000, true},
		{"a.yaml", "{a: ", "", 100_000, true},
	} {
		inner := "1"
		if c.shut == "" {
			inner = ""
		}
		doc, problems := document.Parse(c.file, []byte(strings.Repeat(c.open, c.depth)+inner+strings.Repeat(c.shut, c.depth)))
		if (doc == nil) != c.refused {
			t.Errorf("%s, %d × %s: refused %v, problems %s", c.file, c.depth, c.open, doc == nil, say(problems))
		}
	}
}

func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	doc, problems := document.Parse("bomb.yaml", []byte(b.String()))
	if doc != nil || !strings.Contains(say(problems), "YAML_UNSUPPORTED the aliases of this file expand") {
		t.Errorf("problems: %s", say(problems))
	}
	doc, problems = document.Parse("loop.yaml", []byte("a: &a [*a]\n"))
	if doc != nil || len(problems) == 0 {
		t.Errorf("an alias of itself: %s", say(problems))
	}
	doc, problems = document.Parse("merge.yaml", []byte("a: &a\n  <<: *a\n  b: 1\n"))
	if doc != nil || len(problems) == 0 {
		t.Errorf("a merge of itself: %s", say(problems))
	}
}

func TestPositions(t *testing.T) {
	json := "{\r\n  \"é\": \"ü\", \"b\": [10, {\"c/d\": null}]\r\n}"
	yaml := "é: ü\nb:\n  - 10\n  - {c/d: ~}\n"
	for _, c := range []struct{ file, data, pointer, key, value string }{
		{"a.json", json, "", "1:1", "1:1"},
		{"a.json", json, "/é", "2:3", "2:8"},
		{"a.json", json, "/b", "2:13", "2:18"},
		{"a.json", json, "/b/0", "2:19", "2:19"},
		{"a.json", json, "/b/1/c~1d", "2:24", "2:31"},
		{"a.json", "\ufeff" + json, "/é", "2:3", "2:8"},
		{"a.json", "\ufeff[1]", "/0", "1:2", "1:2"},
		{"a.yaml", yaml, "/é", "1:1", "1:4"},
		{"a.yaml", yaml, "/b", "2:1", "3:3"},
		{"a.yaml", yaml, "/b/0", "3:5", "3:5"},
		{"a.yaml", yaml, "/b/1/c~1d", "4:6", "4:11"},
	} {
		doc, problems := document.Parse(c.file, []byte(c.data))
		if doc == nil {
			t.Fatalf("%s: %s", c.data, say(problems))
		}
		n := doc.Find(c.pointer)
		if !n.Exists() || n.Pointer() != c.pointer {
			t.Errorf("%s %s: found %q", c.file, c.pointer, n.Pointer())
			continue
		}
		key, value := n.KeyPosition(), n.Position()
		if got := fmt.Sprintf("%d:%d %d:%d", key.Line, key.Column, value.Line, value.Column); got != c.key+" "+c.value {
			t.Errorf("%s %s: at %s, want %s %s", c.file, c.pointer, got, c.key, c.value)
		}
	}
}

func TestPositionInAnEnormousLine(t *testing.T) {
	var b strings.Builder
	b.WriteString("[")
	for range 5000 {
		b.WriteString(`"üü",`)
	}
	b.WriteString("7]")
	for _, file := range []string{"a.json", "a.yaml"} {
		doc, problems := document.Parse(file, []byte(b.String()))
		if doc == nil {
			t.Fatal(say(problems))
		}
		for _, i := range []int{0, 1, 204, 205, 2500, 5000} {
			if got := doc.Find(fmt.Sprintf("/%d", i)).Position(); got != (document.Position{Line: 1, Column: 2 + 5*i}) {
				t.Errorf("%s: entry %d is at %v", file, i, got)
			}
		}
	}
}

func TestYAMLContent(t *testing.T) {
	doc, problems := document.Parse("a.yaml", []byte(`
base: &base {x: 1, y: [a, "1"]}
merged:
  <<: *base
  x: 2
alias: *base
words: [yes, on, ~, null, true, 0x10, 0o17, 1_000, 1.50, 2026-01-31, 02:30:00, "q", 'é"']
text: |
  two
  lines
1: one
`))
	if doc == nil {
		t.Fatal(say(problems))
	}
	const want = `{"base":{"x":1,"y":["a","1"]},"merged":{"x":2,"y":["a","1"]},"alias":{"x":1,"y":["a","1"]},` +
		`"words":["yes","on",null,null,true,16,15,1000,1.50,"2026-01-31","02:30:00","q","é\""],"text":"two\nlines\n","1":"one"}`
	if got := string(doc.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := doc.Find("/merged/y").Position(); got.Line != 2 {
		t.Errorf("a merged value is where it was written: line 2, not %d", got.Line)
	}
}

// TestValueIsWhatEncodingJSONReads compares the tree with the standard library,
// for JSON and for the same text read as YAML.
func TestValueIsWhatEncodingJSONReads(t *testing.T) {
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](true), rapid.Map(rapid.Int32(), func(i int32) any { return i }),
		rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) any { return f }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.String(), value(depth-1), 0, 40), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(value(3).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		doc, problems := document.Parse("a.json", data)
		if doc == nil || len(problems) > 0 {
			t.Fatalf("%s: %s", data, say(problems))
		}
		again, err := json.Marshal(doc.Value())
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		walk(t, doc, doc.Root())
	})
}

// walk checks that each value is found by its own pointer, at its own place.
func walk(t *rapid.T, doc *document.Document, n document.Node) {
	if found := doc.Find(n.Pointer()); found != n {
		t.Fatalf("%q finds another value", n.Pointer())
	}
	for c := range n.Children() {
		walk(t, doc, c)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"a":[1,"x",null,true,1e9]}`, `{"a":1,"a":2}`, "[1,]", "\ufeff{}", `{"a":NaN}`, "{'a':True}", `{"\ud800":1}`,
		"a: 1\nb: [x, y]\n", "a: &a [1]\nb: *a\n", "<<: {a: 1}\n", "a: !!binary aGk=\n", "- - - x\n", "? a\n: b\n", "a: |\n x\n", "%YAML 1.1\n---\na", "a: 1e400\n",
		strings.Repeat("[", 2000), strings.Repeat("- ", 2000),
	} {
		f.Add("a.json", []byte(s))
		f.Add("a.yaml", []byte(s))
		f.Add("a", []byte(s))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		doc, problems := document.Parse(name, data)
		if doc == nil {
			if len(problems) == 0 {
				t.Fatal("refused without a reason")
			}
			return
		}
		if !json.Valid(doc.JSON()) {
			t.Fatalf("not JSON: %s", doc.JSON())
		}
		lines := strings.Count(doc.Source(), "\n") + 1
		var check func(n document.Node)
		check = func(n document.Node) {
			if p := n.KeyPosition(); p.Line < 1 || p.Line > lines || p.Column < 1 {
				t.Fatalf("%s is at %v", n.Pointer(), p)
			}
			for c := range n.Children() {
				check(c)
			}
		}
		check(doc.Root())
		doc.Value()
	})
}

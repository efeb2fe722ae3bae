package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/document"
	"assay/schemas"
)

func compile(t testing.TB, name string) *document.Schema {
	t.Helper()
	text, err := schemas.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := document.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemasCompileAndHavePages(t *testing.T) {
	for _, name := range schemas.Names() {
		compile(t, name)
		page, err := document.SchemaPage(name)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := document.SchemaPage(name); again != page {
			t.Errorf("%s: two pages differ", name)
		}
		if !strings.Contains(page, "\n# assay ") || !strings.Contains(page, "| `") {
			t.Errorf("%s: the page has no title or no table:\n%s", name, page)
		}
	}
	if _, err := document.SchemaPage("nothing"); err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("an unknown schema: %v", err)
	}
}

// TestEveryPropertyHasADescription looks at all schemas, however deep.
func TestEveryPropertyHasADescription(t *testing.T) {
	for _, name := range schemas.Names() {
		text, err := schemas.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, problems := document.Parse(name+".json", text)
		if doc == nil || len(problems) > 0 {
			t.Fatalf("%s: %s", name, say(problems))
		}
		var check func(n document.Node)
		check = func(n document.Node) {
			props := n.Get("properties")
			for p := range props.Children() {
				if n.Get("type").Exists() && p.Get("description").Text() == "" {
					t.Errorf("%s: %s has no description", name, p.Pointer())
				}
			}
			for c := range n.Children() {
				check(c)
			}
		}
		check(doc.Root())
	}
}

// TestSharedDefinitions keeps the definitions that several schemas repeat the
// same: each schema is printed by itself and must stand by itself.
func TestSharedDefinitions(t *testing.T) {
	card := defs(t, "card")
	for _, name := range []string{"manifest", "suite"} {
		for _, key := range []string{"envMap", "slurm", "distributed", "metric", "threshold"} {
			if diff := cmp.Diff(card[key], defs(t, name)[key]); diff != "" {
				t.Errorf("%s of card and %s differ:\n%s", key, name, diff)
			}
		}
	}
	cardText, _ := schemas.Read("card")
	doc, _ := document.Parse("card.json", cardText)
	manifestText, _ := schemas.Read("manifest")
	manifest, _ := document.Parse("manifest.json", manifestText)
	model := manifest.Find("/$defs/builtModel/properties")
	for p := range doc.Find("/properties").Children() { // a built model has besides what build notes
		if diff := cmp.Diff(p.Value(), model.Get(p.Key()).Value()); diff != "" {
			t.Errorf("%s of a card and of a built model differ:\n%s", p.Key(), diff)
		}
	}
}

func defs(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := schemas.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, _ := document.Parse(name+".json", text)
	m, ok := doc.Find("/$defs").Value().(map[string]any)
	if !ok {
		t.Fatalf("%s has no $defs", name)
	}
	return m
}

const branches = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "one": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}, "kind": {"enum": ["fast", "slow"]}}}]},
    "any": {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
    "const": {"const": 1},
    "self": {"$ref": "#"}
  }
}`

func TestViolations(t *testing.T) {
	s, err := document.Compile([]byte(branches))
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string]string{
		`{"one": "x", "any": 4, "const": 1, "unknown": [1]}`: ``,
		`{"one": 5}`:                `/one one must be an object or a string, not 5`,
		`{"one": {"kind": "fats"}}`: `/one/kind kind must be fast or slow, not the string "fats"; did you mean "fast"? | /one one has no "path", which is required`,
		`{"any": 2}`:                `/any any must be at least 3, not 2`,
		`{"any": "2"}`:              `/any any must be an integer, not the string "2"`,
		`{"const": 2}`:              `/const const must be 1, not 2`,
		`{"self": {"self": {"self": {"any": 1e999999999}}}}`:   ``,
		`{"self": {"self": {"self": {"any": -1e-999999999}}}}`: `/self/self/self/any any must be at least 3, not -1e-999999999`,
		`[]`: ` the document must be an object, not a list`,
	} {
		doc, _ := document.Parse("a.json", []byte(data))
		var got []string
		violations, _ := s.Validate(doc.Root())
		for _, p := range violations {
			got = append(got, p.Pointer+" "+p.Message)
		}
		slices.Sort(got)
		wanted := strings.Split(want, " | ")
		slices.Sort(wanted)
		if strings.Join(got, " | ") != strings.Join(wanted, " | ") {
			t.Errorf("%s\ngot  %s\nwant %s", data, strings.Join(got, " | "), want)
		}
	}
}

// TestLargeMapsAreValidatedTheSame compares a large built_models, which is
// validated member by member, with the same members a few at a time.
func TestLargeMapsAreValidatedTheSame(t *testing.T) {
	s := compile(t, "manifest")
	member := rapid.SampledFrom([]string{
		`{"name": "a"}`, `{"nam": "a"}`, `{"name": 1, "n_gpus": "x"}`, `7`, `null`, `{"name": "a", "slurm": {"nodes": 0}}`,
		`{"name": "a", "env_vars": {"A": null}, "tags": [1, 2]}`,
	})
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfN(member, 65, 200).Draw(t, "members")
		whole := validate(s, members, 0, len(members))
		var parts []string
		for i := 0; i < len(members); i += 20 {
			parts = append(parts, validate(s, members, i, min(i+20, len(members)))...)
		}
		slices.Sort(whole)
		slices.Sort(parts)
		if diff := cmp.Diff(parts, whole); diff != "" {
			t.Fatalf("(-in parts +whole)\n%s", diff)
		}
	})
}

func validate(s *document.Schema, members []string, from, to int) []string {
	var b strings.Builder
	b.WriteString(`{"built_images": {}, "context": {}, "built_models": {`)
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"m%d": %s`, i, members[i])
	}
	b.WriteString("}}")
	doc, _ := document.Parse("a.json", []byte(b.String()))
	var all []string
	violations, _ := s.Validate(doc.Root())
	for _, p := range violations {
		all = append(all, p.Code+" "+p.Pointer+" "+p.Message)
	}
	return all
}

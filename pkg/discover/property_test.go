package discover_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

// escape is what a person writes to get a value through the selector grammar.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `:`, `\:`).Replace(s)
}

// Whatever an override's value is, the script gets it as one word.
func TestOverridesReachTheScriptUnchanged(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/models.json", `[{"name": "a", "scripts": "s.sh", "args": "--first 'x y'"}]`, 0o644)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[ -~äπ\n]{0,12}`).Filter(func(s string) bool { return strings.TrimSpace(s) == s }).Draw(t, "value")
		res, err := discover.Find(context.Background(), discover.Options{Root: root, Tags: []string{"a:key=" + escape(value)}})
		if err != nil {
			t.Fatal(err)
		}
		got := words(t, res.Cards[0].Card.Args.Text)
		if diff := cmp.Diff([]string{"--first", "x y", "--key", value}, got); diff != "" {
			t.Fatalf("args %q\n%s", res.Cards[0].Card.Args.Text, diff)
		}
	})
}

// words splits as a POSIX shell splits, and fails where it would expand.
func words(t *rapid.T, text string) []string {
	var list []*syntax.Word
	for w, err := range syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).WordsSeq(strings.NewReader(text)) {
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		list = append(list, w)
	}
	out, err := expand.Fields(&expand.Config{NoUnset: true}, list...)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return out
}

// The order of tags does not change what is selected nor its order.
func TestSelectionOrderIsTheDeclarations(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/models.json", `[{"name": "c", "scripts": "s", "tags": ["x"]}, {"name": "a", "scripts": "s", "tags": ["y", "x"]},
		{"name": "b", "scripts": "s", "tags": "z"}]`, 0o644)
	all := []string{"x", "y", "z", "a", "b", "c", "all"}
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), rapid.ID[string]).Draw(t, "tags")
		shuffled := rapid.Permutation(tags).Draw(t, "shuffled")
		one, err1 := discover.Find(context.Background(), discover.Options{Root: root, Tags: tags})
		two, err2 := discover.Find(context.Background(), discover.Options{Root: root, Tags: []string{strings.Join(shuffled, ",")}})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if diff := cmp.Diff(one, two); diff != "" {
			t.Fatal(diff)
		}
		last := -1
		for _, c := range one.Cards {
			at := strings.Index("cab", c.Name)
			if at <= last {
				t.Fatalf("order: %v", one.Cards)
			}
			last = at
		}
	})
}

// No text of a selector makes anything but a selection or exit code 4.
func TestSelectorsNeverPanic(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/scripts/d/models.json", `[{"name": "n", "scripts": "s", "tags": ["t"]}]`, 0o644)
	rapid.Check(t, func(t *rapid.T) {
		tag := rapid.StringMatching(`[dnt/:=,\\ \-'a]{0,10}`).Draw(t, "tag")
		_, err := discover.Find(context.Background(), discover.Options{Root: root, Tags: []string{tag}})
		if err != nil && exitcode.Of(err) != exitcode.Invalid {
			t.Fatalf("%v has code %v", err, exitcode.Of(err))
		}
	})
}

// No file makes anything but cards or exit code 4, and what DecodeJSON takes is
// what encoding/json takes.
func FuzzCardFile(f *testing.F) {
	for _, seed := range []string{
		`[]`, `[{"name":"a"}]`, `{`, `[{"name":"a","n_gpus":"-1","timeout":-1,"args":["x",1],"tags":"a,b"}]`,
		"\ufeff[]", `[{"a":1,"a":2}]`, strings.Repeat("[", 200), "[\r\n]", `[{"name":"a","env_vars":{"A":null}}] x`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "models.json"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := discover.Find(context.Background(), discover.Options{Root: root}); err != nil && exitcode.Of(err) != exitcode.Invalid {
			t.Fatalf("%v has code %v", err, exitcode.Of(err))
		}
		doc, err := discover.DecodeJSON("x.json", data)
		if err == nil && !json.Valid(doc.JSON) {
			t.Fatalf("accepted %q", data)
		}
	})
}

func TestDecodedPlaces(t *testing.T) {
	doc, err := discover.DecodeJSON("x.json", []byte("\ufeff{\"a\": [1,\n {\"b/c~d\": 2}]}"))
	if err != nil {
		t.Fatal(err)
	}
	if line, col := doc.Position("/a/1/b~1c~0d"); line != 2 || col != 12 {
		t.Errorf("got %d:%d, want 2:12", line, col)
	}
	if line, col := doc.Position("/nowhere"); line != 0 || col != 0 {
		t.Errorf("got %d:%d for a place that is not there", line, col)
	}
}

func TestNearest(t *testing.T) {
	tags := []string{"training", "inference", "inf", "dummy", "dummies", "Triad", "net/all"}
	for word, want := range map[string][]string{
		"traning":      {"training"},
		"infernce":     {"inference", "inf"},
		"triad":        {"Triad"},
		"dum":          {"dummies", "dummy"},
		"nte":          {"net/all"},
		"z":            nil,
		"unrelatedTag": nil,
	} {
		if diff := cmp.Diff(want, discover.Nearest(word, tags, 5)); diff != "" {
			t.Errorf("%s: -want +got\n%s", word, diff)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	root := b.TempDir()
	var list []map[string]any
	for i := range 1000 {
		list = append(list, map[string]any{
			"name": "model" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26), "scripts": "run.sh",
			"tags": []string{"t"}, "n_gpus": "-1", "env_vars": map[string]string{"A": "b"}, "args": "--x 1",
		})
	}
	data, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(root+"/models.json", data, 0o644); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if res, err := discover.Find(context.Background(), discover.Options{Root: root}); err != nil || len(res.Cards) != 1000 {
			b.Fatal(len(res.Cards), err)
		}
	}
}

package document_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"assay/pkg/document"
)

// TestViolationsAreBounded makes one fault very often, in every kind of list and
// map, and wants the first thousand, quickly and in little memory.
func TestViolationsAreBounded(t *testing.T) {
	const n = 200_000
	list := func(item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	members := func(value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"m%d": %s,`, i, value)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	const manifest = `{"built_images": {}, "context": %s, "built_models": {%s}}`
	for name, c := range map[string]struct{ schema, data, first string }{
		"models":     {"manifest", fmt.Sprintf(manifest, "{}", members("7")), "/built_models/m0"},
		"variables":  {"manifest", fmt.Sprintf(manifest, `{"docker_env_vars": {`+members("null")+`}}`, ""), "/context/docker_env_vars/m0"},
		"thresholds": {"manifest", fmt.Sprintf(manifest, "{}", `"a": {"name": "a", "thresholds": [`+list("{}")+`]}`), "/built_models/a/thresholds/0"},
		"command":    {"card", `{"name": "a", "command": [` + list("1") + `]}`, "/command/0"},
		"tests":      {"suite", `{"name": "a", "tests": [` + list("1") + `]}`, "/tests/0"},
	} {
		doc, problems := document.Parse("a.json", []byte(c.data))
		if doc == nil {
			t.Fatal(problems)
		}
		schema := compile(t, c.schema)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		violations, more := schema.Validate(doc.Root())
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		if len(violations) != 1000 || !more || violations[0].Pointer != c.first {
			t.Errorf("%s: %d violations, more: %v, %+v", name, len(violations), more, violations[:1])
		}
		if used > 64<<20 {
			t.Errorf("%s: %d MiB", name, used>>20)
		}
	}
}

func TestNearMissesAreBounded(t *testing.T) {
	doc, _ := document.Parse("a.json", []byte(`{"name": "a", "metrics": [`+strings.Repeat(`{"namee": 1},`, 5000)+`{}]}`))
	misses, more := compile(t, "card").NearMisses(doc.Root())
	if len(misses) != 1000 || !more {
		t.Errorf("%d, more: %v", len(misses), more)
	}
}

// TestEntriesOfLongLists: those that are validated one by one keep their place.
func TestEntriesOfLongLists(t *testing.T) {
	for data, want := range map[string]string{
		`{"name": "a", "command": [1` + strings.Repeat(`, "a"`, 98) + `, 2]}`:             "/command/0 /command/99",
		`{"name": "a", "thresholds": [` + strings.Repeat(`{"metric": "a"},`, 80) + `{}]}`: "/thresholds/80",
		`{"name": "a", "args": ["a"` + strings.Repeat(`, 1`, 98) + `, {}]}`:               "/args/99",
		`{"name": 1` + strings.Repeat(`, "x": [{}]`, 80) + `, "tags": [1]}`:               "/name /tags/0",
	} {
		doc, _ := document.Parse("a.json", []byte(data))
		violations, more := compile(t, "card").Validate(doc.Root())
		var got []string
		for _, v := range violations {
			got = append(got, v.Pointer)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want || more {
			t.Errorf("%.40s: %v, want %s", data, got, want)
		}
	}
}

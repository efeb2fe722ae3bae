package lint_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/card"
	"assay/pkg/document"
	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/schemas"
)

// TestStructsFollowTheSchemas checks that every field that is written to or read
// from a file is declared in the file's schema.
func TestStructsFollowTheSchemas(t *testing.T) {
	marker := shape(t, "marker").Branches
	for name, c := range map[string]struct {
		value any
		shape *document.Shape
	}{
		"card":    {card.Card{}, shape(t, "card")},
		"end":     {evidence.End{}, marker[0]},
		"begin":   {evidence.Begin{}, marker[1]},
		"job":     {plan.Attempt{}, shape(t, "job")},
		"verdict": {report.Run{}, shape(t, "verdict")},
	} {
		follow(t, name, reflect.TypeOf(c.value), c.shape)
	}
}

// TestCardHasEveryProperty is the other direction, for cards: the schema
// promises no field that is not read.
func TestCardHasEveryProperty(t *testing.T) {
	var fields []string
	for name := range tags(reflect.TypeFor[card.Card]()) {
		fields = append(fields, name)
	}
	slices.Sort(fields)
	if diff := cmp.Diff(shape(t, "card").Keys, fields); diff != "" {
		t.Errorf("(-schema +struct)\n%s", diff)
	}
}

// TestAggregatesAreThoseOfTheSchemas holds the words of the schemas to those that
// are understood.
func TestAggregatesAreThoseOfTheSchemas(t *testing.T) {
	for _, name := range []string{"card", "manifest"} {
		text, err := schemas.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Defs map[string]struct {
				Properties map[string]struct {
					Enum []any `json:"enum"`
				} `json:"properties"`
			} `json:"$defs"`
		}
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, w := range s.Defs["metric"].Properties["aggregate"].Enum {
			if word, ok := w.(string); ok && word != "" {
				words = append(words, word)
			}
		}
		if diff := cmp.Diff(metric.Aggregates(), words); diff != "" {
			t.Errorf("%s (-understood +schema)\n%s", name, diff)
		}
	}
}

func shape(t *testing.T, name string) *document.Shape {
	t.Helper()
	text, err := schemas.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := document.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return s.Shape()
}

func follow(t *testing.T, where string, typ reflect.Type, s *document.Shape) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		if typ.Kind() == reflect.Slice && s.Items != nil {
			s = s.Items
		}
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() || opaque(typ) || s.Properties == nil {
		return
	}
	fields := tags(typ)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		child, ok := s.Properties[name]
		if !ok {
			t.Errorf("%s: the schema has no property %q", where, name)
			continue
		}
		follow(t, where+"."+name, fields[name], child)
	}
}

// opaque says whether a type writes or reads its own JSON.
func opaque(typ reflect.Type) bool {
	p := reflect.PointerTo(typ)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[json.Unmarshaler]())
}

func tags(typ reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(all, tags(f.Type))
		case name != "" && name != "-":
			all[name] = f.Type
		}
	}
	return all
}

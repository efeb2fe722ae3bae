package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/pkg/card"
	"assay/pkg/document"
	"assay/pkg/plan"
)

// NamedVariant is the axis of variants that are listed by name.
const NamedVariant = "variant"

// Test is one test of a suite, or one variant of it.
type Test struct {
	Key     string            // unique in the suite: the name, and the variant
	Name    string            // the same for all variants
	Card    string            // name of the card
	Variant map[string]string // value by axis; nil where there are no variants
	At      document.Node     // the test in the suite

	axes   []string      // in the order of the suite
	listed document.Node // the variant that is listed by name
}

// Tests takes the suite apart, in its order, and tells what is wrong with that. What
// the schema refuses is left out without a word.
func (s *Suite) Tests() ([]Test, []document.Problem) {
	list := s.root.Get("tests")
	if list.Kind() != document.KindArray {
		return nil, nil
	}
	var tests []Test
	var problems []document.Problem
	first := map[string]document.Node{}
	for n := range list.Children() {
		plain, ok := s.plain(n)
		if !ok {
			continue
		}
		axes := s.axes(plain)
		if p := sameVariable(axes); p != nil && !slices.Contains(problems, *p) { // those of the suite are told once
			problems = append(problems, *p)
		}
		variants := variants(plain, axes)
		if len(tests)+len(variants) > maxTests {
			problems = append(problems, problem(n, CodeSize, fmt.Sprintf("the suite has more than %d tests, variants included", maxTests), "split it"))
			break
		}
		for _, t := range variants {
			if was, twice := first[t.Key]; twice {
				problems = append(problems, sameKey(t, was))
				continue
			}
			first[t.Key] = n
			if err := card.ValidName(t.Key); err != nil {
				problems = append(problems, problem(n, CodeName, "this cannot be the name of a test: "+err.Error(), "give it a shorter, plain name"))
				continue
			}
			tests = append(tests, t)
		}
	}
	return tests, problems
}

// sameKey is the problem of a test whose key another one has. At is where the second
// stands.
func sameKey(t Test, was document.Node) document.Problem {
	first, own := was.Position(), t.At.Position()
	if first == own {
		return problem(t.At, CodeKey, fmt.Sprintf("two variants of the test have the same values, %q", t.Key), "remove one of them")
	}
	return problem(t.At, CodeKey, fmt.Sprintf("the test at %d:%d is called %q, and so is the one at %d:%d: results could not be told apart",
		own.Line, own.Column, t.Key, first.Line, first.Column), "give one of them a name")
}

// plain is a test without its variants.
func (s *Suite) plain(n document.Node) (Test, bool) {
	t := Test{At: n}
	switch n.Kind() { //nolint:exhaustive // the schema refuses the others
	case document.KindString:
		t.Card = n.Text()
	case document.KindObject:
		c := n.Get("card")
		if c.Kind() != document.KindString {
			return t, false
		}
		t.Card = c.Text()
	}
	if t.Name = t.Card; present(n.Get("name")) {
		t.Name = n.Get("name").Text()
	}
	t.Key = t.Name
	return t, t.Card != ""
}

// axes is what says which variants a test has: its own word, or else the suite's.
func (s *Suite) axes(t Test) document.Node {
	if n := t.At.Get("variants"); n.Given() {
		return n
	}
	return s.root.Get("variants")
}

// sameVariable refuses axes whose values a workload could not tell apart.
func sameVariable(n document.Node) *document.Problem {
	if n.Kind() != document.KindObject {
		return nil
	}
	var names []string
	for axis := range n.Children() {
		if isAxis(axis) {
			names = append(names, axis.Key())
		}
	}
	why := plan.SameVariable(names)
	if why == "" {
		return nil
	}
	p := problem(n, CodeAxis, why, "rename one of them")
	return &p
}

// isAxis says whether a member of variants is an axis that has values.
func isAxis(n document.Node) bool {
	return !strings.HasPrefix(n.Key(), "_") && n.Kind() == document.KindArray && n.Len() > 0
}

// variants are the variants of a test.
func variants(t Test, n document.Node) []Test {
	switch n.Kind() { //nolint:exhaustive // nothing else has variants
	case document.KindArray:
		return listed(t, n)
	case document.KindObject:
		return matrix(t, n)
	}
	return []Test{t}
}

func listed(t Test, list document.Node) []Test {
	if list.Len() == 0 {
		return []Test{t}
	}
	var out []Test
	for v := range list.Children() {
		name := v.Get("name")
		if name.Kind() != document.KindString {
			continue
		}
		one := t
		one.listed = v
		one.Key = t.Name + "/" + name.Text()
		one.Variant = map[string]string{NamedVariant: name.Text()}
		out = append(out, one)
	}
	return out
}

// matrix gives every combination of the values of the axes. The last axis changes
// fastest.
func matrix(t Test, axes document.Node) []Test {
	tests := []Test{t}
	for axis := range axes.Children() {
		if !isAxis(axis) {
			continue
		}
		if len(tests)*axis.Len() > maxTests {
			return make([]Test, maxTests+1) // more than is looked at
		}
		var next []Test
		for _, under := range tests {
			for value := range axis.Children() {
				one := under
				one.axes = append(slices.Clip(under.axes), axis.Key())
				one.Variant = maps.Clone(under.Variant)
				if one.Variant == nil {
					one.Variant = map[string]string{}
				}
				one.Variant[axis.Key()] = value.Text()
				next = append(next, one)
			}
		}
		tests = next
	}
	for i := range tests {
		if suffix := tests[i].suffix(); suffix != "" {
			tests[i].Key = t.Name + "/" + suffix
		}
	}
	return tests
}

// suffix tells the combination: size=1MiB,threads=2.
func (t Test) suffix() string {
	parts := make([]string, len(t.axes))
	for i, axis := range t.axes {
		parts[i] = axis + "=" + t.Variant[axis]
	}
	return strings.Join(parts, ",")
}

// Where is the value of the suite that a JSON pointer into the card of a test is about:
// the value that stands there instead of the card's own, or as much of its path as
// there is. Where the card's own value stands, it is the test.
func (s *Suite) Where(t Test, pointer string) document.Node {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for _, layer := range []document.Node{t.listed, t.At, s.root} {
		n := layer.Get(tokens[0])
		if !present(n) || layer == s.root && !slices.Contains(append(filled(), "env_vars"), tokens[0]) {
			continue
		}
		for _, token := range tokens[1:] {
			next := child(n, strings.NewReplacer("~1", "/", "~0", "~").Replace(token))
			if !next.Exists() {
				break
			}
			n = next
		}
		return n
	}
	return t.At
}

func child(n document.Node, token string) document.Node {
	if n.Kind() != document.KindArray {
		return n.Get(token)
	}
	i := 0
	for c := range n.Children() {
		if fmt.Sprint(i) == token {
			return c
		}
		i++
	}
	return document.Node{}
}

package document

import (
	"maps"
	"slices"
	"strings"

	"assay/pkg/spelling"
)

// Shape is what a schema says about the keys of objects, without its other
// rules: enough to walk a document along it.
type Shape struct {
	Description string
	Expects     string // what a value looks like, in words; from x-expects
	Properties  map[string]*Shape
	Keys        []string // of Properties, sorted
	Values      *Shape   // of the members that Properties does not name
	Items       *Shape
	Branches    []*Shape // of anyOf, oneOf, then and else
}

// shaper builds shapes from the raw schema; each $ref once, so that a schema
// that refers to itself ends.
type shaper struct {
	root map[string]any
	refs map[string]*Shape
}

func (b *shaper) shape(raw any) *Shape {
	m, ok := raw.(map[string]any)
	if !ok {
		return nil
	}
	s := &Shape{}
	if ref, ok := m["$ref"].(string); ok {
		s = b.reference(ref)
		if d, ok := m["description"].(string); ok && s.Description != d {
			c := *s
			c.Description = d
			s = &c
		}
		return s
	}
	b.fill(s, m)
	return s
}

func (b *shaper) reference(ref string) *Shape {
	if s, ok := b.refs[ref]; ok {
		return s
	}
	s := &Shape{}
	b.refs[ref] = s
	if m, ok := lookup(b.root, strings.TrimPrefix(ref, "#")).(map[string]any); ok {
		b.fill(s, m)
	}
	return s
}

func (b *shaper) fill(s *Shape, m map[string]any) {
	s.Description, _ = m["description"].(string)
	s.Expects, _ = m["x-expects"].(string)
	if props, ok := m["properties"].(map[string]any); ok {
		s.Properties = make(map[string]*Shape, len(props))
		for k, v := range props {
			s.Properties[k] = b.shape(v)
		}
		s.Keys = slices.Sorted(maps.Keys(props))
	}
	s.Values = b.shape(m["additionalProperties"])
	s.Items = b.shape(m["items"])
	for _, k := range []string{"anyOf", "oneOf"} {
		if list, ok := m[k].([]any); ok {
			for _, v := range list {
				s.Branches = append(s.Branches, b.shape(v))
			}
		}
	}
	for _, k := range []string{"then", "else"} {
		if branch := b.shape(m[k]); branch != nil {
			s.Branches = append(s.Branches, branch)
		}
	}
}

// lookup follows a JSON pointer through Go values; nil where there is nothing.
func lookup(v any, pointer string) any {
	if pointer == "" {
		return v
	}
	for _, t := range strings.Split(pointer, "/")[1:] {
		t = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[t]
	}
	return v
}

// NearMisses reports the keys of a document that look like a misspelt key of the
// schema, and whether there are more than are returned. A key that begins with _ is a comment, and what stands below it is not
// looked at.
func (s *Schema) NearMisses(n Node) (problems []Problem, more bool) {
	w := &missWalker{nearest: map[missKey]string{}}
	w.walk(n, s.shape)
	return w.problems[:min(len(w.problems), maxProblems)], len(w.problems) > maxProblems
}

type missKey struct {
	shape *Shape
	key   string
}

// maxUnknownKeys bounds how many different unknown keys are compared with the
// known ones: an object with more is a table of somebody's own.
const maxUnknownKeys = 20_000

type missWalker struct {
	problems []Problem
	nearest  map[missKey]string
}

func (w *missWalker) walk(n Node, s *Shape) {
	if s == nil || len(w.problems) > maxProblems {
		return
	}
	for _, b := range s.Branches {
		w.walk(n, b)
	}
	switch n.Kind() { //nolint:exhaustive // a scalar has no keys
	case KindArray:
		if s.Items != nil {
			for c := range n.Children() {
				w.walk(c, s.Items)
			}
		}
	case KindObject:
		if s.Properties == nil && s.Values == nil {
			return
		}
		for c := range n.Children() {
			w.member(c, s)
		}
	}
}

func (w *missWalker) member(c Node, s *Shape) {
	key := c.Key()
	if strings.HasPrefix(key, "_") || len(w.problems) > maxProblems {
		return
	}
	if child, known := s.Properties[key]; known {
		w.walk(c, child)
		return
	}
	if s.Values != nil {
		w.walk(c, s.Values)
		return
	}
	meant, cached := w.nearest[missKey{s, key}]
	if !cached {
		if len(w.nearest) >= maxUnknownKeys {
			return
		}
		meant = spelling.Nearest(key, s.Keys)
		w.nearest[missKey{s, key}] = meant
	}
	if meant != "" {
		w.problems = append(w.problems, Problem{
			Code: CodeNearMiss, Pointer: c.Pointer(), Position: c.KeyPosition(), Warning: true,
			Message: "the key " + quote(key) + " is not known and has no effect; did you mean " + quote(meant) + "?",
			Fix:     "rename it to " + quote(meant), Key: meant,
		})
	}
}

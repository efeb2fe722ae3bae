package suite

import (
	"fmt"
	"strings"

	"assay/pkg/discover"
	"assay/pkg/document"
)

// Frozen is what build makes a manifest of.
type Frozen struct {
	Cards []discover.Found // each card once, as declared, in the order of first use
	Tests []FrozenTest     // in the order of the suite
	Block map[string]any   // the manifest's suite block, without its tests
}

// FrozenTest is a test over its card.
type FrozenTest struct {
	Test
	Raw   map[string]any // the card with what the test overrides
	Entry map[string]any // of the tests in the manifest's suite block, without its key
}

// Resolve finds the cards of the tests, and puts each test over its card. Problems
// that are no warnings leave out what they are about.
func (s *Suite) Resolve(catalog discover.Catalog) (Frozen, []document.Problem) {
	tests, problems := s.Tests()
	f := Frozen{Block: s.block()}
	told := map[document.Problem]bool{} // once for all variants
	tell := func(more ...document.Problem) (fatal bool) {
		for _, p := range more {
			fatal = fatal || !p.Warning
			if !told[p] {
				told[p] = true
				problems = append(problems, p)
			}
		}
		return fatal
	}
	cards := map[string]discover.Found{}
	for _, t := range tests {
		card, looked := cards[t.Card]
		if !looked {
			found, p := find(catalog, t)
			if p != nil {
				tell(*p)
				continue
			}
			card, cards[t.Card] = found, found
			f.Cards = append(f.Cards, found)
		}
		if raw, more := s.Apply(t, card.Raw); !tell(more...) {
			f.Tests = append(f.Tests, FrozenTest{Test: t, Raw: raw, Entry: s.entry(t)})
		}
	}
	if s.allOptional(tests) {
		problems = append(problems, problem(s.root.Get("tests"), CodeOptional, "every test is optional, so that nothing would be judged", "leave required out where a test decides"))
	}
	return f, problems
}

// find looks up the card of a test.
func find(catalog discover.Catalog, t Test) (discover.Found, *document.Problem) {
	at := t.At
	if at.Kind() == document.KindObject {
		at = at.Get("card")
	}
	card, known, err := catalog.Named(t.Card)
	var p document.Problem
	switch {
	case err != nil:
		p = problem(at, CodeCard, "the card cannot be used: "+err.Error(), "")
	case !known:
		message, fix := fmt.Sprintf("there is no card %q below %s", t.Card, catalog.Root()), ""
		if near := catalog.Nearest(t.Card); near != "" {
			message += fmt.Sprintf("; did you mean %q?", near)
			fix = fmt.Sprintf("write %q", near)
		}
		if unrun := catalog.NotRun(); len(unrun) > 0 {
			message += fmt.Sprintf(" (%s was not run; --allow-dynamic runs it)", strings.Join(unrun, ", "))
		}
		p = problem(at, CodeCard, message, fix)
	default:
		return card, nil
	}
	return card, &p
}

// block is what the tests have in common, for the manifest.
func (s *Suite) block() map[string]any {
	b := map[string]any{"name": s.Name(), "file": s.File, "digest": s.Digest}
	for _, k := range []string{"description", "stop_on_fail", "baseline", "max_concurrent_nodes", "pairs", "hardware"} {
		if n := s.root.Get(k); present(n) {
			b[k] = n.Value()
		}
	}
	return b
}

// entry is what the manifest says of a test besides its card.
func (s *Suite) entry(t Test) map[string]any {
	e := map[string]any{"name": t.Name}
	if len(t.Variant) > 0 {
		variant := map[string]any{}
		for axis, value := range t.Variant {
			variant[axis] = value
		}
		e["variant"] = variant
	}
	for _, k := range []string{"stop_on_fail", "baseline", "pairs", "expects_thresholds"} {
		if n := t.At.Get(k); present(n) {
			e[k] = n.Value()
		}
	}
	if n := s.required(t); n.Given() {
		e["required"] = n.Value()
	}
	for _, n := range []document.Node{t.At.Get("duration"), s.root.Get("duration")} {
		if present(n) {
			e["duration"] = number(n)
			break
		}
	}
	return e
}

// required is what says whether a test decides.
func (s *Suite) required(t Test) document.Node {
	if n := t.At.Get("required"); n.Given() {
		return n
	}
	return s.root.Get("required")
}

// allOptional says whether no test decides.
func (s *Suite) allOptional(tests []Test) bool {
	for _, t := range tests {
		if s.required(t).Raw() != "false" {
			return false
		}
	}
	return len(tests) > 0
}

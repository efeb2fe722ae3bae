package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/pkg/document"
	"assay/pkg/metric"
	"assay/pkg/spelling"
	"assay/pkg/suite"
)

// gates are the tests that a file of thresholds can be about.
type gates struct {
	suite string          // its name
	tests map[string]gate // by name
}

// gate is what is known of a test.
type gate struct {
	metrics *declared // nil: nothing is
	card    document.Node
}

// gatesOf are the tests of a suite; nil when they are not known.
func gatesOf(s *suite.Suite, tests []suite.FrozenTest) *gates {
	if len(tests) == 0 {
		return nil
	}
	g := &gates{suite: s.Name(), tests: map[string]gate{}}
	for _, t := range tests {
		if _, ok := g.tests[t.Name]; ok {
			continue
		}
		g.tests[t.Name] = gateOf(t.Raw)
	}
	return g
}

func gateOf(raw map[string]any) gate {
	data, err := json.Marshal(raw)
	if err != nil { // what was read can be written
		return gate{}
	}
	doc, _ := document.Parse("card.json", data)
	if doc == nil {
		return gate{}
	}
	metrics := declared{}
	list := doc.Root().Get("metrics")
	if list.Kind() == document.KindArray {
		for m := range list.Children() {
			name := m.Get("name").Text()
			metrics[name] = metric.Spec{Name: name, Unit: m.Get("unit").Text(), Better: m.Get("better").Text()}
		}
	}
	return gate{metrics: &metrics, card: doc.Root()}
}

// thresholdsFile checks a file of thresholds by hardware and test, with the tests of
// the suite that names it, if one does.
func (c *checker) thresholdsFile(root document.Node, known *gates) {
	c.schema("thresholds", root, nil)
	hardware := root.Get("hardware")
	if hardware.Kind() != document.KindObject {
		return
	}
	for h := range hardware.Children() {
		if h.Kind() != document.KindObject || strings.HasPrefix(h.Key(), "_") {
			continue
		}
		for test := range h.Children() {
			if strings.HasPrefix(test.Key(), "_") || c.full() {
				continue
			}
			g := known.of(c, test)
			c.thresholds(test, g.metrics, g.card)
		}
	}
}

// of finds the test that thresholds are for, and warns when the suite has none.
func (g *gates) of(c *checker, test document.Node) gate {
	if g == nil {
		return gate{}
	}
	found, ok := g.tests[test.Key()]
	if !ok {
		message, fix := fmt.Sprintf("the suite %s has no test %q", g.suite, test.Key()), ""
		if near := spelling.Nearest(test.Key(), slices.Collect(maps.Keys(g.tests))); near != "" {
			message += fmt.Sprintf("; did you mean %q?", near)
			fix = fmt.Sprintf("rename it to %q", near)
		}
		c.atKey(Warning, SuiteThresholds, test, message, fix)
	}
	return found
}

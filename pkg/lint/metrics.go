package lint

import (
	"fmt"

	"assay/pkg/document"
	"assay/pkg/metric"
)

// declared are the metrics of a card by name.
type declared map[string]metric.Spec

// metrics checks the declarations of a card and returns them.
func (c *checker) metrics(list document.Node) declared {
	all := declared{}
	if list.Kind() != document.KindArray {
		return all
	}
	for m := range list.Children() {
		name := m.Get("name")
		if name.Kind() != document.KindString {
			continue
		}
		unit := m.Get("unit")
		evidence, _ := m.Get("evidence").Value().(bool)
		if _, twice := all[name.Text()]; twice {
			c.at(Warning, MetricDuplicate, name, fmt.Sprintf("the metric %q is declared twice", name.Text()), "remove one of them")
		}
		all[name.Text()] = metric.Spec{Name: name.Text(), Unit: unit.Text(), Better: m.Get("better").Text(), Evidence: evidence}
		c.metricName(name, name.Text())
		c.metricUnit(name.Text(), unit)
	}
	return all
}

// metricName checks the form of a metric's name, text, which stands at name.
func (c *checker) metricName(name document.Node, text string) {
	if text == "" || text == metric.Performance {
		return
	}
	err := metric.ValidName(text)
	if err == nil {
		return
	}
	fix := "begin with a small letter and use letters and digits of ASCII"
	if name := metric.Camel(text); metric.ValidName(name) == nil && len(text) == len([]rune(text)) {
		fix = fmt.Sprintf("write %q", name)
	}
	c.at(Warning, MetricName, name, "the "+err.Error(), fix)
}

// metricUnit checks that the suffix of a name is the unit that is declared.
func (c *checker) metricUnit(name string, unit document.Node) {
	if unit.Kind() != document.KindString || unit.Text() == "" {
		return
	}
	if s, ok := metric.SuffixOf(name); ok && !metric.SameUnit(s.Unit, unit.Text()) {
		c.at(Warning, MetricUnit, unit, fmt.Sprintf("the name %q ends with the unit %s, and the unit is %q", name, s.Suffix, unit.Text()), "")
	}
}

package lint

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"assay/pkg/document"
	"assay/pkg/spelling"
)

func comparisons() []string { return []string{"min", "max", "equal", "not_equal"} }

// thresholds checks the gates of a card. Without declarations (nil, or an empty
// list) a gate declares its metric itself.
func (c *checker) thresholds(list document.Node, metrics *declared, card document.Node) {
	if list.Kind() != document.KindArray {
		return
	}
	for t := range list.Children() {
		if t.Kind() != document.KindObject {
			continue
		}
		c.unknownComparisons(t)
		c.bounds(t)
		name := t.Get("metric")
		if name.Kind() != document.KindString || name.Text() == "" {
			continue
		}
		var units declared
		if metrics != nil {
			units = *metrics
			c.measurable(name, units, card)
		}
		if _, known := units[name.Text()]; !known {
			c.metricName(name)
		}
		c.equality(t, name.Text(), units)
	}
}

// unknownComparisons reports keys that compare, or seem to, and are not known:
// a gate that is not read would pass everything.
func (c *checker) unknownComparisons(t document.Node) {
	known := append(comparisons(), "metric", "required_if_measurable", "note")
	for k := range t.Children() {
		key := k.Key()
		if strings.HasPrefix(key, "_") || slices.Contains(known, key) {
			continue
		}
		meant := comparisonWord(key)
		if k.Kind() != document.KindNumber && meant == "" {
			continue // a remark of somebody's own
		}
		message := fmt.Sprintf("%q is not a comparison; the comparisons are min, max, equal and not_equal", key)
		fix := ""
		if meant == "" {
			meant = spelling.Nearest(key, known)
		}
		if slices.Contains(known, meant) {
			message += fmt.Sprintf("; did you mean %q?", meant)
			fix = fmt.Sprintf("write %q", meant)
		}
		c.atKey(Error, ThresholdComparison, k, message, fix)
	}
}

// comparisonWord translates what other tools call a comparison.
func comparisonWord(key string) string {
	switch strings.ToLower(key) {
	case "ge", "gte", ">=", "minimum", "at_least", "lower", "above", "gt", ">":
		return "min"
	case "le", "lte", "<=", "maximum", "at_most", "upper", "below", "lt", "<":
		return "max"
	case "eq", "==", "equals", "value", "expected":
		return "equal"
	case "ne", "neq", "!=":
		return "not_equal"
	case "op", "operator", "comparison", "comparator", "between", "range", "tolerance", "regex", "matches":
		return "another"
	}
	return ""
}

// bounds checks that there is a bound and that a value can satisfy all of them.
func (c *checker) bounds(t document.Node) {
	values := map[string]float64{}
	given := false
	for _, k := range comparisons() {
		n := t.Get(k)
		given = given || n.Given()
		v, ok := n.Number()
		switch {
		case n.Kind() == document.KindString && notFinite(n.Text()):
			c.at(Error, ThresholdNotFinite, n, fmt.Sprintf("the bound %s is %q: NaN and infinities bound nothing", k, n.Text()), "write a finite number, without quotes")
		case ok && math.IsInf(v, 0):
			c.at(Error, ThresholdNotFinite, n, fmt.Sprintf("the bound %s is not finite", k), "write a finite number")
		case ok:
			values[k] = v
		}
	}
	if !given {
		c.at(Error, ThresholdNoBound, t, "the threshold has no bound, so it would pass everything", "add min, max, equal or not_equal")
	}
	if why := contradiction(values); why != "" {
		c.at(Error, ThresholdEmpty, t, "no value can satisfy this threshold: "+why, "")
	}
}

func notFinite(s string) bool {
	switch strings.TrimLeft(strings.ToLower(strings.TrimSpace(s)), "+-") {
	case "nan", "inf", "infinity", ".inf", ".nan":
		return true
	}
	return false
}

// contradiction says why bounds exclude each other, or "".
func contradiction(v map[string]float64) string {
	low, hasMin := v["min"]
	high, hasMax := v["max"]
	equal, hasEqual := v["equal"]
	not, hasNot := v["not_equal"]
	switch {
	case hasMin && hasMax && low > high:
		return fmt.Sprintf("min %v is above max %v", low, high)
	case hasEqual && hasMin && equal < low:
		return fmt.Sprintf("equal %v is below min %v", equal, low)
	case hasEqual && hasMax && equal > high:
		return fmt.Sprintf("equal %v is above max %v", equal, high)
	case hasEqual && hasNot && equal == not:
		return fmt.Sprintf("equal and not_equal are both %v", equal)
	case hasMin && hasMax && hasNot && low == high && low == not:
		return fmt.Sprintf("min and max leave only %v, which not_equal excludes", not)
	}
	return ""
}

// measurable checks that the metric of a gate can be reported at all.
func (c *checker) measurable(name document.Node, metrics declared, card document.Node) {
	text := name.Text()
	if _, ok := metrics[text]; ok || text == "performance" {
		return
	}
	if strings.HasSuffix(text, "/performance") {
		if results := card.Get("multiple_results"); !results.Given() || results.Text() == "" {
			c.at(Error, ThresholdMetric, name, fmt.Sprintf("nothing can report %q: the card declares no multiple_results", text), "declare multiple_results, or gate performance")
		}
		return
	}
	if len(metrics) == 0 {
		return
	}
	known := slices.Sorted(maps.Keys(metrics))
	message := fmt.Sprintf("nothing declares the metric %q; the card's metrics are %s", text, strings.Join(known, ", "))
	fix := "add it to metrics"
	if near := spelling.Nearest(text, append(known, "performance")); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
		fix = fmt.Sprintf("write %q, or add it to metrics", near)
	}
	c.at(Error, ThresholdMetric, name, message, fix)
}

// equality warns of a measured quantity that must have one exact value.
func (c *checker) equality(t document.Node, name string, units declared) {
	equal := t.Get("equal")
	if !equal.Given() || units[name] == "" && unitSuffix(name) == "" {
		return
	}
	c.at(Warning, ThresholdEquality, equal, fmt.Sprintf("%q is measured, and a measured quantity is never exactly equal to anything", name), "use min and max")
}

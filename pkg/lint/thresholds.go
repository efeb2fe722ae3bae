package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/document"
	"assay/pkg/metric"
	"assay/pkg/phrase"
	"assay/pkg/spelling"
	"assay/pkg/threshold"
)

func comparisons() []string { return []string{"min", "max", "equal", "not_equal"} }

// thresholds checks the gates of a card. Without declarations (nil, or an empty
// list) a gate declares its metric itself.
func (c *checker) thresholds(list document.Node, metrics *declared, card document.Node) {
	if list.Kind() != document.KindArray {
		return
	}
	together := threshold.Together{}
	for t := range list.Children() {
		if c.full() {
			break
		}
		if t.Kind() != document.KindObject {
			continue
		}
		if why := together.Add(thresholdOf(t)); why != "" {
			c.at(Error, ThresholdEmpty, t, fmt.Sprintf("the thresholds on %s cannot be satisfied together: %s", t.Get("metric").Text(), why), "")
		}
		misread := c.unknownComparisons(t)
		name := t.Get("metric")
		var known declared
		if metrics != nil {
			known = *metrics
		}
		c.bounds(t, known[name.Text()], misread)
		if name.Kind() != document.KindString || name.Text() == "" {
			continue
		}
		if metrics != nil {
			c.measurable(name, known, card)
		}
		if _, ok := known[name.Text()]; !ok {
			c.metricName(name, gatedName(name.Text()))
		}
	}
}

// unknownComparisons reports keys that compare, or seem to, and are not known,
// and says whether there are any: a gate that is not read would pass everything.
func (c *checker) unknownComparisons(t document.Node) bool {
	known := append(comparisons(), "metric", "required_if_measurable", "note")
	bounded := slices.ContainsFunc(comparisons(), func(name string) bool { return t.Get(name).Given() })
	found := false
	for k := range t.Children() {
		key := k.Key()
		if strings.HasPrefix(key, "_") || slices.Contains(known, key) {
			continue
		}
		meant, near := comparisonWord(key), nearestComparison(key)
		switch {
		case meant != "":
		case near != "" && (!bounded || number(k) != nil):
			meant = near
		case k.Kind() != document.KindNumber || spelling.Nearest(key, known) != "":
			continue // a remark of somebody's own, or another key misspelt
		}
		message := fmt.Sprintf("%q is not a comparison; the comparisons are min, max, equal and not_equal", key)
		fix := ""
		if slices.Contains(known, meant) {
			message += fmt.Sprintf("; did you mean %q?", meant)
			fix = fmt.Sprintf("write %q", meant)
		}
		c.atKey(Error, ThresholdComparison, k, message, fix)
		found = true
	}
	return found
}

// nearestComparison finds a comparison that is misspelt, in two letters too.
func nearestComparison(key string) string {
	if near := spelling.Nearest(key, comparisons()); near != "" {
		return near
	}
	for _, c := range comparisons() {
		if len(key) == 2 && spelling.Distance(strings.ToLower(key), c, 1) == 1 {
			return c
		}
	}
	return ""
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

// bounds reports what is wrong with the threshold itself, as the verdict would
// find it. What is no number at all is the schema's to report. That there is no
// bound needs no word when one was given and misread.
func (c *checker) bounds(n document.Node, spec metric.Spec, given bool) {
	t := thresholdOf(n)
	given = given || slices.ContainsFunc(comparisons(), func(name string) bool { return n.Get(name).Given() })
	report := func(s Severity, f threshold.Fault, message string) {
		at, fix := n, ""
		if f.Bound != "" {
			at = n.Get(f.Bound)
		}
		if f.Code == ThresholdNotFinite {
			fix = "write a finite number, without quotes"
		}
		c.at(s, f.Code, at, message, fix)
	}
	for _, name := range comparisons() {
		bound := number(n.Get(name))
		if bound == nil {
			continue
		}
		if f := threshold.Inexact(name, strings.TrimSpace(n.Get(name).Text()), *bound); f != nil {
			report(Error, *f, "the threshold cannot be applied as it is written: "+f.Message)
		}
	}
	for _, f := range threshold.Malformed(t) {
		if f.Code == threshold.CodeNoMetric || f.Code == ThresholdNoBound && given {
			continue // it is said elsewhere
		}
		report(Error, f, "the threshold cannot be satisfied: "+f.Message)
	}
	for _, f := range threshold.Unsound(t, spec) {
		report(Warning, f, f.Message)
	}
}

// thresholdOf is the threshold that a value means, as far as it can be read.
func thresholdOf(n document.Node) threshold.Threshold {
	return threshold.Threshold{
		Metric: n.Get("metric").Text(), Min: number(n.Get("min")), Max: number(n.Get("max")),
		Equal: number(n.Get("equal")), NotEqual: number(n.Get("not_equal")),
	}
}

// number returns the bound that a value means: a number, or the text of one.
func number(n document.Node) *float64 {
	v, ok := n.Number()
	if !ok && n.Kind() == document.KindString {
		var err error
		v, err = strconv.ParseFloat(strings.TrimSpace(n.Text()), 64)
		ok = err == nil
	}
	if !ok {
		return nil
	}
	return &v
}

// gatedName is the metric's own name in a threshold on <row model>/<metric>.
func gatedName(text string) string { return text[strings.LastIndexByte(text, '/')+1:] }

// measurable checks that the metric of a gate can be reported at all.
func (c *checker) measurable(name document.Node, metrics declared, card document.Node) {
	text := name.Text()
	if _, ok := metrics[text]; ok || text == metric.Performance {
		return
	}
	// <row model>/<metric> names a row of the results.
	last := gatedName(text)
	if _, ok := metrics[last]; last != text && (ok || last == metric.Performance) {
		if results := card.Get("multiple_results"); !results.Given() || results.Text() == "" {
			c.at(Error, ThresholdMetric, name, fmt.Sprintf("nothing can report %q: the card declares no multiple_results", text), "declare multiple_results, or gate performance")
		}
		return
	}
	if len(metrics) == 0 {
		return
	}
	known := slices.Sorted(maps.Keys(metrics))
	known = known[:min(len(known), maxCandidates)]
	message := fmt.Sprintf("nothing declares the metric %q; the card's metrics are %s", text, phrase.Clip(strings.Join(known, ", "), 300))
	fix := "add it to metrics"
	if near := spelling.Nearest(text, append(known, metric.Performance)); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
		fix = fmt.Sprintf("write %q, or add it to metrics", near)
	}
	c.at(Error, ThresholdMetric, name, message, fix)
}

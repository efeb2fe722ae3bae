package threshold

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"assay/pkg/metric"
)

// The codes of a Violation. They are reason codes of a verdict.
const (
	CodeThreshold = "THRESHOLD"     // a value does not satisfy a bound
	CodeAbsent    = "METRIC_ABSENT" // nothing reported the metric
)

// Violation is one measurement that does not satisfy a threshold, or the lack of
// any measurement that could.
type Violation struct {
	Code    string
	Subject string // the metric, as "name" or "model/name"
	Message string
}

// Matches reports whether t gates m: by the metric's name, by "model/name", and
// for a `performance:` line or a row of a results CSV also by "performance" or
// "model/performance".
func (t Threshold) Matches(m metric.Measurement) bool {
	gates := func(name string) bool {
		return t.Metric == name || m.Model != "" && t.Metric == m.Model+"/"+name
	}
	return gates(m.Name) || metric.IsPerformance(m.Source) && gates(metric.Performance)
}

// Check compares every measurement that t gates with its bounds, exactly, as
// 64-bit floating-point numbers. NaN and infinities satisfy nothing, neither
// does absence. "n/a" satisfies only a threshold that is required_if_measurable.
// A malformed threshold is satisfied by nothing.
func Check(t Threshold, ms []metric.Measurement) []Violation {
	if faults := Malformed(t); len(faults) > 0 {
		return []Violation{{CodeThreshold, t.Metric, fmt.Sprintf("the threshold on %s cannot be satisfied: %s", orUnnamed(t.Metric), faults[0].Message)}}
	}
	var out []Violation
	found := false
	for _, m := range ms {
		if !t.Matches(m) {
			continue
		}
		found = true
		if why := t.refuses(m); why != "" {
			out = append(out, Violation{CodeThreshold, title(m), title(m) + " " + why + t.note()})
		}
	}
	if !found {
		out = append(out, Violation{CodeAbsent, t.Metric, fmt.Sprintf("%s was not reported, and has to be %s%s", t.Metric, t.Bounds(), t.note())})
	}
	return out
}

// refuses says why m does not satisfy t, as the rest of a sentence; empty when
// it does.
func (t Threshold) refuses(m metric.Measurement) string {
	if m.NotApplicable {
		if t.RequiredIfMeasurable {
			return ""
		}
		return "was reported as n/a, and has to be " + t.Bounds()
	}
	v := m.Value
	value := "is " + number(v)
	if m.Unit != "" {
		value += " " + m.Unit
	}
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return value + ", which satisfies no threshold"
	case t.Min != nil && !(v >= *t.Min):
		return value + ", below the minimum of " + number(*t.Min)
	case t.Max != nil && !(v <= *t.Max):
		return value + ", above the maximum of " + number(*t.Max)
	case t.Equal != nil && v != *t.Equal:
		return value + ", not equal to " + number(*t.Equal)
	case t.NotEqual != nil && v == *t.NotEqual:
		return value + ", which it must not be"
	}
	return ""
}

// Bounds spells the bounds of t: "at least 100 and at most 200".
func (t Threshold) Bounds() string {
	var parts []string
	add := func(bound *float64, words string) {
		if bound != nil {
			parts = append(parts, words+" "+number(*bound))
		}
	}
	add(t.Min, "at least")
	add(t.Max, "at most")
	add(t.Equal, "equal to")
	add(t.NotEqual, "other than")
	return strings.Join(parts, " and ")
}

func (t Threshold) note() string {
	if t.Note == "" {
		return ""
	}
	return " (" + t.Note + ")"
}

func title(m metric.Measurement) string {
	if m.Model == "" {
		return m.Name
	}
	return m.Model + "/" + m.Name
}

func orUnnamed(name string) string {
	if name == "" {
		return "a metric without a name"
	}
	return name
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

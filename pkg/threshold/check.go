package threshold

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"assay/pkg/metric"
	"assay/pkg/phrase"
)

// maxShown is how many bytes of a number are shown that is shown as it was written.
const maxShown = 60

// The codes of a Violation. They are reason codes of a verdict.
const (
	CodeThreshold  = "THRESHOLD"           // a value does not satisfy a bound
	CodeAbsent     = metric.CodeAbsent     // nothing reported the metric
	CodeNotANumber = metric.CodeNotANumber // what was reported is no finite number
)

// Cause says where the reason of a violation lies.
type Cause string

// The causes of a violation.
const (
	CauseMeasurement Cause = "measurement" // a value was measured, and it is not what it has to be
	CauseEvidence    Cause = "evidence"    // there is no value to compare: absent, n/a, or no number
	CauseAuthoring   Cause = "authoring"   // the threshold itself cannot be satisfied
)

// Violation is one measurement that does not satisfy a bound, or the lack of any
// measurement that could.
type Violation struct {
	Code    string   `json:"code"`
	Subject string   `json:"subject"` // the metric, as "name" or "model/name"
	Message string   `json:"message"`
	Cause   Cause    `json:"cause"`
	Metric  string   `json:"metric"`         // as the threshold names it
	Value   *float64 `json:"value"`          // finite; nil: there is none
	Text    string   `json:"text,omitempty"` // what was reported, as it was written, when that is known
	Bound   string   `json:"bound"`          // what it has to be: "min 100", or what else is asked for
	Unit    string   `json:"unit,omitempty"` // of value and bound
	Note    string   `json:"note,omitempty"` // of the threshold
	Rank    *int     `json:"rank,omitempty"` // whose value it is; nil: of no single rank, or of the only one
	Node    string   `json:"node,omitempty"` // where that rank ran, when that is known
}

// By names the rank whose value violates; nil names none.
func (v *Violation) By(o *metric.Origin) {
	if o != nil {
		v.Rank, v.Node = &o.Rank, o.Node
	}
}

// NotEvaluated is a threshold that was not applied to a metric, since that was
// reported as n/a and the threshold allows it. It was not satisfied either.
type NotEvaluated struct {
	Metric  string `json:"metric"` // as "name" or "model/name"
	Bound   string `json:"bound"`
	Message string `json:"message"`
	Unit    string `json:"unit,omitempty"`
	Note    string `json:"note,omitempty"`
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

// Check compares every measurement that t gates with each of its bounds, exactly, as
// 64-bit floating-point numbers; a whole number, or one close to 0, that is none of
// these counts as it was written. NaN and infinities satisfy nothing, neither do words
// or absence. "n/a" satisfies only a threshold that is required_if_measurable.
// A malformed threshold is satisfied by nothing.
func Check(t Threshold, ms []metric.Measurement) []Violation {
	if faults := Malformed(t); len(faults) > 0 {
		v := t.violation(CodeThreshold, CauseAuthoring, t.Metric)
		v.Message = fmt.Sprintf("the threshold on %s cannot be satisfied: %s", orUnnamed(t.Metric), faults[0].Message)
		return []Violation{v}
	}
	var out []Violation
	found := false
	for _, m := range ms {
		if t.Matches(m) {
			found = true
			out = append(out, t.refusals(m)...)
		}
	}
	if !found {
		v := t.violation(CodeAbsent, CauseEvidence, t.Metric)
		v.Message = fmt.Sprintf("%s was not reported, and has to be %s%s", t.Metric, t.Bounds(), t.note())
		out = append(out, v)
	}
	return out
}

// Relaxed lists the measurements that t gates and is not applied to, because they
// cannot be measured here.
func Relaxed(t Threshold, ms []metric.Measurement) []NotEvaluated {
	if len(Malformed(t)) > 0 || !t.RequiredIfMeasurable {
		return nil
	}
	var out []NotEvaluated
	for _, m := range ms {
		if t.Matches(m) && m.NotApplicable {
			out = append(out, NotEvaluated{
				Metric: title(m), Bound: t.Spelled(), Unit: m.Unit, Note: t.Note,
				Message: fmt.Sprintf("%s was reported as n/a%s, and would have to be %s%s", title(m), on(m), t.Bounds(), t.note()),
			})
		}
	}
	return out
}

// violation is a violation of t as a whole, without a message.
func (t Threshold) violation(code string, cause Cause, subject string) Violation {
	return Violation{Code: code, Subject: subject, Cause: cause, Metric: t.Metric, Bound: t.Spelled(), Note: t.Note}
}

// refusals lists the bounds that m does not satisfy; none when it satisfies t.
func (t Threshold) refusals(m metric.Measurement) []Violation {
	name := title(m)
	whole := func(code string, cause Cause, why string) []Violation {
		v := t.violation(code, cause, name)
		v.Message, v.Text, v.Unit = name+" "+why+t.note(), m.Text, m.Unit
		v.By(m.From)
		return []Violation{v}
	}
	switch {
	case m.NotApplicable && t.RequiredIfMeasurable:
		return nil
	case m.NotApplicable:
		return whole(CodeThreshold, CauseEvidence, "was reported as n/a"+on(m)+", and has to be "+t.Bounds())
	case m.Label && otherUnit(m) != "":
		return whole(CodeNotANumber, CauseEvidence, fmt.Sprintf("is %s%s, %s, and numbers are not converted; it has to be %s", strconv.Quote(m.Text), on(m), otherUnit(m), t.Bounds()))
	case m.Label:
		return whole(CodeNotANumber, CauseEvidence, fmt.Sprintf("is %s%s, which is no number, and has to be %s", strconv.Quote(m.Text), on(m), t.Bounds()))
	}
	value, off := "is "+number(m.Value), metric.Rounded(m.Text, m.Value)
	if off != 0 {
		value = "is " + phrase.Clip(m.Text, maxShown)
	}
	if m.Unit != "" {
		value += " " + m.Unit
	}
	value += on(m)
	if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
		return whole(CodeNotANumber, CauseEvidence, value+", which is no finite number, and has to be "+t.Bounds())
	}
	var out []Violation
	for _, b := range t.bounds() {
		if why := b.refuses(m.Value, off); why != "" {
			v := whole(CodeThreshold, CauseMeasurement, value+", "+why)[0]
			v.Value, v.Bound = &m.Value, b.String()
			out = append(out, v)
		}
	}
	return out
}

// refuses says why v does not satisfy a bound, as the rest of a sentence; empty when
// it does. Off says where what was measured lies of v, the float64 nearest to it: what
// is below or above a bound that is a float64 itself can only be as close as that.
func (b bound) refuses(v float64, off int) string {
	limit := *b.value
	side := cmp.Compare(v, limit)
	if side == 0 {
		side = off
	}
	switch {
	case b.name == boundMin && side < 0:
		return "below the minimum of " + number(limit)
	case b.name == boundMax && side > 0:
		return "above the maximum of " + number(limit)
	case b.name == boundEqual && side != 0:
		return "not equal to " + number(limit)
	case b.name == boundNotEqual && side == 0:
		return "which it must not be"
	}
	return ""
}

// String spells a bound as it is declared: "min 100".
func (b bound) String() string { return b.name + " " + number(*b.value) }

// Spelled spells the bounds of t as they are declared: "min 100, max 200".
func (t Threshold) Spelled() string {
	var parts []string
	for _, b := range t.bounds() {
		parts = append(parts, b.String())
	}
	return strings.Join(parts, ", ")
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

// otherUnit says that the number of a label is in another unit than its metric.
func otherUnit(m metric.Measurement) string {
	unit, ok := metric.OtherUnit(m.Text, m.Unit)
	switch {
	case !ok:
		return ""
	case m.Unit == "":
		return fmt.Sprintf("whose unit %s is not declared", unit)
	}
	return fmt.Sprintf("whose unit %s is not that of the metric (%s)", unit, m.Unit)
}

func title(m metric.Measurement) string {
	if m.Model == "" {
		return m.Name
	}
	return m.Model + "/" + m.Name
}

// on says which rank of several reported m: " on rank 2 (node3)".
func on(m metric.Measurement) string {
	if m.From == nil {
		return ""
	}
	return " on " + m.From.String()
}

func orUnnamed(name string) string {
	if name == "" {
		return "a metric without a name"
	}
	return name
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

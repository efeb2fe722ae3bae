package threshold

import (
	"fmt"
	"math"
	"math/big"

	"assay/pkg/metric"
	"assay/pkg/phrase"
)

// The codes of a Fault.
const (
	CodeNoMetric  = "THRESHOLD_NO_METRIC"  // it names no metric
	CodeNoBound   = "THRESHOLD_NO_BOUND"   // it would pass everything
	CodeNotFinite = "THRESHOLD_NOT_FINITE" // a bound is NaN or infinite
	CodeInexact   = "THRESHOLD_INEXACT"    // a bound is compared as another number than is written
	CodeEmpty     = "THRESHOLD_EMPTY"      // no value satisfies it
	CodeEquality  = "THRESHOLD_EQUALITY"   // unsound: equality of a measured quantity
	CodeGoodSide  = "THRESHOLD_GOOD_SIDE"  // unsound: the bad side has no bound
	CodeEvidence  = "THRESHOLD_EVIDENCE"   // unsound: the metric is no number to judge by
)

// Fault is one thing that is wrong, or likely wrong, with a threshold itself.
type Fault struct {
	Code    string
	Bound   string // min, max, equal or not_equal; empty when it is about all of it
	Message string // malformed: what follows "cannot be satisfied: "; unsound: a sentence
}

// The names of the bounds.
const (
	boundMin      = "min"
	boundMax      = "max"
	boundEqual    = "equal"
	boundNotEqual = "not_equal"
)

// bound is one of the bounds of a threshold under its name.
type bound struct {
	name  string
	value *float64
}

func (t Threshold) bounds() []bound {
	var all []bound
	for _, b := range []bound{{boundMin, t.Min}, {boundMax, t.Max}, {boundEqual, t.Equal}, {boundNotEqual, t.NotEqual}} {
		if b.value != nil {
			all = append(all, b)
		}
	}
	return all
}

// Malformed says what makes t malformed: no metric, no bound, a bound that is no
// finite number, or bounds that no value satisfies.
func Malformed(t Threshold) []Fault {
	var out []Fault
	add := func(code, bound, format string, args ...any) {
		out = append(out, Fault{code, bound, fmt.Sprintf(format, args...)})
	}
	if t.Metric == "" {
		add(CodeNoMetric, "", "it names no metric")
	}
	bounds := t.bounds()
	if len(bounds) == 0 {
		add(CodeNoBound, "", "it has no bound; give min, max, equal or not_equal")
	}
	finite := true
	for _, b := range bounds {
		if math.IsNaN(*b.value) || math.IsInf(*b.value, 0) {
			finite = false
			add(CodeNotFinite, b.name, "its bound %s is %v, which is not a finite number", b.name, *b.value)
		}
	}
	if why := t.contradiction(); why != "" && finite {
		add(CodeEmpty, "", "%s", why)
	}
	return out
}

// Inexact says that a bound cannot be compared as it was written, since it is a whole
// number, or one close to 0, that is no 64-bit floating-point number; nil when it can.
// Written is its decimal text, and v the number that was read of it.
func Inexact(name, written string, v float64) *Fault {
	if metric.Rounded(written, v) == 0 {
		return nil
	}
	return &Fault{CodeInexact, name, fmt.Sprintf("its bound %s is %s, which would be compared as %s: no 64-bit floating-point number is equal to it",
		name, phrase.Clip(written, maxShown), phrase.Clip(new(big.Float).SetFloat64(v).Text('f', 0), maxShown))}
}

// contradiction says why the bounds exclude each other, or "".
func (t Threshold) contradiction() string {
	switch {
	case t.Min != nil && t.Max != nil && *t.Min > *t.Max:
		return fmt.Sprintf("min %s is greater than max %s", number(*t.Min), number(*t.Max))
	case t.Equal != nil && t.Min != nil && *t.Equal < *t.Min, t.Equal != nil && t.Max != nil && *t.Equal > *t.Max:
		return fmt.Sprintf("equal %s lies outside min and max", number(*t.Equal))
	case t.NotEqual != nil && t.excludesAll():
		return fmt.Sprintf("not_equal %s excludes the only value that the other bounds allow", number(*t.NotEqual))
	}
	return ""
}

// excludesAll reports whether not_equal takes away the last value left.
func (t Threshold) excludesAll() bool {
	if t.Equal != nil {
		return *t.Equal == *t.NotEqual
	}
	return t.Min != nil && t.Max != nil && *t.Min == *t.Max && *t.Min == *t.NotEqual
}

// Unsound says what about t is allowed and likely wrong: a gate on a metric that is
// declared to be evidence only, equality on a metric that has a dimension or with a
// number that is not whole, or only a bound on the side that is good. Spec is the
// metric as it is declared; the zero Spec when it is not.
func Unsound(t Threshold, spec metric.Spec) []Fault {
	var out []Fault
	if spec.Evidence {
		out = append(out, Fault{CodeEvidence, "", fmt.Sprintf("the threshold is on %s, which is declared to be evidence: it is there to be read, and no number to judge by", t.Metric)})
	}
	if why, b := t.inexact(spec); why != "" {
		out = append(out, Fault{CodeEquality, b.name, fmt.Sprintf("the threshold on %s asks for equality, and %s; use min and max", t.Metric, why)})
	}
	onlyMin := t.Min != nil && t.Max == nil && t.Equal == nil
	onlyMax := t.Max != nil && t.Min == nil && t.Equal == nil
	if spec.Better == "lower" && onlyMin || spec.Better == "higher" && onlyMax {
		side := boundMin
		if onlyMax {
			side = boundMax
		}
		out = append(out, Fault{CodeGoodSide, side, fmt.Sprintf("the threshold on %s bounds only the side that is good: %s is better", t.Metric, spec.Better)})
	}
	return out
}

// inexact says why equality will hardly ever hold, and of which bound; empty when it
// may.
func (t Threshold) inexact(spec metric.Spec) (why string, of bound) {
	_, dimensional := metric.UnitOf(t.Metric)
	for _, b := range t.bounds() {
		switch {
		case b.name != boundEqual && b.name != boundNotEqual:
		case dimensional || spec.Unit != "":
			return "a measured value that has a unit is hardly ever equal to anything", b
		case math.Abs(*b.value-math.Trunc(*b.value)) > 0:
			return number(*b.value) + " is no whole number, which a count would be", b
		}
	}
	return "", bound{}
}

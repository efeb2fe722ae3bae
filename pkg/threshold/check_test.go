package threshold

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/metric"
)

func at(v float64) *float64 { return &v }

func value(name string, v float64) metric.Measurement {
	return metric.Measurement{Name: name, Value: v, Source: metric.SourceKeyValue}
}

func TestBoundaries(t *testing.T) {
	next := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	prev := func(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
	tests := []struct {
		name      string
		threshold Threshold
		value     float64
		ok        bool
	}{
		{"min at", Threshold{Min: at(0.1)}, 0.1, true},
		{"min just below", Threshold{Min: at(0.1)}, prev(0.1), false},
		{"max at", Threshold{Max: at(0.1)}, 0.1, true},
		{"max just above", Threshold{Max: at(0.1)}, next(0.1), false},
		{"equal", Threshold{Equal: at(0.3)}, 0.3, true},
		{"equal is exact", Threshold{Equal: at(0.3)}, sum(0.1, 0.2), false},
		{"not equal at", Threshold{NotEqual: at(7)}, 7, false},
		{"not equal beside", Threshold{NotEqual: at(7)}, next(7), true},
		{"negative zero is zero", Threshold{Min: at(0), Equal: at(0)}, math.Copysign(0, -1), true},
		{"zero is above negative zero", Threshold{Max: at(math.Copysign(0, -1))}, 0, true},
		{"large integers", Threshold{Equal: at(9007199254740991)}, 9007199254740991, true},
		{"large integers beside", Threshold{Equal: at(9007199254740991)}, 9007199254740990, false},
		{"smallest", Threshold{Min: at(math.SmallestNonzeroFloat64)}, 0, false},
		{"largest", Threshold{Max: at(math.MaxFloat64)}, math.MaxFloat64, true},
		{"NaN and min", Threshold{Min: at(0)}, math.NaN(), false},
		{"NaN and max", Threshold{Max: at(0)}, math.NaN(), false},
		{"NaN and not equal", Threshold{NotEqual: at(0)}, math.NaN(), false},
		{"infinity and min", Threshold{Min: at(0)}, math.Inf(1), false},
		{"infinity and max", Threshold{Max: at(0)}, math.Inf(-1), false},
		{"infinity and not equal", Threshold{NotEqual: at(0)}, math.Inf(1), false},
		{"range inside", Threshold{Min: at(1), Max: at(2)}, 1.5, true},
		{"range outside", Threshold{Min: at(1), Max: at(2)}, 2.5, false},
		{"no bound", Threshold{}, 1, false},
		{"bound is NaN", Threshold{Min: at(math.NaN())}, 1, false},
		{"bound is infinite", Threshold{Max: at(math.Inf(1))}, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.threshold.Metric = "x"
			got := Check(tt.threshold, []metric.Measurement{value("x", tt.value)})
			if ok := len(got) == 0; ok != tt.ok {
				t.Errorf("satisfied: %v, want %v (%+v)", ok, tt.ok, got)
			}
		})
	}
}

// sum hides the addition from the compiler, which would do it exactly.
func sum(a, b float64) float64 { return a + b }

func TestMatches(t *testing.T) {
	results := metric.Measurement{Name: "tok/s", Model: "llama", Source: metric.SourceResults}
	line := metric.Measurement{Name: "tok/s", Source: metric.SourcePerformance}
	pair := metric.Measurement{Name: "tok/s", Source: metric.SourceKeyValue}
	tests := []struct {
		gate string
		m    metric.Measurement
		want bool
	}{
		{"tok/s", results, true},
		{"tok/s", line, true},
		{"tok/s", pair, true},
		{"performance", results, true},
		{"performance", line, true},
		{"performance", pair, false},
		{"llama/performance", results, true},
		{"llama/performance", line, false},
		{"llama/tok/s", results, true},
		{"gpt/performance", results, false},
		{"/performance", line, false},
		{"llama", results, false},
		{"TOK/S", line, false},
	}
	for _, tt := range tests {
		if got := (Threshold{Metric: tt.gate}).Matches(tt.m); got != tt.want {
			t.Errorf("%s gates %+v: %v", tt.gate, tt.m, got)
		}
	}
}

func TestMessages(t *testing.T) {
	tests := []struct {
		name      string
		threshold Threshold
		ms        []metric.Measurement
		want      []Violation
	}{
		{
			"below",
			Threshold{Metric: "bwGbps", Min: at(100), Note: "spec sheet"},
			[]metric.Measurement{{Name: "bwGbps", Value: 12.5, Unit: "Gbit/s"}},
			[]Violation{{CodeThreshold, "bwGbps", "bwGbps is 12.5 Gbit/s, below the minimum of 100 (spec sheet)"}},
		},
		{
			"above",
			Threshold{Metric: "latUs", Max: at(1e-7)},
			[]metric.Measurement{value("latUs", 2)},
			[]Violation{{CodeThreshold, "latUs", "latUs is 2, above the maximum of 1e-07"}},
		},
		{"equal", Threshold{Metric: "n", Equal: at(8)}, []metric.Measurement{value("n", 7)}, []Violation{{CodeThreshold, "n", "n is 7, not equal to 8"}}},
		{"not equal", Threshold{Metric: "n", NotEqual: at(0)}, []metric.Measurement{value("n", 0)}, []Violation{{CodeThreshold, "n", "n is 0, which it must not be"}}},
		{"absent", Threshold{Metric: "n", Min: at(1), Max: at(2)}, nil, []Violation{{CodeAbsent, "n", "n was not reported, and has to be at least 1 and at most 2"}}},
		{"absent is not n/a", Threshold{Metric: "n", Min: at(1), RequiredIfMeasurable: true}, nil, []Violation{{CodeAbsent, "n", "n was not reported, and has to be at least 1"}}},
		{"n/a", Threshold{Metric: "n", NotEqual: at(1)}, []metric.Measurement{{Name: "n", NotApplicable: true}}, []Violation{{CodeThreshold, "n", "n was reported as n/a, and has to be other than 1"}}},
		{"n/a relaxed", Threshold{Metric: "n", Min: at(1), RequiredIfMeasurable: true}, []metric.Measurement{{Name: "n", NotApplicable: true}}, nil},
		{
			"required_if_measurable still gates numbers",
			Threshold{Metric: "n", Min: at(1), RequiredIfMeasurable: true},
			[]metric.Measurement{value("n", 0)},
			[]Violation{{CodeThreshold, "n", "n is 0, below the minimum of 1"}},
		},
		{
			"each model",
			Threshold{Metric: "performance", Min: at(10)},
			[]metric.Measurement{
				{Name: "tps", Model: "a", Value: 9, Source: metric.SourceResults}, {Name: "tps", Model: "b", Value: 10, Source: metric.SourceResults},
			},
			[]Violation{{CodeThreshold, "a/tps", "a/tps is 9, below the minimum of 10"}},
		},
		{
			"malformed",
			Threshold{Metric: "n"},
			[]metric.Measurement{value("n", 0)},
			[]Violation{{CodeThreshold, "n", "the threshold on n cannot be satisfied: it has no bound; give min, max, equal or not_equal"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Check(tt.threshold, tt.ms)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		threshold Threshold
		want      string // codes with their bounds
		message   string // part of the first message
	}{
		{Threshold{Metric: "x", Min: at(1)}, "", ""},
		{Threshold{Metric: "x", Min: at(1), Max: at(1)}, "", ""},
		{Threshold{Metric: "x", Equal: at(1), Min: at(1), Max: at(1)}, "", ""},
		{Threshold{Min: at(1)}, "THRESHOLD_NO_METRIC", "names no metric"},
		{Threshold{Metric: "x"}, "THRESHOLD_NO_BOUND", "no bound"},
		{Threshold{}, "THRESHOLD_NO_METRIC THRESHOLD_NO_BOUND", "names no metric"},
		{Threshold{Metric: "x", Min: at(math.NaN())}, "THRESHOLD_NOT_FINITE:min", "its bound min is NaN"},
		{Threshold{Metric: "x", Max: at(1), NotEqual: at(math.Inf(-1))}, "THRESHOLD_NOT_FINITE:not_equal", "not a finite number"},
		{Threshold{Metric: "x", Min: at(math.Inf(1)), Max: at(math.NaN())}, "THRESHOLD_NOT_FINITE:min THRESHOLD_NOT_FINITE:max", "not a finite number"},
		{Threshold{Metric: "x", Min: at(2), Max: at(1)}, "THRESHOLD_EMPTY", "min 2 is greater than max 1"},
		{Threshold{Metric: "x", Min: at(2), Equal: at(1)}, "THRESHOLD_EMPTY", "outside"},
		{Threshold{Metric: "x", Max: at(0), Equal: at(1)}, "THRESHOLD_EMPTY", "outside"},
		{Threshold{Metric: "x", NotEqual: at(1), Equal: at(1)}, "THRESHOLD_EMPTY", "excludes the only value"},
		{Threshold{Metric: "x", NotEqual: at(1), Min: at(1), Max: at(1)}, "THRESHOLD_EMPTY", "excludes the only value"},
	} {
		faults := Malformed(tt.threshold)
		if got := codes(faults); got != tt.want || got != "" && !strings.Contains(faults[0].Message, tt.message) {
			t.Errorf("%+v: %+v, want %s, %q", tt.threshold, faults, tt.want, tt.message)
		}
	}
}

func codes(faults []Fault) string {
	var all []string
	for _, f := range faults {
		all = append(all, strings.TrimSuffix(f.Code+":"+f.Bound, ":"))
	}
	return strings.Join(all, " ")
}

func TestUnsound(t *testing.T) {
	for _, tt := range []struct {
		threshold Threshold
		spec      metric.Spec
		want      string
	}{
		{Threshold{Metric: "bwGbps", Equal: at(1)}, metric.Spec{}, "THRESHOLD_EQUALITY:equal"},
		{Threshold{Metric: "bwTbps", Equal: at(1), NotEqual: at(2)}, metric.Spec{}, "THRESHOLD_EQUALITY:equal"},
		{Threshold{Metric: "errors", Equal: at(0)}, metric.Spec{}, ""},
		{Threshold{Metric: "errors", NotEqual: at(0)}, metric.Spec{Unit: "mm"}, "THRESHOLD_EQUALITY:not_equal"},
		{Threshold{Metric: "latUs", Min: at(1)}, metric.Spec{Better: "lower"}, "THRESHOLD_GOOD_SIDE:min"},
		{Threshold{Metric: "latUs", Max: at(1)}, metric.Spec{Better: "lower"}, ""},
		{Threshold{Metric: "bwGbps", Max: at(1)}, metric.Spec{Better: "higher"}, "THRESHOLD_GOOD_SIDE:max"},
	} {
		if got := codes(Unsound(tt.threshold, tt.spec)); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.threshold, got, tt.want)
		}
	}
}

// A value satisfies a range exactly when it is not less than min and not more
// than max, at and beside the bounds too.
func TestBoundsAreExact(t *testing.T) {
	finite := rapid.Float64().Filter(func(f float64) bool { return f-f == 0 })
	rapid.Check(t, func(t *rapid.T) {
		bound := finite.Draw(t, "bound")
		v := bound
		switch rapid.IntRange(0, 3).Draw(t, "where") {
		case 1:
			v = math.Nextafter(bound, math.Inf(1))
		case 2:
			v = math.Nextafter(bound, math.Inf(-1))
		case 3:
			v = finite.Draw(t, "value")
		}
		ms := []metric.Measurement{value("x", v)}
		usable := v-v == 0
		for _, c := range []struct {
			threshold Threshold
			want      bool
		}{
			{Threshold{Metric: "x", Min: &bound}, usable && v >= bound},
			{Threshold{Metric: "x", Max: &bound}, usable && v <= bound},
			{Threshold{Metric: "x", Equal: &bound}, usable && v == bound},
			{Threshold{Metric: "x", NotEqual: &bound}, usable && v != bound},
		} {
			if got := len(Check(c.threshold, ms)) == 0; got != c.want {
				t.Fatalf("%+v with %v: satisfied %v, want %v", c.threshold, v, got, c.want)
			}
		}
	})
}

// Nothing but a finite number, or a relaxed n/a, satisfies a threshold.
func TestAbsenceNeverSatisfies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.Float64Range(-1e9, 1e9)
		th := Threshold{Metric: "x", RequiredIfMeasurable: rapid.Bool().Draw(t, "relaxed")}
		for _, p := range []**float64{&th.Min, &th.Max, &th.Equal, &th.NotEqual} {
			if rapid.Bool().Draw(t, "set") {
				*p = at(bound.Draw(t, "bound"))
			}
		}
		if len(Check(th, nil)) == 0 || len(Check(th, []metric.Measurement{value("y", 1)})) == 0 {
			t.Fatal("absence satisfies")
		}
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if len(Check(th, []metric.Measurement{value("x", v)})) == 0 {
				t.Fatalf("%v satisfies %+v", v, th)
			}
		}
	})
}

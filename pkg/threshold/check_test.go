package threshold

import (
	"math"
	"strconv"
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
		{"2^53", Threshold{Min: at(1 << 53)}, 1 << 53, true},
		{"2^53 - 1", Threshold{Min: at(1 << 53)}, 1<<53 - 1, false},
		{"2^53 + 1 is 2^53", Threshold{Equal: at(1<<53 + 1)}, 1 << 53, true},
		{"2^53 + 2", Threshold{Max: at(1 << 53)}, 1<<53 + 2, false},
		{"1e308", Threshold{Min: at(1e308), Max: at(1e308)}, 1e308, true},
		{"beside 1e308", Threshold{Max: at(1e308)}, next(1e308), false},
		{"-1e308", Threshold{Min: at(-1e308)}, prev(-1e308), false},
		{"negative zero equals zero", Threshold{NotEqual: at(0)}, math.Copysign(0, -1), false},
		{"zero is no less than negative zero", Threshold{Min: at(math.Copysign(0, -1))}, 0, true},
		{"NaN and equal", Threshold{Equal: at(0)}, math.NaN(), false},
		{"infinity and equal", Threshold{Equal: at(math.MaxFloat64)}, math.Inf(1), false},
		{"below not equal", Threshold{NotEqual: at(7)}, prev(7), true},
		{"above equal", Threshold{Equal: at(7)}, next(7), false},
		{"below equal", Threshold{Equal: at(7)}, prev(7), false},
		{"range at min", Threshold{Min: at(1), Max: at(2)}, 1, true},
		{"range at max", Threshold{Min: at(1), Max: at(2)}, 2, true},
		{"range below", Threshold{Min: at(1), Max: at(2)}, prev(1), false},
		{"a hole in a range", Threshold{Min: at(1), Max: at(2), NotEqual: at(1.5)}, 1.5, false},
		{"beside a hole in a range", Threshold{Min: at(1), Max: at(2), NotEqual: at(1.5)}, next(1.5), true},
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

// told spells a violation with everything that it says.
func told(vs []Violation) []string {
	var out []string
	for _, v := range vs {
		text := v.Code + " " + v.Subject + ": " + v.Message + " | " + string(v.Cause) + ", " + v.Metric + " [" + v.Bound + "]"
		if v.Value != nil {
			text += " value " + number(*v.Value)
		}
		for _, part := range []string{v.Text, v.Unit, v.Note} {
			if part != "" {
				text += " (" + part + ")"
			}
		}
		if v.Rank != nil {
			text += " by " + strconv.Itoa(*v.Rank) + v.Node
		}
		out = append(out, text)
	}
	return out
}

func TestMessages(t *testing.T) {
	tests := []struct {
		name      string
		threshold Threshold
		ms        []metric.Measurement
		want      []string
	}{
		{
			"below",
			Threshold{Metric: "bwGbps", Min: at(100), Note: "spec sheet"},
			[]metric.Measurement{{Name: "bwGbps", Value: 12.5, Text: "12.50", Unit: "Gbit/s"}},
			[]string{"THRESHOLD bwGbps: bwGbps is 12.5 Gbit/s, below the minimum of 100 (spec sheet) | measurement, bwGbps [min 100] value 12.5 (12.50) (Gbit/s) (spec sheet)"},
		},
		{
			"above",
			Threshold{Metric: "latUs", Max: at(1e-7)},
			[]metric.Measurement{value("latUs", 2)},
			[]string{"THRESHOLD latUs: latUs is 2, above the maximum of 1e-07 | measurement, latUs [max 1e-07] value 2"},
		},
		{
			"a band names the bound that is violated",
			Threshold{Metric: "tempC", Min: at(10), Max: at(90)},
			[]metric.Measurement{value("tempC", 95)},
			[]string{"THRESHOLD tempC: tempC is 95, above the maximum of 90 | measurement, tempC [max 90] value 95"},
		},
		{
			"every bound that is violated",
			Threshold{Metric: "n", Min: at(3), Equal: at(5)},
			[]metric.Measurement{value("n", 1)},
			[]string{
				"THRESHOLD n: n is 1, below the minimum of 3 | measurement, n [min 3] value 1",
				"THRESHOLD n: n is 1, not equal to 5 | measurement, n [equal 5] value 1",
			},
		},
		{"equal", Threshold{Metric: "n", Equal: at(8)}, []metric.Measurement{value("n", 7)}, []string{"THRESHOLD n: n is 7, not equal to 8 | measurement, n [equal 8] value 7"}},
		{"not equal", Threshold{Metric: "n", NotEqual: at(0)}, []metric.Measurement{value("n", 0)}, []string{"THRESHOLD n: n is 0, which it must not be | measurement, n [not_equal 0] value 0"}},
		{"absent", Threshold{Metric: "n", Min: at(1), Max: at(2)}, nil, []string{"METRIC_ABSENT n: n was not reported, and has to be at least 1 and at most 2 | evidence, n [min 1, max 2]"}},
		{"absent is not n/a", Threshold{Metric: "n", Min: at(1), RequiredIfMeasurable: true}, nil, []string{"METRIC_ABSENT n: n was not reported, and has to be at least 1 | evidence, n [min 1]"}},
		{
			"n/a",
			Threshold{Metric: "n", NotEqual: at(1)},
			[]metric.Measurement{{Name: "n", Text: "N/A", NotApplicable: true}},
			[]string{"THRESHOLD n: n was reported as n/a, and has to be other than 1 | evidence, n [not_equal 1] (N/A)"},
		},
		{"n/a relaxed", Threshold{Metric: "n", Min: at(1), RequiredIfMeasurable: true}, []metric.Measurement{{Name: "n", NotApplicable: true}}, nil},
		{
			"a word",
			Threshold{Metric: "n", NotEqual: at(1), RequiredIfMeasurable: true},
			[]metric.Measurement{{Name: "n", Text: "unknown", Label: true}},
			[]string{`METRIC_NOT_A_NUMBER n: n is "unknown", which is no number, and has to be other than 1 | evidence, n [not_equal 1] (unknown)`},
		},
		{
			"NaN",
			Threshold{Metric: "n", NotEqual: at(1)},
			[]metric.Measurement{value("n", math.NaN())},
			[]string{"METRIC_NOT_A_NUMBER n: n is NaN, which is no finite number, and has to be other than 1 | evidence, n [not_equal 1]"},
		},
		{
			"infinity",
			Threshold{Metric: "n", Min: at(1)},
			[]metric.Measurement{value("n", math.Inf(1))},
			[]string{"METRIC_NOT_A_NUMBER n: n is +Inf, which is no finite number, and has to be at least 1 | evidence, n [min 1]"},
		},
		{
			"required_if_measurable still gates numbers",
			Threshold{Metric: "n", Min: at(1), RequiredIfMeasurable: true},
			[]metric.Measurement{value("n", 0)},
			[]string{"THRESHOLD n: n is 0, below the minimum of 1 | measurement, n [min 1] value 0"},
		},
		{
			"a number in another unit",
			Threshold{Metric: "latUs", Max: at(5)},
			[]metric.Measurement{{Name: "latUs", Text: "3 ms", Unit: "us", Label: true}},
			[]string{`METRIC_NOT_A_NUMBER latUs: latUs is "3 ms", whose unit ms is not that of the metric (us), and numbers are not converted; it has to be at most 5 | evidence, latUs [max 5] (3 ms) (us)`},
		},
		{
			"a number in a unit that is not declared",
			Threshold{Metric: "size", Max: at(5)},
			[]metric.Measurement{{Name: "size", Text: "3MiB", Label: true}},
			[]string{`METRIC_NOT_A_NUMBER size: size is "3MiB", whose unit MiB is not declared, and numbers are not converted; it has to be at most 5 | evidence, size [max 5] (3MiB)`},
		},
		{
			"a whole number that is no float64",
			Threshold{Metric: "n", Min: at(1 << 53), Max: at(1 << 53), Note: "exact"},
			[]metric.Measurement{{Name: "n", Value: 1 << 53, Text: "9007199254740993"}, {Name: "n", Value: 1 << 53, Text: "9007199254740992"}},
			[]string{"THRESHOLD n: n is 9007199254740993, above the maximum of 9.007199254740992e+15 (exact) | measurement, n [max 9.007199254740992e+15] value 9.007199254740992e+15 (9007199254740993) (exact)"},
		},
		{
			"each model",
			Threshold{Metric: "performance", Min: at(10)},
			[]metric.Measurement{
				{Name: "tps", Model: "a", Value: 9, Source: metric.SourceResults}, {Name: "tps", Model: "b", Value: 10, Source: metric.SourceResults},
			},
			[]string{"THRESHOLD a/tps: a/tps is 9, below the minimum of 10 | measurement, performance [min 10] value 9"},
		},
		{
			"of one rank of several",
			Threshold{Metric: "triadGBs", Min: at(10), Note: "spec sheet"},
			[]metric.Measurement{{Name: "triadGBs", Value: 3.1, Text: "3.1", Unit: "GB/s", From: &metric.Origin{Rank: 2, Node: "node3"}}},
			[]string{"THRESHOLD triadGBs: triadGBs is 3.1 GB/s on rank 2 (node3), below the minimum of 10 (spec sheet) | measurement, triadGBs [min 10] value 3.1 (3.1) (GB/s) (spec sheet) by 2node3"},
		},
		{
			"of ranks whose nodes are not known",
			Threshold{Metric: "n", Equal: at(0)},
			[]metric.Measurement{
				{Name: "n", Value: 1, From: &metric.Origin{}},
				{Name: "n", Value: math.NaN(), From: &metric.Origin{Rank: 1}},
				{Name: "n", Text: "w", Label: true, From: &metric.Origin{Rank: 2}},
				{Name: "n", NotApplicable: true, From: &metric.Origin{Rank: 3}},
			},
			[]string{
				"THRESHOLD n: n is 1 on rank 0, not equal to 0 | measurement, n [equal 0] value 1 by 0",
				"METRIC_NOT_A_NUMBER n: n is NaN on rank 1, which is no finite number, and has to be equal to 0 | evidence, n [equal 0] by 1",
				`METRIC_NOT_A_NUMBER n: n is "w" on rank 2, which is no number, and has to be equal to 0 | evidence, n [equal 0] (w) by 2`,
				"THRESHOLD n: n was reported as n/a on rank 3, and has to be equal to 0 | evidence, n [equal 0] by 3",
			},
		},
		{
			"malformed",
			Threshold{Metric: "n"},
			[]metric.Measurement{value("n", 0)},
			[]string{"THRESHOLD n: the threshold on n cannot be satisfied: it has no bound; give min, max, equal or not_equal | authoring, n []"},
		},
		{
			"malformed, without a name",
			Threshold{Min: at(1)},
			[]metric.Measurement{value("n", 0)},
			[]string{"THRESHOLD : the threshold on a metric without a name cannot be satisfied: it names no metric | authoring,  [min 1]"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, told(Check(tt.threshold, tt.ms))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A threshold that n/a relaxes is not satisfied: it is not evaluated, and that is told.
func TestRelaxed(t *testing.T) {
	na := metric.Measurement{Name: "powerW", Unit: "W", NotApplicable: true}
	onRank := na
	onRank.From = &metric.Origin{Rank: 1, Node: "b"}
	for _, tt := range []struct {
		name      string
		threshold Threshold
		ms        []metric.Measurement
		want      []NotEvaluated
	}{
		{"n/a", Threshold{Metric: "powerW", Max: at(700), RequiredIfMeasurable: true, Note: "TDP"}, []metric.Measurement{na}, []NotEvaluated{
			{"powerW", "max 700", "powerW was reported as n/a, and would have to be at most 700 (TDP)", "W", "TDP"},
		}},
		{"n/a of a rank", Threshold{Metric: "powerW", Max: at(700), RequiredIfMeasurable: true}, []metric.Measurement{onRank}, []NotEvaluated{
			{"powerW", "max 700", "powerW was reported as n/a on rank 1 (b), and would have to be at most 700", "W", ""},
		}},
		{"a number", Threshold{Metric: "powerW", Max: at(700), RequiredIfMeasurable: true}, []metric.Measurement{value("powerW", 900)}, nil},
		{"absent", Threshold{Metric: "powerW", Max: at(700), RequiredIfMeasurable: true}, nil, nil},
		{"another metric", Threshold{Metric: "tempC", Max: at(700), RequiredIfMeasurable: true}, []metric.Measurement{na}, nil},
		{"not relaxed", Threshold{Metric: "powerW", Max: at(700)}, []metric.Measurement{na}, nil},
		{"malformed", Threshold{Metric: "powerW", RequiredIfMeasurable: true}, []metric.Measurement{na}, nil},
	} {
		if diff := cmp.Diff(tt.want, Relaxed(tt.threshold, tt.ms)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
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
		{Threshold{Metric: "errors", Equal: at(0.5)}, metric.Spec{}, "THRESHOLD_EQUALITY:equal"},
		{Threshold{Metric: "errors", Min: at(0.5)}, metric.Spec{}, ""},
		{Threshold{Metric: "errors", Equal: at(-3), NotEqual: at(2.5)}, metric.Spec{}, "THRESHOLD_EQUALITY:not_equal"},
		{Threshold{Metric: "computeCap", Min: at(9)}, metric.Spec{Evidence: true}, "THRESHOLD_EVIDENCE"},
		{Threshold{Metric: "latUs", Equal: at(9)}, metric.Spec{Evidence: true}, "THRESHOLD_EVIDENCE THRESHOLD_EQUALITY:equal"},
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
		if len(Check(th, []metric.Measurement{{Name: "x", Text: "7", Label: true}})) == 0 {
			t.Fatalf("a word satisfies %+v", th)
		}
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if len(Check(th, []metric.Measurement{value("x", v)})) == 0 {
				t.Fatalf("%v satisfies %+v", v, th)
			}
		}
	})
}

// What is no 64-bit floating-point number is compared as it was written, on either side
// of a bound that is one.
func TestExactComparison(t *testing.T) {
	const whole = 1 << 53
	for _, tt := range []struct {
		text                      string
		value, bound              float64
		min, max, equal, notEqual bool // are satisfied
	}{
		{"9007199254740993", whole, whole, true, false, false, true},
		{"9007199254740995", whole + 4, whole + 4, false, true, false, true},
		{"9007199254740992", whole, whole, true, true, true, false},
		{"9007199254740995", whole + 4, whole, true, false, false, true},
		{"-9007199254740993", -whole, -whole, false, true, false, true},
		{"1e-400", 0, 0, true, false, false, true},
		{"-1e-400", 0, 0, false, true, false, true},
		{"0.30000000000000001", 0.3, 0.3, true, true, true, false},
		{"0", 0, 0, true, true, true, false},
	} {
		m := []metric.Measurement{{Name: "n", Value: tt.value, Text: tt.text}}
		got := []bool{
			len(Check(Threshold{Metric: "n", Min: &tt.bound}, m)) == 0, len(Check(Threshold{Metric: "n", Max: &tt.bound}, m)) == 0,
			len(Check(Threshold{Metric: "n", Equal: &tt.bound}, m)) == 0, len(Check(Threshold{Metric: "n", NotEqual: &tt.bound}, m)) == 0,
		}
		if diff := cmp.Diff([]bool{tt.min, tt.max, tt.equal, tt.notEqual}, got); diff != "" {
			t.Errorf("%s against %v (min, max, equal, not_equal):\n%s", tt.text, tt.bound, diff)
		}
	}
}

func TestInexact(t *testing.T) {
	for text, want := range map[string]string{
		"9007199254740993": "its bound min is 9007199254740993, which would be compared as 9007199254740992: no 64-bit floating-point number is equal to it",
		"1e-400":           "its bound min is 1e-400, which would be compared as 0: no 64-bit floating-point number is equal to it",
		"9007199254740992": "", "0.1": "", "0": "",
	} {
		v, _ := strconv.ParseFloat(text, 64)
		f := Inexact("min", text, v)
		switch {
		case want == "" && f == nil:
		case f == nil || *f != Fault{CodeInexact, "min", want}:
			t.Errorf("%s: %+v", text, f)
		}
	}
}

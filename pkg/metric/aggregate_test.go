package metric

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func on(rank int, readings ...Reading) RankReadings {
	return RankReadings{Rank: rank, Readings: readings}
}

func reading(name string, v float64, s Source) Reading {
	return Reading{Name: name, Value: v, Text: formatNumber(v), Source: s}
}

func notApplicable(name string) Reading {
	return Reading{Name: name, Text: "n/a", Source: SourceKeyValue, NotApplicable: true}
}

func describeMeasurements(ms []Measurement) []string {
	var out []string
	for _, m := range ms {
		out = append(out, describe([]Reading{{Name: m.Name, Value: m.Value, Unit: m.Unit, Model: m.Model, Source: m.Source, NotApplicable: m.NotApplicable}})...)
	}
	return out
}

func TestAggregate(t *testing.T) {
	kv := func(v float64) Reading { return reading("x", v, SourceKeyValue) }
	tests := []struct {
		name     string
		specs    []Spec
		ranks    []RankReadings
		want     []string
		problems []string
	}{
		{"rank 0 counts, order does not", nil, []RankReadings{on(1, kv(2)), on(0, kv(1))}, []string{"key_value x=1"}, []string{"METRIC_DISAGREES x differs between ranks (rank 0: 1, rank 1: 2)"}},
		{"the single reporter", nil, []RankReadings{on(0), on(1, kv(2)), on(2)}, []string{"key_value x=2"}, nil},
		{"the same everywhere", nil, []RankReadings{on(0, kv(2)), on(1, kv(2))}, []string{"key_value x=2"}, nil},
		{"without rank 0 the lowest", nil, []RankReadings{on(0), on(2, kv(3)), on(1, kv(2))}, []string{"key_value x=2"}, []string{"the measurement is what rank 1 reported"}},
		{"root", []Spec{{Name: "x", Aggregate: "root"}}, []RankReadings{on(0, kv(1)), on(1, kv(2))}, []string{"key_value x=1"}, nil},
		{"root that is silent", []Spec{{Name: "x", Aggregate: "root"}}, []RankReadings{on(0), on(1, kv(2))}, nil, []string{"METRIC_ABSENT x is what rank 0 reports, and rank 0 reported none (rank 1: 2)"}},
		{"min", []Spec{{Name: "x", Aggregate: "min"}}, []RankReadings{on(0, kv(3)), on(1, kv(-2))}, []string{"key_value x=-2"}, nil},
		{"max", []Spec{{Name: "x", Aggregate: "max"}}, []RankReadings{on(0, kv(3)), on(1, kv(-2))}, []string{"key_value x=3"}, nil},
		{"sum", []Spec{{Name: "x", Aggregate: "sum"}}, []RankReadings{on(0, kv(3)), on(1, kv(-2))}, []string{"key_value x=1"}, nil},
		{"mean", []Spec{{Name: "x", Aggregate: "mean"}}, []RankReadings{on(0, kv(3)), on(1, kv(4))}, []string{"key_value x=3.5"}, nil},
		{"agree", []Spec{{Name: "x", Aggregate: "agree"}}, []RankReadings{on(0, kv(3)), on(1, kv(3))}, []string{"key_value x=3"}, nil},
		{"agree that does not", []Spec{{Name: "x", Aggregate: "agree"}}, []RankReadings{on(0, kv(3)), on(1, kv(4))}, []string{"key_value x=3"}, []string{
			"METRIC_DISAGREES x is 3 on rank 0; it must be the same on every rank, and is not (rank 0: 3, rank 1: 4)", "METRIC_DISAGREES x is 4 on rank 1; it must be",
		}},
		{"agree but for one", []Spec{{Name: "x", Aggregate: "agree"}}, []RankReadings{on(0, kv(3)), on(1, kv(4)), on(2, kv(4))}, []string{"key_value x=3"}, []string{"x is 3 on rank 0; it must"}},
		{"agree but for n/a", []Spec{{Name: "x", Aggregate: "agree"}}, []RankReadings{on(0, kv(3)), on(1, kv(3)), on(2, notApplicable("x"))}, []string{"key_value x=3"}, []string{"x is n/a on rank 2; it must"}},
		{"two against two", []Spec{{Name: "x", Aggregate: "agree"}}, []RankReadings{on(0, kv(3)), on(1, kv(4)), on(2, kv(4)), on(3, kv(3))}, []string{"key_value x=3"}, []string{"x is 3 on rank 0;", "x is 4 on rank 1;", "x is 4 on rank 2;", "x is 3 on rank 3;"}},
		{"a silent rank is said", []Spec{{Name: "x", Aggregate: "sum"}}, []RankReadings{on(0, kv(3)), on(1)}, []string{"key_value x=3"}, []string{"METRIC_ABSENT x is the sum over 1 of 2 ranks; none came from rank 1"}},
		{"n/a is no number in a sum", []Spec{{Name: "x", Aggregate: "sum"}}, []RankReadings{on(0, kv(3)), on(1, notApplicable("x"))}, []string{"key_value x=3"}, []string{"1 of 2 ranks"}},
		{"only n/a", []Spec{{Name: "x", Aggregate: "max"}}, []RankReadings{on(0, notApplicable("x"))}, []string{"key_value x=n/a"}, nil},
		{"n/a where it is not silent", []Spec{{Name: "x", Aggregate: "max"}}, []RankReadings{on(0, notApplicable("x")), on(1)}, []string{"key_value x=n/a"}, []string{"over 1 of 2 ranks; none came from rank 1"}},
		{"n/a beside a number and silence", []Spec{{Name: "x", Aggregate: "min"}}, []RankReadings{on(0, notApplicable("x")), on(1), on(2, kv(3))}, []string{"key_value x=3"}, []string{"over 1 of 3 ranks; none came from rank 1", "over 1 of 3 ranks; n/a came from rank 0"}},
		{"measured counts before n/a", nil, []RankReadings{on(0, notApplicable("x")), on(1, kv(5)), on(2, kv(6))}, []string{"key_value x=5"}, []string{"x differs between ranks (rank 0: n/a, rank 1: 5, rank 2: 6) and no aggregate is declared; the measurement is what rank 1 reported"}},
		{"root that is n/a", []Spec{{Name: "x", Aggregate: "root"}}, []RankReadings{on(0, notApplicable("x")), on(1, kv(5))}, []string{"key_value x=n/a"}, nil},
		{"a sum that overflows", []Spec{{Name: "x", Aggregate: "sum"}}, []RankReadings{on(0, kv(math.MaxFloat64)), on(1, kv(math.MaxFloat64))}, nil, []string{"METRIC_NOT_A_NUMBER the sum of x over 2 ranks"}},
		{"NaN in the evidence", nil, []RankReadings{on(0, kv(math.NaN()))}, nil, []string{"METRIC_NOT_A_NUMBER rank 0 reported x as NaN"}},
		{"an unknown aggregate", []Spec{{Name: "x", Aggregate: "median"}}, []RankReadings{on(0, kv(1)), on(1, kv(2))}, []string{"key_value x=1"}, []string{`unknown aggregate "median"`}},
		{
			"precedence of sources", nil,
			[]RankReadings{on(0, reading("x", 1, SourceKeyValue), reading("x", 2, SourceMetricsJSON), reading("x", 3, SourcePerformance))},
			[]string{"performance x=3"},
			[]string{"rank 0 reported x as 2 (metrics.json) and as 1 (key_value)", "rank 0 reported x as 3 (performance) and as 2 (metrics.json)"},
		},
		{
			"precedence in the other order", nil,
			[]RankReadings{on(0, reading("x", 3, SourcePerformance), reading("x", 1, SourceKeyValue))},
			[]string{"performance x=3"},
			[]string{"rank 0 reported x as 3 (performance) and as 1 (key_value)"},
		},
		{"sources that agree", nil, []RankReadings{on(0, reading("x", 3, SourcePerformance), reading("x", 3, SourceKeyValue))}, []string{"performance x=3"}, nil},
		{
			"rows that repeat stay", nil,
			[]RankReadings{on(0, Reading{Name: "t", Model: "m", Value: 1, Source: SourceResults}, Reading{Name: "t", Model: "m", Value: 2, Source: SourceResults})},
			[]string{"multiple_results m/t=1", "multiple_results m/t=2"},
			nil,
		},
		{
			"a spec named performance",
			[]Spec{{Name: "performance", Aggregate: "max", Unit: "tok/s"}},
			[]RankReadings{on(0, reading("t", 1, SourcePerformance)), on(1, reading("t", 2, SourcePerformance))},
			[]string{"performance t=2 tok/s"},
			nil,
		},
		{
			"units",
			[]Spec{{Name: "x", Unit: "GB/s"}},
			[]RankReadings{on(0, Reading{Name: "x", Value: 1, Unit: "tokens/s", Source: SourceKeyValue}, reading("timeMs", 2, SourceKeyValue), Reading{Name: "z", Value: 3, Unit: "/s", Source: SourcePerformance})},
			[]string{"key_value x=1 GB/s", "key_value timeMs=2 ms", "performance z=3 /s"},
			[]string{"METRIC_DISAGREES rank 0 wrote x in tokens/s, and it is declared in GB/s; the number is taken as it stands"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ms, problems := Aggregate(tt.specs, tt.ranks)
			if diff := cmp.Diff(tt.want, describeMeasurements(ms)); diff != "" {
				t.Errorf("measurements (-want +got):\n%s", diff)
			}
			checkProblems(t, tt.problems, problems)
		})
	}
}

// Ranks may come in any order, nothing is invented, and no value is silently a
// sum: without a declaration a measurement is one of the readings.
func TestAggregateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		how := rapid.SampledFrom(append(Aggregates(), "")).Draw(t, "aggregate")
		var ranks []RankReadings
		var values []float64
		for n := range rapid.IntRange(1, 6).Draw(t, "ranks") {
			r := on(n)
			if rapid.Bool().Draw(t, "reports") {
				v := float64(rapid.IntRange(-5, 5).Draw(t, "value"))
				values = append(values, v)
				r.Readings = append(r.Readings, reading("x", v, SourceKeyValue))
			}
			ranks = append(ranks, r)
		}
		specs := []Spec{{Name: "x", Aggregate: how}}
		ms, problems := Aggregate(specs, ranks)
		again, same := Aggregate(specs, rapid.Permutation(ranks).Draw(t, "order"))
		if diff := cmp.Diff(ms, again) + cmp.Diff(problems, same); diff != "" {
			t.Fatal(diff)
		}
		if len(values) == 0 && len(ms) > 0 || len(ms) > 1 {
			t.Fatalf("%+v of %v", ms, values)
		}
		if len(ms) == 0 {
			return
		}
		v := ms[0].Value
		if v < slices.Min(values) && how != AggregateSum || v > slices.Max(values) && how != AggregateSum {
			t.Fatalf("%v is outside %v", v, values)
		}
		if how == "" && !slices.Contains(values, v) {
			t.Fatalf("%v is none of %v", v, values)
		}
		if how == "" && slices.Min(values) != slices.Max(values) && len(problems) == 0 {
			t.Fatalf("%v differ and nothing is said", values)
		}
	})
}

// A measurement is from the lowest rank that reported just that value, or from none,
// and what nothing is declared of is kept of every rank.
func TestOrigins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		how := rapid.SampledFrom(append(Aggregates(), "", "median")).Draw(t, "aggregate")
		var ranks []RankReadings
		values := map[int]float64{}
		for n := range rapid.IntRange(1, 5).Draw(t, "ranks") {
			r := RankReadings{Rank: n, Node: "node"}
			if rapid.IntRange(0, 3).Draw(t, "reports") > 0 {
				values[n] = float64(rapid.IntRange(0, 2).Draw(t, "value"))
				r.Readings = append(r.Readings, reading("x", values[n], SourceKeyValue))
			}
			ranks = append(ranks, r)
		}
		specs := []Spec{{Name: "x", Aggregate: how}}
		ms, _ := Aggregate(specs, ranks)
		each := Each(specs, rapid.Permutation(ranks).Draw(t, "order"))
		if how != "" && how != "median" {
			if diff := cmp.Diff(ms, each); diff != "" {
				t.Fatal(diff)
			}
		} else if len(each) != len(values) {
			t.Fatalf("%d of %v", len(each), values)
		}
		last := -1
		for i, m := range slices.Concat(ms, each) {
			if i == len(ms) {
				last = -1
			}
			if (how == AggregateSum || how == AggregateMean || len(ranks) == 1) && m.From != nil {
				t.Fatalf("%s of %v is from %v", how, values, m.From)
			}
			if m.From == nil {
				continue
			}
			if v, ok := values[m.From.Rank]; !ok || v != m.Value || m.From.Node != "node" || m.From.Rank <= last {
				t.Fatalf("%v is from %v of %v", m.Value, m.From, values)
			}
			last = m.From.Rank
			lowest := slices.ContainsFunc([]string{AggregateMin, AggregateMax}, func(s string) bool { return s == how })
			for n := range m.From.Rank {
				if v, ok := values[n]; ok && lowest && v == m.Value {
					t.Fatalf("%v is from %v, and rank %d reported it too", m.Value, m.From, n)
				}
			}
		}
		if len(ms) == 1 && len(ranks) > 1 && ms[0].From == nil && slices.Contains([]string{"", AggregateMin, AggregateMax, AggregateRoot}, how) {
			t.Fatalf("the %q of %v is from nobody", how, values)
		}
	})
}

func TestUnits(t *testing.T) {
	tests := []struct{ name, unit string }{
		{"busbwGbps", "Gbit/s"},
		{"triadGBs", "GB/s"},
		{"copyMBs", "MB/s"},
		{"latencyUs", "us"},
		{"stepMs", "ms"},
		{"elapsedS", "s"},
		{"gpuTempC", "°C"},
		{"powerW", "W"},
		{"utilPct", "%"},
		{"gemmTflops", "TFLOP/s"},
		{"smMHz", "MHz"},
		{"p99Us", "us"},
		{"currentA", "A"},
		{"linkTbps", "Tbit/s"},
		{"tokensPerS", "s"},
		{"power0W", "W"},
		{"linkUPS", ""},
		{"accuracy", ""},
		{"numGPUs", ""},
		{"S", ""},
		{"errors", ""},
		{"GBs", ""},
		{"ABC", ""},
		{"samples_per_second", ""},
	}
	for _, tt := range tests {
		unit, dimensional := UnitOf(tt.name)
		if unit != tt.unit || dimensional != (tt.unit != "") {
			t.Errorf("UnitOf(%q) = %q, %v; want %q", tt.name, unit, dimensional, tt.unit)
		}
	}
	seen := map[string]bool{}
	for _, s := range Suffixes() {
		if seen[s.Suffix] || s.Unit == "" || s.Help == "" {
			t.Errorf("suffix %+v", s)
		}
		seen[s.Suffix] = true
		if unit, _ := UnitOf("some" + s.Suffix); unit != s.Unit {
			t.Errorf("some%s has unit %q, want %q", s.Suffix, unit, s.Unit)
		}
	}
}

func TestSameUnit(t *testing.T) {
	for _, same := range [][2]string{{"GB/s", "GBs"}, {"%", "Pct"}, {"percent", "Pct"}, {"µs", "Us"}, {"°C", "C"}, {"TFLOPS", "Tflops"}, {"TFLOP/s", "Tflops"}, {"Gbit/s", "Gbps"}, {"seconds", "S"}, {"watts", "W"}} {
		if !SameUnit(same[0], same[1]) {
			t.Errorf("%s and %s differ: %s, %s", same[0], same[1], plainUnit(same[0]), plainUnit(same[1]))
		}
	}
	for i, a := range Suffixes() {
		if !SameUnit(a.Suffix, a.Unit) {
			t.Errorf("%s is not %s", a.Suffix, a.Unit)
		}
		for _, b := range Suffixes()[:i] {
			if SameUnit(a.Unit, b.Unit) || SameUnit(a.Suffix, b.Unit) {
				t.Errorf("%s is %s", a.Suffix, b.Suffix)
			}
		}
	}
}

func TestValidName(t *testing.T) {
	for _, name := range []string{"busbwGbps", "x", "p99Us"} {
		if err := ValidName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "Busbw", "bus_bw", "9x", "bus bw", "größe", "bus-bw"} {
		if ValidName(name) == nil {
			t.Errorf("%q is valid", name)
		}
	}
}

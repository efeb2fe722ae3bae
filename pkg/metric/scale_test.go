package metric

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// in is what a rank wrote with a unit.
func in(name, text, unit string, v float64, s Source) Reading {
	return Reading{Name: name, Value: v, Text: text, Unit: unit, Source: s}
}

func TestOtherScale(t *testing.T) {
	for _, other := range [][2]string{
		{"s", "ms"},
		{"us", "ms"},
		{"µs", "ms"},
		{"min", "s"},
		{"hours", "s"},
		{"sec", "ms"},
		{"GB/s", "MB/s"},
		{"GiB/s", "GB/s"},
		{"Gbit/s", "GB/s"},
		{"Gb/s", "GB/s"},
		{"Gbps", "GBps"},
		{"MiB", "MB"},
		{"bytes", "GB"},
		{"TFLOP/s", "GFLOPS"},
		{"kW", "W"},
		{"mV", "V"},
		{"ktokens/s", "tokens/s"},
		{"Mtok/s", "ktok/s"},
		{"GHz", "MHz"},
		{"F", "°C"},
		{"PB", "TB"},
	} {
		if !otherScale(other[0], other[1]) || !otherScale(other[1], other[0]) {
			t.Errorf("%s and %s are of one scale: %s, %s", other[0], other[1], dimension(other[0]), dimension(other[1]))
		}
	}
	for _, one := range [][2]string{
		{"GB/s", "GBps"},
		{"GByte/s", "GBs"},
		{"Gbits/s", "Gbps"},
		{"MB/sec", "MB/s"},
		{"msec", "ms"},
		{"milliseconds", "Ms"},
		{"tokens/s", "tok/s"},
		{"MB", "MB/s"},
		{"W", "°C"},
		{"A", "GB/s"},
		{"m", "s"},
		{"in", "min"},
		{"nodes", "odes/s"},
	} {
		if otherScale(one[0], one[1]) || otherScale(one[1], one[0]) {
			t.Errorf("%s and %s are of two scales of %s", one[0], one[1], dimension(one[0]))
		}
	}
}

func TestUnitsThatContradict(t *testing.T) {
	perf, kv := SourcePerformance, SourceKeyValue
	tests := []struct {
		name     string
		spec     Spec
		ranks    []RankReadings
		want     []string
		problems []string
	}{
		{"the suffix tells", Spec{Name: "latencyMs"}, []RankReadings{on(0, in("latencyMs", "0.5", "s", .5, kv))}, nil, []string{"METRIC_NOT_A_NUMBER rank 0 wrote latencyMs as 0.5 s, and its unit is ms; numbers are not converted"}},
		{"the declaration tells", Spec{Name: "x", Unit: "GB/s"}, []RankReadings{on(0, in("x", "900", "MB/s", 900, kv))}, nil, []string{"METRIC_NOT_A_NUMBER rank 0 wrote x as 900 MB/s, and its unit is GB/s"}},
		{"another spelling", Spec{Name: "busGBs"}, []RankReadings{on(0, in("busGBs", "9", "GBps", 9, kv))}, []string{"key_value busGBs=9 GBps"}, nil},
		{"another spelling of what is declared", Spec{Name: "x", Unit: "GB/s"}, []RankReadings{on(0, in("x", "9", "GBs", 9, kv))}, []string{"key_value x=9 GB/s"}, nil},
		{"declared or as the name ends", Spec{Name: "rateS", Unit: "tokens/s"}, []RankReadings{on(0, in("rateS", "9", "s", 9, kv))}, []string{"key_value rateS=9 tokens/s"}, nil},
		{"another dimension", Spec{Name: "tempC"}, []RankReadings{on(0, in("tempC", "9", "W", 9, kv))}, []string{"key_value tempC=9 W"}, []string{"METRIC_DISAGREES rank 0 wrote tempC in W, and its name ends in °C; the number is taken as it stands"}},
		{"a free name", Spec{Name: "y"}, []RankReadings{on(0, in("planA", "9", "GB/s", 9, perf))}, []string{"performance planA=9 GB/s"}, nil},
		{"a rate of anything", Spec{Name: "tokensPerS"}, []RankReadings{on(0, in("tokensPerS", "9", "tokens/s", 9, kv))}, []string{"key_value tokensPerS=9 tokens/s"}, nil},
		{"n/a has no unit", Spec{Name: "latencyMs"}, []RankReadings{on(0, Reading{Name: "latencyMs", Text: "n/a", Unit: "s", NotApplicable: true, Source: perf})}, []string{"performance latencyMs=n/a s"}, nil},
		{"a bare prefix", Spec{Name: "eccErrors"}, []RankReadings{on(0, in("eccErrors", "2", "k", 2, kv))}, nil, []string{"METRIC_NOT_A_NUMBER rank 0 wrote eccErrors as 2 k, and k alone may be a multiple or a unit; write the number out, or declare the unit"}},
		{"a prefix that is declared", Spec{Name: "temp", Unit: "K"}, []RankReadings{on(0, in("temp", "300", "K", 300, kv))}, []string{"key_value temp=300 K"}, nil},
		{"a prefix that a performance line ends in", Spec{Name: Performance, Unit: "K"}, []RankReadings{on(0, in("K", "300", "K", 300, perf))}, []string{"performance K=300 K"}, nil},
		{"a rank that does not count", Spec{Name: "latencyMs"}, []RankReadings{on(0, in("latencyMs", "5", "", 5, kv)), on(1, in("latencyMs", "5", "s", 5, kv))}, []string{"key_value latencyMs=5 ms"}, []string{"METRIC_DISAGREES rank 1 wrote latencyMs as 5 s"}},
		{"beside the root", Spec{Name: "latencyMs", Aggregate: "root"}, []RankReadings{on(0, in("latencyMs", "5", "", 5, kv)), on(1, in("latencyMs", "5", "s", 5, kv))}, []string{"key_value latencyMs=5 ms"}, []string{"METRIC_DISAGREES rank 1"}},
		{"one of those that are put together", Spec{Name: "latencyMs", Aggregate: "max"}, []RankReadings{on(0, in("latencyMs", "5", "ms", 5, kv)), on(1, in("latencyMs", "1", "s", 1, kv))}, nil, []string{"METRIC_NOT_A_NUMBER rank 1 wrote latencyMs as 1 s"}},
		{"they do not agree", Spec{Name: "latencyMs", Aggregate: "agree"}, []RankReadings{on(0, in("latencyMs", "1", "ms", 1, kv)), on(1, in("latencyMs", "1", "s", 1, kv))}, nil, []string{"METRIC_NOT_A_NUMBER rank 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ms, problems := Aggregate([]Spec{tt.spec}, tt.ranks)
			if diff := cmp.Diff(tt.want, describeMeasurements(ms)); diff != "" {
				t.Errorf("measurements (-want +got):\n%s", diff)
			}
			checkProblems(t, tt.problems, problems)
		})
	}
}

// Of values that each count alone, one in another unit is never a number.
func TestEachInItsUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ranks []RankReadings
		var numbers, first int
		units := rapid.SliceOfN(rapid.SampledFrom([]string{"", "ms", "msec", "s", "k"}), 1, 5).Draw(t, "units")
		fits := func(unit string) bool { return unit != "s" && unit != "k" }
		for i, unit := range units {
			ranks = append(ranks, on(i, in("latencyMs", "7", unit, 7, SourcePerformance)))
			if fits(unit) {
				numbers++
			}
		}
		_, problems := Aggregate(nil, ranks)
		for _, m := range Each(nil, ranks) {
			switch {
			case !m.Label:
				numbers--
			case m.Value != 0 || m.Unit != "ms" || m.Text != "7 s" && m.Text != "7 k":
				t.Fatalf("%+v", m)
			default:
				first++
			}
		}
		others := 0
		for _, unit := range units[1:] {
			if !fits(unit) {
				others++
			}
		}
		if numbers != 0 || first != others {
			t.Fatalf("%d numbers too few and %d labels of %d", numbers, first, others)
		}
		if refused := len(problems) > 0 && problems[0].Code == CodeNotANumber; refused == fits(units[0]) {
			t.Fatalf("%q: %+v", units, problems)
		}
	})
}

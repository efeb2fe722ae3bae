package verdict

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// judgeTexts judges a rank by what it printed and by the results CSV it left.
func judgeTexts(metrics []metric.Spec, gate threshold.Threshold, exit int, output, csv string) Verdict {
	x := Expectation{WorldSize: 1, MultipleResults: "r.csv", Metrics: metrics, Thresholds: []threshold.Threshold{gate}}
	r := evidence.Rank{
		State: evidence.RankEnded, Outcome: evidence.OutcomeExited, ExitCode: exit,
		Results: &evidence.Results{Declared: "r.csv", File: "r.csv", Path: "/w/r.csv"},
	}
	c := metric.NewCollector(x.Declared())
	lines := bytes.SplitAfter([]byte(output), []byte("\n"))
	for _, line := range lines[:len(lines)-1] {
		c.Line(line, "stdout")
	}
	c.Unended(lines[len(lines)-1], "stdout")
	r.Readings, r.Problems = c.Result()
	rows, _, problems := metric.ParseResults(strings.NewReader(csv), "r.csv")
	r.Readings, r.Problems = append(r.Readings, rows...), append(r.Problems, problems...)
	e := evidence.Evidence{
		Job: "j", Attempt: 1, WorldSize: 1, Launch: evidence.Launch{State: evidence.LaunchSubmitted},
		Scheduler: &evidence.Observation{Source: "local", Phase: evidence.PhaseEnded, Word: "ENDED"}, Ranks: []evidence.Rank{r},
	}
	return Judge(x, e)
}

// A last line or row that violates a threshold never passes it for being cut.
func TestCutNeverPassesWhatTheWholeViolates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := 1.0
		name := rapid.SampledFrom([]string{"tps", "GB/s", "performance", "slow/tps", "slow/performance", "tokens/s"})
		gate := threshold.Threshold{Metric: name.Draw(t, "gate"), Min: &one}
		var metrics []metric.Spec
		if rapid.Bool().Draw(t, "declared") {
			metrics = []metric.Spec{{Name: "tps", Required: true, Aggregate: rapid.SampledFrom([]string{"", "root", "min"}).Draw(t, "aggregate")}}
		}
		called := rapid.SampledFrom([]string{"tps", "tpot", "GB/s", "tokens/s", "GB/s tps", "ms tps", "GB/s on 8 GPUs", "tps at step 5"})
		output := "performance: 5 " + called.Draw(t, "first") + "\n"
		csv := "model,performance,metric\nfast,3," + rapid.SampledFrom([]string{"tps", "tpot", "GB/s"}).Draw(t, "row") + "\n"
		exit := 3
		if rapid.Bool().Draw(t, "in the csv") {
			last := rapid.SampledFrom([]string{"slow", "fast", "sl"}).Draw(t, "model") + ",0.25," + rapid.SampledFrom([]string{"tps", "GB/s", "tokens/s"}).Draw(t, "metric")
			whole := judgeTexts(metrics, gate, exit, output, csv+last+"\n")
			n := rapid.IntRange(1, len(last)).Draw(t, "cut")
			if n <= strings.LastIndexByte(last, ',')+1 && rapid.Bool().Draw(t, "clean") {
				exit = 0 // that it was cut can be seen
			}
			if cut := judgeTexts(metrics, gate, exit, output, csv+last[:n]); whole.Word != Pass && cut.Word == Pass {
				t.Fatalf("%q became PASS: %+v", last[:n], cut)
			}
			return
		}
		last := "performance: 0.25 " + called.Draw(t, "last")
		whole := judgeTexts(metrics, gate, exit, output+last+"\n", csv)
		n := rapid.IntRange(len("performance:"), len(last)).Draw(t, "cut")
		if cut := judgeTexts(metrics, gate, exit, output+last[:n], csv); whole.Word != Pass && cut.Word == Pass {
			t.Fatalf("%q became PASS: %+v", last[:n], cut)
		}
	})
}

// A model's threshold is not violated by a row that is of another model for sure.
func TestCutRowOfAnotherModel(t *testing.T) {
	one := 1.0
	csv := "model,performance,metric\nfast,3,tps\nslow,0.1,t"
	for gate, want := range map[string]Word{"tps": Fail, "fast/tps": Pass, "fast/performance": Pass, "performance": Fail} {
		if v := judgeTexts(nil, threshold.Threshold{Metric: gate, Min: &one}, 3, "", csv); v.Word != want {
			t.Errorf("%s: %v, want %v: %+v", gate, v.Word, want, v)
		}
	}
}

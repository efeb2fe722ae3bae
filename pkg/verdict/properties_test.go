package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// severity orders verdicts on a job that has ended. FAIL and ERROR are the same:
// which of them it is depends on where the fault lies, not on how bad it is.
func severity(w Word) int {
	switch w {
	case Pass, Skip:
		return 0
	case NoMetric:
		return 1
	case Fail, Error:
		return 2
	case Unknown, Pending:
	}
	return 3
}

func drawRank(t *rapid.T, n int) evidence.Rank {
	r := evidence.Rank{Rank: n, Node: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "node")}
	if !rapid.Bool().Draw(t, "clean") {
		r.State = evidence.RankState(rapid.IntRange(0, 4).Draw(t, "state"))
		r.Unreadable = rapid.SampledFrom([]string{"", "", "", "end.json: torn"}).Draw(t, "unreadable")
		r.Stale = rapid.SampledFrom([]string{"", "", "", "of nonce x"}).Draw(t, "stale")
	} else {
		r.State = evidence.RankEnded
		r.Outcome = evidence.OutcomeExited
	}
	if r.State == evidence.RankEnded {
		r.ElapsedSeconds = float64(rapid.IntRange(0, 5).Draw(t, "elapsed"))
		if rapid.IntRange(0, 2).Draw(t, "bad end") == 0 {
			r.Outcome = evidence.Outcome(rapid.IntRange(0, 5).Draw(t, "outcome"))
			r.ExitCode = rapid.SampledFrom([]int{0, 1, 3, 143}).Draw(t, "exit code")
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "readings") {
		r.Readings = append(r.Readings, drawReading(t))
	}
	if rapid.IntRange(0, 9).Draw(t, "problem") == 0 {
		r.Problems = append(r.Problems, metric.Problem{Code: metric.CodeNotANumber, Name: "tps", Source: metric.SourcePerformance, Message: "nan"})
	}
	if rapid.IntRange(0, 9).Draw(t, "row without a value") == 0 {
		r.Problems = append(r.Problems, drawRows(t))
	}
	return r
}

func drawRows(t *rapid.T) metric.Problem {
	row := metric.Row{Name: rapid.SampledFrom([]string{"", "t", "tps"}).Draw(t, "row"), Place: "r.csv:2"}
	row.Cut = row.Name != "tps" || rapid.Bool().Draw(t, "cut")
	return metric.Problem{Code: metric.CodeEmpty, Source: metric.SourceResults, Message: "empty", Rows: []metric.Row{row}}
}

func drawReading(t *rapid.T) metric.Reading {
	m := metric.Reading{
		Name:   rapid.SampledFrom([]string{"tps", "busbwGbps", "lr"}).Draw(t, "name"),
		Source: rapid.SampledFrom([]metric.Source{metric.SourcePerformance, metric.SourceResults, metric.SourceKeyValue, metric.SourceMetricsJSON}).Draw(t, "source"),
		Value:  float64(rapid.IntRange(0, 3).Draw(t, "value")),
		// now and then nothing that can be measured here
		NotApplicable: rapid.IntRange(0, 5).Draw(t, "n/a") == 0,
	}
	m.Text = string(m.Source) // only to be different
	m.Unended = m.Name == "tps" && rapid.IntRange(0, 3).Draw(t, "unended") == 0
	return m
}

func drawExpectation(t *rapid.T, world int) Expectation {
	x := Expectation{
		WorldSize:   world,
		RanksPolicy: rapid.SampledFrom([]string{"", "all"}).Draw(t, "policy"),
		Strict:      rapid.Bool().Draw(t, "strict"),
		SkipMetrics: rapid.IntRange(0, 9).Draw(t, "skip") == 0,
	}
	if rapid.Bool().Draw(t, "declares") {
		x.Metrics = []metric.Spec{{Name: "busbwGbps", Required: rapid.Bool().Draw(t, "required"), Aggregate: rapid.SampledFrom(append(metric.Aggregates(), "")).Draw(t, "aggregate")}}
	}
	if rapid.Bool().Draw(t, "gates") {
		bound := float64(rapid.IntRange(0, 3).Draw(t, "bound"))
		x.Thresholds = []threshold.Threshold{{Metric: rapid.SampledFrom([]string{"tps", "performance"}).Draw(t, "gate"), Min: &bound}}
	}
	return x
}

// drawJob draws the evidence on a job that is over.
func drawJob(t *rapid.T) (Expectation, evidence.Evidence) {
	world := rapid.IntRange(1, 4).Draw(t, "world")
	e := evidence.Evidence{
		Job: "j", Attempt: 1, WorldSize: world,
		Launch:    evidence.Launch{State: rapid.SampledFrom([]evidence.LaunchState{evidence.LaunchSubmitted, evidence.LaunchSubmitted, evidence.LaunchSubmitted, evidence.LaunchRefused, evidence.LaunchDropped}).Draw(t, "launch")},
		Scheduler: &evidence.Observation{Source: "sacct", Phase: evidence.PhaseEnded, Word: "COMPLETED"},
	}
	if rapid.IntRange(0, 3).Draw(t, "bad word") == 0 {
		e.Scheduler.Word, e.Scheduler.Bad = "TIMEOUT", true
	}
	if rapid.IntRange(0, 5).Draw(t, "cancelled") == 0 {
		e.Cancel = &evidence.Cancel{By: "SIGINT"}
	}
	for n := range world {
		e.Ranks = append(e.Ranks, drawRank(t, n))
	}
	return drawExpectation(t, world), e
}

func TestOrderOfRanksNeverMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		if rapid.Bool().Draw(t, "twice") {
			e.Ranks = append(e.Ranks, drawRank(t, rapid.IntRange(0, x.WorldSize).Draw(t, "again")))
		}
		want := Judge(x, e)
		if diff := cmp.Diff(want, Judge(x, e)); diff != "" {
			t.Fatalf("judged twice:\n%s", diff)
		}
		shuffled := e
		shuffled.Ranks = rapid.Permutation(e.Ranks).Draw(t, "order")
		before := slices.Clone(shuffled.Ranks)
		if diff := cmp.Diff(want, Judge(x, shuffled)); diff != "" {
			t.Fatalf("in another order:\n%s", diff)
		}
		if diff := cmp.Diff(before, shuffled.Ranks); diff != "" {
			t.Fatalf("the evidence was changed:\n%s", diff)
		}
	})
}

// Making a clean rank bad, or the scheduler's word, never improves a verdict.
func TestBadEvidenceNeverImprovesAVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		before := Judge(x, e)
		worse := e
		worse.Ranks = slices.Clone(e.Ranks)
		switch rapid.IntRange(0, 1).Draw(t, "what") {
		case 0:
			r := &worse.Ranks[rapid.IntRange(0, x.WorldSize-1).Draw(t, "rank")]
			if r.State != evidence.RankEnded || r.Outcome != evidence.OutcomeExited || r.ExitCode != 0 {
				return
			}
			r.ExitCode = 3
		case 1:
			o := *e.Scheduler
			o.Word, o.Bad = "NODE_FAIL", true
			worse.Scheduler = &o
		}
		after := Judge(x, worse)
		if severity(after.Word) < severity(before.Word) {
			t.Fatalf("%v (%s) became %v (%s)", before.Word, before.Rule, after.Word, after.Rule)
		}
	})
}

// Without a number from a rank that exists, nothing passes.
func TestAbsenceNeverPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		for i := range e.Ranks {
			e.Ranks[i].Readings = slices.DeleteFunc(e.Ranks[i].Readings, func(m metric.Reading) bool {
				return !m.NotApplicable && (metric.IsPerformance(m.Source) || m.Name != "lr")
			})
		}
		if rapid.Bool().Draw(t, "missing rank") {
			e.Ranks = e.Ranks[1:]
		}
		if v := Judge(x, e); v.Word == Pass {
			t.Fatalf("%+v", v)
		}
	})
}

// A threshold on a metric that nobody reported is never passed.
func TestAbsentMetricNeverPassesItsThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		bound := rapid.Float64Range(-10, 10).Draw(t, "bound")
		x.Thresholds = append(x.Thresholds, threshold.Threshold{Metric: "absent", Max: &bound, RequiredIfMeasurable: true})
		if v := Judge(x, e); v.Word == Pass {
			t.Fatalf("%+v", v)
		}
	})
}

// A row that is there and has no usable value never passes a threshold on all of
// them.
func TestRowsWithoutAValueNeverPassTheirThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		bound := -10.0
		x.SkipMetrics = false
		x.Thresholds = append(x.Thresholds, threshold.Threshold{Metric: metric.Performance, Min: &bound, RequiredIfMeasurable: true})
		if r := &e.Ranks[0]; left(*r) {
			r.Problems = append(r.Problems, drawRows(t))
			if v := Judge(x, e); v.Word == Pass {
				t.Fatalf("%+v", v)
			}
		}
	})
}

// No reason or warning blames a rank that ended clean.
func TestCleanRanksAreNeverBlamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		v := Judge(x, e)
		for _, r := range e.Ranks {
			clean := r.State == evidence.RankEnded && r.Outcome == evidence.OutcomeExited && r.ExitCode == 0 && r.Stale == "" && r.Unreadable == "" && len(r.Problems) == 0
			for _, reason := range slices.Concat(v.Reasons, v.Warnings) {
				if clean && reason.Subject == rankName(r) {
					t.Fatalf("%+v is named: %+v", r, reason)
				}
			}
		}
	})
}

// Every verdict that is not PASS says why, with codes of the table, and every
// bad rank is named somewhere.
func TestVerdictsGiveReasons(t *testing.T) {
	known := map[string]bool{}
	for _, row := range ReasonCodes() {
		known[row.Code] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		v := Judge(x, e)
		if v.Word == Unknown || v.Word == Pending || v.Rule == "" {
			t.Fatalf("%+v", v)
		}
		if (v.Word == Pass) != (len(v.Reasons) == 0) {
			t.Fatalf("%v has reasons %+v", v.Word, v.Reasons)
		}
		all := slices.Concat(v.Reasons, v.Warnings)
		for _, r := range all {
			if !known[r.Code] || strings.TrimSpace(r.Message) == "" {
				t.Fatalf("reason %+v", r)
			}
		}
		for _, r := range e.Ranks {
			failed := r.State == evidence.RankEnded && r.Outcome == evidence.OutcomeExited && r.ExitCode != 0
			if failed && !slices.ContainsFunc(all, func(reason Reason) bool { return reason.Code == CodeRankExit && reason.Subject == rankName(r) }) {
				t.Fatalf("rank %d exited %d and is not named: %+v", r.Rank, r.ExitCode, all)
			}
		}
	})
}

// A job with a rank that runs is never judged.
func TestRunningIsPending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawJob(t)
		e.Scheduler.Phase, e.Scheduler.Word, e.Scheduler.Bad = evidence.PhaseRunning, "RUNNING", false
		e.Ranks[0] = evidence.Rank{State: evidence.RankRunning}
		if v := Judge(x, e); v.Word != Pending {
			t.Fatalf("%+v", v)
		}
	})
}

func TestRollUp(t *testing.T) {
	tests := []struct {
		words []Word
		want  Word
	}{
		{nil, Error},
		{[]Word{Pass}, Pass},
		{[]Word{Pass, Skip}, Pass},
		{[]Word{Skip, Skip}, Skip},
		{[]Word{Pass, NoMetric}, NoMetric},
		{[]Word{NoMetric, Error}, Error},
		{[]Word{Error, Fail, Pass}, Fail},
		{[]Word{Fail, Pending}, Pending},
		{[]Word{Unknown, Pass}, Error},
		{[]Word{Word(99)}, Error},
		{[]Word{Word(-1), Fail}, Fail},
	}
	for _, tt := range tests {
		if got := RollUp(tt.words); got != tt.want {
			t.Errorf("RollUp(%v) = %v, want %v", tt.words, got, tt.want)
		}
	}
}

func TestRollUpDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.SampledFrom([]Word{Unknown, Pass, Fail, NoMetric, Error, Skip, Pending})).Draw(t, "words")
		if a, b := RollUp(words), RollUp(rapid.Permutation(words).Draw(t, "order")); a != b {
			t.Fatalf("%v and %v", a, b)
		}
	})
}

func TestWordsSurviveText(t *testing.T) {
	for w := Unknown; w <= Pending; w++ {
		text, err := w.MarshalText()
		var back Word
		if err != nil || back.UnmarshalText(text) != nil || back != w {
			t.Errorf("%v: %s %v", w, text, err)
		}
	}
	var w Word
	if err := w.UnmarshalText([]byte("GREEN")); err == nil {
		t.Error("GREEN is a word")
	}
}

func BenchmarkJudge10000Ranks(b *testing.B) {
	e := evidence.Evidence{Job: "j", WorldSize: 10_000, Launch: evidence.Launch{State: evidence.LaunchSubmitted}}
	for i := range 10_000 {
		e.Ranks = append(e.Ranks, evidence.Rank{
			Rank: i, Node: "n", State: evidence.RankEnded, Outcome: evidence.OutcomeExited, ExitCode: i % 2, ElapsedSeconds: float64(i % 97),
			Readings: []metric.Reading{{Name: "tps", Value: float64(i), Text: "1", Source: metric.SourcePerformance}},
		})
	}
	for b.Loop() {
		if v := Judge(Expectation{WorldSize: 10_000}, e); v.Word != Pass {
			b.Fatal(v.Word)
		}
	}
}

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

// drawRunners draws the evidence on a job under the acceptance contract that is over.
func drawRunners(t *rapid.T) (Expectation, evidence.Evidence) {
	x, e := drawJob(t)
	x.Contract = ContractAcceptance
	x.Scope = rapid.SampledFrom([]string{"node", "pair", "group"}).Draw(t, "scope")
	x.Baseline = rapid.IntRange(0, 9).Draw(t, "baseline") == 0
	for i := range e.Ranks {
		r := &e.Ranks[i]
		r.Skip = rapid.SampledFrom([]string{"", "", "X_SKIP: so"}).Draw(t, "skip")
		r.Said = rapid.SampledFrom([]string{"", "bye"}).Draw(t, "said")
		if r.State == evidence.RankEnded && r.Outcome == evidence.OutcomeExited {
			r.ExitCode = rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(t, "code")
		}
	}
	return x, e
}

func clean(r evidence.Rank, codes ...int) bool {
	released := r.State == evidence.RankEnded && r.Outcome == evidence.OutcomeReleased
	return released || r.State == evidence.RankEnded && r.Outcome == evidence.OutcomeExited && slices.Contains(codes, r.ExitCode)
}

func TestAcceptanceDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawRunners(t)
		want := Judge(x, e)
		shuffled := e
		shuffled.Ranks = rapid.Permutation(e.Ranks).Draw(t, "order")
		if diff := cmp.Diff(want, Judge(x, shuffled)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What each word asks of the ranks.
func TestAcceptanceWords(t *testing.T) {
	known := map[string]bool{}
	for _, row := range ReasonCodes() {
		known[row.Code] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawRunners(t)
		v := Judge(x, e)
		if (v.Word == Pass) != (len(v.Reasons) == 0) || !strings.HasPrefix(v.Rule, "acceptance ") {
			t.Fatalf("%+v", v)
		}
		for _, r := range slices.Concat(v.Reasons, v.Warnings) {
			if !known[r.Code] || r.Message == "" {
				t.Fatalf("%+v", r)
			}
		}
		failed := slices.ContainsFunc(e.Ranks, func(r evidence.Rank) bool { return clean(r, 1) && r.ExitCode == 1 })
		declared := func(r evidence.Rank) bool { return r.ExitCode != 2 || r.Skip != "" }
		judged := !slices.ContainsFunc(e.Ranks, func(r evidence.Rank) bool { return !clean(r, 0, 1, 2) || !declared(r) })
		switch v.Word {
		case Pass:
			if slices.ContainsFunc(e.Ranks, func(r evidence.Rank) bool { return !clean(r, 0) }) {
				t.Fatalf("PASS of %+v", e.Ranks)
			}
		case Skip:
			if failed || !judged || x.Scope != "pair" && slices.ContainsFunc(e.Ranks, func(r evidence.Rank) bool { return !clean(r, 2) }) {
				t.Fatalf("SKIP of %+v", e.Ranks)
			}
		case Fail:
			if !judged || !failed && len(v.Violations) == 0 && v.Rule != RuleAcceptedStrict {
				t.Fatalf("FAIL (%s) of %+v", v.Rule, e.Ranks)
			}
		case Error:
			if len(v.Violations) > 0 {
				t.Fatalf("ERROR has violations: %+v", v)
			}
		case Unknown, NoMetric, Pending:
			t.Fatalf("%v", v.Word)
		}
		if !judged && v.Word != Error {
			t.Fatalf("%v of %+v", v.Word, e.Ranks)
		}
	})
}

// Making a rank that passed fail, crash or be lost never improves a verdict, neither
// does a state of the target.
func TestBadEvidenceNeverImprovesAcceptance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawRunners(t)
		before := Judge(x, e)
		worse := e
		worse.Ranks = slices.Clone(e.Ranks)
		r := &worse.Ranks[rapid.IntRange(0, x.WorldSize-1).Draw(t, "rank")]
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			o := *e.Scheduler
			o.Word, o.Bad = "NODE_FAIL", true
			worse.Scheduler = &o
		case 1:
			r.State, r.Outcome, r.ExitCode = evidence.RankEnded, evidence.OutcomeExited, 1
		case 2:
			r.State, r.Outcome, r.ExitCode = evidence.RankEnded, evidence.OutcomeExited, 3
		case 3:
			r.State = evidence.RankLost
		}
		if after := Judge(x, worse); severity(after.Word) < severity(before.Word) {
			t.Fatalf("%v (%s) became %v (%s)", before.Word, before.Rule, after.Word, after.Rule)
		}
	})
}

// No PASS of a threshold without a number within its bounds, or n/a that it allows.
func TestAcceptanceNeedsANumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawRunners(t)
		bound := -10.0
		relaxed := rapid.Bool().Draw(t, "relaxed")
		x.Baseline, x.SkipMetrics = false, rapid.Bool().Draw(t, "off")
		x.Thresholds = append(x.Thresholds, threshold.Threshold{Metric: "wanted", Min: &bound, RequiredIfMeasurable: relaxed})
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		for i := range e.Ranks {
			m := metric.Reading{Name: "wanted", Source: metric.SourceKeyValue, Text: "x"}
			switch kind {
			case 0:
				continue
			case 1:
				m.Label = true
			case 2:
				m.NotApplicable = true
			case 3:
				e.Ranks[i].Problems = append(e.Ranks[i].Problems, metric.Problem{Code: metric.CodeNotANumber, Name: "wanted", Source: metric.SourceKeyValue, Message: "NaN"})
				continue
			}
			e.Ranks[i].Readings = append(e.Ranks[i].Readings, m)
		}
		v := Judge(x, e)
		if v.Word == Pass && (kind != 2 || !relaxed) {
			t.Fatalf("%+v", v)
		}
		if v.Word == Pass && !slices.ContainsFunc(v.NotEvaluated, func(n threshold.NotEvaluated) bool { return n.Metric == "wanted" }) {
			t.Fatalf("what was not evaluated is not told: %+v", v)
		}
	})
}

// A rank that ended well is never blamed.
func TestAcceptanceBlamesNoCleanRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e := drawRunners(t)
		v := Judge(x, e)
		for _, r := range e.Ranks {
			if !clean(r, 0) || r.Stale != "" || r.Unreadable != "" || len(r.Problems) > 0 {
				continue
			}
			for _, reason := range v.Reasons {
				if reason.Subject == rankName(r) {
					t.Fatalf("%+v is blamed: %+v", r, reason)
				}
			}
		}
	})
}

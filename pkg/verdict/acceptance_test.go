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

// report makes a rank report a metric: in bounds of at least 0, or in one of the ways
// that are no such value.
func report(r *evidence.Rank, how string) {
	m := metric.Reading{Name: "wanted", Source: metric.SourceKeyValue, Text: how}
	switch how {
	case "silent":
		return
	case "good":
		m.Value = 1
	case "low":
		m.Value = -1
	case "n/a":
		m.NotApplicable = true
	case "word":
		m.Label = true
	case "NaN":
		r.Problems = append(slices.Clone(r.Problems), metric.Problem{Code: metric.CodeNotANumber, Name: m.Name, Source: m.Source, Message: "NaN"})
		return
	}
	r.Readings = append(slices.Clone(r.Readings), m)
}

func drawReports(t *rapid.T) (Expectation, evidence.Evidence, []string) {
	x, e := drawRunners(t)
	zero := 0.0
	x.Baseline, x.SkipMetrics = false, false
	x.Thresholds = append(x.Thresholds, threshold.Threshold{Metric: "wanted", Min: &zero})
	if rapid.Bool().Draw(t, "declared") {
		x.Metrics = append(x.Metrics, metric.Spec{Name: "wanted", Required: rapid.Bool().Draw(t, "wanted is required")})
	}
	var hows []string
	for i := range e.Ranks {
		how := rapid.SampledFrom([]string{"silent", "good", "good", "low", "n/a", "word", "NaN"}).Draw(t, "reports")
		hows = append(hows, how)
		report(&e.Ranks[i], how)
	}
	return x, e, hows
}

// Each rank that reported anything of a metric without an aggregate has to satisfy the
// threshold on it, those that do not are named, and silence is none of them as long as
// one rank reported.
func TestEveryRankHasToSatisfy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e, hows := drawReports(t)
		if x.Scope == scopePair {
			x.Scope = "group"
		}
		var bad []int
		reported := 0
		for i, how := range hows {
			r := &e.Ranks[i]
			r.State, r.Outcome, r.ExitCode = evidence.RankEnded, evidence.OutcomeExited, 0
			r.Problems = slices.DeleteFunc(r.Problems, func(p metric.Problem) bool { return len(p.Rows) > 0 }) // which may be anything
			switch how {
			case "silent":
			case "good":
				reported++
			default:
				bad = append(bad, i)
			}
		}
		v := Judge(x, e)
		if v.Word == Pass && len(bad)+reported == 0 || v.Word == Pass && len(bad) > 0 {
			t.Fatalf("PASS of %v", hows)
		}
		if v.Word != Fail {
			return
		}
		var named []int
		for _, w := range v.Violations {
			switch {
			case w.Metric != "wanted":
			case w.Rank != nil:
				named = append(named, *w.Rank)
			case len(hows) > 1 && len(bad)+reported > 0:
				t.Fatalf("%v: nobody is named by %+v", hows, w)
			}
		}
		slices.Sort(named)
		if len(hows) == 1 {
			bad = nil
		}
		if !slices.Equal(bad, named) {
			t.Fatalf("%v: ranks %v are named: %+v", hows, named, v.Violations)
		}
	})
}

// That one more rank reports what is no value in bounds never improves a verdict,
// however ranks ended.
func TestABadReportNeverImprovesAcceptance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, e, hows := drawReports(t)
		i := rapid.IntRange(0, len(hows)-1).Draw(t, "rank")
		if hows[i] != "silent" || x.Scope == scopePair && i == 1 { // the client takes the place of its server
			return
		}
		worse := e
		worse.Ranks = slices.Clone(e.Ranks)
		how := rapid.SampledFrom([]string{"low", "n/a", "word", "NaN"}).Draw(t, "bad")
		report(&worse.Ranks[i], how)
		before, after := Judge(x, e), Judge(x, worse)
		if severity(after.Word) < severity(before.Word) {
			t.Fatalf("%v: rank %d reports %s, and %v (%s) became %v (%s)", hows, i, how, before.Word, before.Rule, after.Word, after.Rule)
		}
		if after.Word == Pass && x.Scope != scopePair {
			t.Fatalf("%v and %s of rank %d: PASS", hows, how, i)
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

// A link has one rank at each end: of others, none is its client.
func TestOnlyTheClientOfALinkDecides(t *testing.T) {
	for ranks, want := range map[int]Word{2: Pass, 4: Fail} {
		x := Expectation{Contract: ContractAcceptance, Scope: "pair", WorldSize: ranks, Thresholds: []threshold.Threshold{{Metric: "gbps", Min: new(10.0)}}}
		e := evidence.Evidence{Job: "link", Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Scheduler: &evidence.Observation{Phase: evidence.PhaseEnded}}
		for n := range ranks {
			value := 20.0
			if n == 0 {
				value = 1
			}
			e.Ranks = append(e.Ranks, evidence.Rank{
				Rank: n, State: evidence.RankEnded, Outcome: evidence.OutcomeExited,
				Readings: []metric.Reading{{Name: "gbps", Value: value, Source: metric.SourceKeyValue}},
			})
		}
		if v := Judge(x, e); v.Word != want {
			t.Errorf("%d ranks: %v, want %v: %+v", ranks, v.Word, want, v)
		}
	}
}

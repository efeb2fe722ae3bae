package verdict

import (
	"fmt"
	"slices"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// measure puts the readings of all ranks together and compares them with what
// the card asks for.
func (f *facts) measure() {
	declared := f.x.Declared()
	readings := make([]metric.RankReadings, len(f.ranks))
	for i, r := range f.ranks {
		readings[i].Rank = r.Rank
		if !left(r) {
			continue
		}
		for _, m := range r.Readings {
			if m.Unended && f.fault(r) != nil {
				f.results = append(f.results, Reason{CodeResultsUnreadable, f.x.MultipleResults, fmt.Sprintf(
					"%s: %s has no line end and its writer did not end clean, so %s may be cut and does not count", rankName(r), m.Place, m.Text)})
			} else if metric.IsPerformance(m.Source) || slices.Contains(declared, m.Name) {
				readings[i].Readings = append(readings[i].Readings, m)
			}
		}
	}
	var problems []metric.Problem
	f.measurements, problems = metric.Aggregate(f.x.Metrics, readings)
	specs := map[string]metric.Spec{}
	for _, s := range f.x.Metrics {
		specs[s.Name] = s
	}
	notNumbers := f.rankProblems(newReporters(readings, f.ranks), specs)
	for _, p := range problems {
		switch {
		case p.Code == CodeMetricDisagrees && specs[p.Name].Aggregate == metric.AggregateAgree:
			f.violations = append(f.violations, problemReason(p, ""))
		case p.Code == CodeMetricAbsent && f.needsEveryRank(specs[p.Name], p):
			f.violations = append(f.violations, problemReason(p, ""))
		case p.Code == CodeMetricNotANumber:
			notNumbers = append(notNumbers, p)
		default:
			f.problems = append(f.problems, problemReason(p, ""))
		}
	}
	f.compare(notNumbers, specs)
	if len(f.measurements) == 0 {
		f.nothingToViolate()
	}
	f.declaredResults()
}

// left reports whether a rank can have measured anything.
func left(r evidence.Rank) bool {
	return r.State == evidence.RankEnded || r.State == evidence.RankRunning || r.State == evidence.RankLost
}

// rankProblems sorts the problems of the ranks. It returns those that stand in
// the place of a value that would have been compared.
func (f *facts) rankProblems(who reporters, specs map[string]metric.Spec) []metric.Problem {
	var notNumbers []metric.Problem
	for _, r := range f.ranks {
		if !left(r) {
			continue
		}
		for _, p := range r.Problems {
			named := p
			named.Message = rankName(r) + ": " + p.Message
			switch {
			case p.Code == CodeMetricNotANumber && p.Name != "" && who.counts(r.Rank, p, specs):
				notNumbers = append(notNumbers, named)
			case strings.HasPrefix(p.Code, "RESULTS_") && p.Source != metric.SourceMetricsJSON:
				f.results = append(f.results, problemReason(named, f.x.MultipleResults))
			default:
				f.problems = append(f.problems, problemReason(named, ""))
			}
		}
	}
	return notNumbers
}

// compare applies the thresholds and the metrics that have to be there.
func (f *facts) compare(notNumbers []metric.Problem, specs map[string]metric.Spec) {
	used := make([]bool, len(notNumbers))
	for _, t := range f.x.Thresholds {
		gated := false
		for i, p := range notNumbers {
			if t.Matches(metric.Measurement{Name: p.Name, Model: p.Model, Source: p.Source}) {
				gated = true
				if !used[i] {
					used[i] = true
					f.violations = append(f.violations, problemReason(p, ""))
				}
			}
		}
		for _, v := range threshold.Check(t, f.measurements) {
			if v.Code == CodeMetricAbsent && gated {
				continue // it was reported, and is no number
			}
			f.violations = append(f.violations, Reason{v.Code, v.Subject, v.Message})
		}
		for _, why := range threshold.Unsound(t, specs[t.Metric]) {
			f.notes = append(f.notes, Reason{CodeThreshold, t.Metric, why.Message})
		}
	}
	for i, p := range notNumbers {
		if !used[i] {
			f.problems = append(f.problems, problemReason(p, ""))
		}
	}
	for _, s := range f.x.Metrics {
		if s.Required && !f.reported(s.Name, true) && !f.gatedAlready(s.Name) {
			how := "was not reported"
			if f.reported(s.Name, false) {
				how = "was reported as n/a"
			}
			f.violations = append(f.violations, Reason{CodeMetricAbsent, s.Name, s.Name + " is required and " + how})
		}
	}
}

// needsEveryRank reports whether a gated metric is worth nothing without a rank
// that is silent: a sum would count it as zero, and ranks that say nothing do
// not agree.
func (f *facts) needsEveryRank(s metric.Spec, p metric.Problem) bool {
	if s.Aggregate != metric.AggregateSum && s.Aggregate != metric.AggregateAgree {
		return false
	}
	m := metric.Measurement{Name: p.Name, Model: p.Model, Source: p.Source}
	return s.Required || slices.ContainsFunc(f.x.Thresholds, func(t threshold.Threshold) bool { return t.Matches(m) })
}

// nothingToViolate takes violations back when nothing was reported at all: then
// what is to be explained is that, and values that are no numbers explain it.
func (f *facts) nothingToViolate() {
	for _, r := range f.violations {
		if r.Code == CodeMetricNotANumber {
			f.problems = append(f.problems, r)
		}
	}
	f.violations = nil
}

// reported reports whether a required metric is there. Where it has to be a
// number, n/a will do only if a threshold allows that.
func (f *facts) reported(name string, asNumber bool) bool {
	relaxed := !asNumber || slices.ContainsFunc(f.x.Thresholds, func(t threshold.Threshold) bool {
		return t.Metric == name && t.RequiredIfMeasurable
	})
	named := threshold.Threshold{Metric: name}
	return slices.ContainsFunc(f.measurements, func(m metric.Measurement) bool {
		return named.Matches(m) && (relaxed || !m.NotApplicable)
	})
}

// gatedAlready reports whether a violation names the metric.
func (f *facts) gatedAlready(name string) bool {
	return slices.ContainsFunc(f.violations, func(r Reason) bool { return r.Subject == name })
}

// numbers counts the values that were measured; n/a is none.
func (f *facts) numbers() int {
	n := 0
	for _, m := range f.measurements {
		if !m.NotApplicable {
			n++
		}
	}
	return n
}

func problemReason(p metric.Problem, subject string) Reason {
	switch {
	case subject != "":
	case p.Model != "":
		subject = p.Model + "/" + p.Name
	default:
		subject = p.Name
	}
	return Reason{p.Code, subject, p.Message}
}

// reporters knows the lowest rank that had something to say about a metric: the
// one whose word counts when no aggregate is declared.
type reporters map[[2]string]int

func newReporters(readings []metric.RankReadings, ranks []evidence.Rank) reporters {
	who := reporters{}
	note := func(name, model string, rank int) {
		key := [2]string{name, model}
		if lowest, ok := who[key]; !ok || rank < lowest {
			who[key] = rank
		}
	}
	for _, r := range readings {
		for _, m := range r.Readings {
			note(m.Name, m.Model, r.Rank)
		}
	}
	for _, r := range ranks {
		for _, p := range r.Problems {
			if p.Code == CodeMetricNotANumber && p.Name != "" {
				note(p.Name, p.Model, r.Rank)
			}
		}
	}
	return who
}

// counts reports whether a value of rank that is no number would have been part
// of the measurement.
func (who reporters) counts(rank int, p metric.Problem, specs map[string]metric.Spec) bool {
	switch specs[p.Name].Aggregate {
	case metric.AggregateRoot:
		return rank == 0
	case "":
		return rank == who[[2]string{p.Name, p.Model}]
	}
	return true
}

// listNames spells names in order, at most eight of them.
func listNames(names []string) string {
	const limit = 8
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

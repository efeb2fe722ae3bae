package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// measure puts the readings of all ranks together and compares them with what
// the card asks for.
func (f *facts) measure() {
	f.clientDecides()
	readings := make([]metric.RankReadings, len(f.ranks))
	var gaps []gap
	for i, r := range f.ranks {
		readings[i].Rank, readings[i].Node, readings[i].First = r.Rank, nodeOf(r), f.first()
		if left(r) {
			whole, cut := f.whole(r)
			readings[i].Readings = whole
			gaps = append(gaps, cut...)
		}
	}
	var problems []metric.Problem
	f.measurements, problems = metric.Aggregate(f.x.Metrics, readings)
	f.judge(readings)
	who := newReporters(f.everyRank(), readings, f.ranks, gaps)
	notNumbers := f.rankProblems(who)
	for _, p := range problems {
		spec := f.spec(p)
		switch {
		case p.Code == CodeMetricDisagrees && spec.Aggregate == metric.AggregateAgree:
			f.violate(p, threshold.Violation{Cause: threshold.CauseMeasurement, Bound: "the same on every rank"})
		case p.Code == CodeMetricAbsent && f.needsEveryRank(spec, p):
			f.violate(p, threshold.Violation{Cause: threshold.CauseEvidence, Bound: "reported by every rank"})
		case p.Code == CodeMetricNotANumber:
			notNumbers = append(notNumbers, p)
		default:
			f.problems = append(f.problems, problemReason(p, ""))
		}
	}
	f.compare(notNumbers, gaps, who)
	if len(f.measurements) == 0 && f.x.Contract != ContractAcceptance {
		f.nothingToViolate()
	}
	f.declaredResults()
}

// judge finds what the thresholds are compared with.
func (f *facts) judge(readings []metric.RankReadings) {
	f.judged, f.alone = f.measurements, map[string]bool{}
	if !f.everyRank() {
		return
	}
	f.judged = metric.Each(f.x.Metrics, readings)
	for _, m := range f.judged {
		p := metric.Problem{Name: m.Name, Model: m.Model, Source: m.Source}
		if f.spec(p).Aggregate == "" {
			f.alone[problemReason(p, "").Subject] = true
		}
	}
}

// everyRank reports whether each rank has to satisfy the thresholds on a metric that
// nothing is declared of: what is accepted is every part of the hardware, and the
// number of one rank says nothing about the others. A link is judged by its client.
func (f *facts) everyRank() bool {
	return f.x.Contract == ContractAcceptance && f.world > 1 && !f.pair()
}

// origin names a rank, unless it is the only one.
func (f *facts) origin(r evidence.Rank) *metric.Origin {
	if f.world < 2 {
		return nil
	}
	return &metric.Origin{Rank: r.Rank, Node: nodeOf(r)}
}

// spec is how the metric of a problem is declared.
func (f *facts) spec(p metric.Problem) metric.Spec {
	return metric.SpecFor(f.x.Metrics, p.Name, p.Source)
}

// left reports whether a rank can have measured anything.
func left(r evidence.Rank) bool {
	return r.State == evidence.RankEnded || r.State == evidence.RankRunning || r.State == evidence.RankLost
}

// rankProblems sorts the problems of the ranks. It returns those that stand in
// the place of a value that would have been compared.
func (f *facts) rankProblems(who reporters) []metric.Problem {
	var notNumbers []metric.Problem
	for _, r := range f.ranks {
		if !left(r) {
			continue
		}
		for _, p := range r.Problems {
			named := p
			named.Message, named.From = rankName(r)+": "+p.Message, f.origin(r)
			gated := p.Name != "" || p.Source == metric.SourcePerformance
			switch {
			case p.Code == CodeMetricNotANumber && gated && !f.outdone(r, p) && who.counts(r.Rank, f.spec(p), p.Model, p.Source, p.Name != ""):
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
func (f *facts) compare(notNumbers []metric.Problem, gaps []gap, who reporters) {
	used := make([]bool, len(notNumbers))
	for _, t := range f.x.Thresholds {
		missing := f.missing(t, gaps, who)
		gated := len(missing) > 0
		for i, p := range notNumbers {
			if t.Matches(metric.Measurement{Name: p.Name, Model: p.Model, Source: p.Source}) {
				gated = true
				if !used[i] {
					used[i] = true
					p.Message += hasToBe(t)
					f.violate(p, threshold.Violation{Cause: threshold.CauseEvidence, Metric: t.Metric, Bound: t.Spelled(), Note: t.Note})
				}
			}
		}
		for _, v := range threshold.Check(t, f.judged) {
			if v.Code == CodeMetricAbsent && gated {
				continue // it was reported, and is no number
			}
			f.violations = append(f.violations, v)
		}
		f.relaxed = append(f.relaxed, threshold.Relaxed(t, f.judged)...)
		f.violations = append(f.violations, missing...)
		for _, why := range threshold.Unsound(t, metric.SpecFor(f.x.Metrics, t.Metric, "")) {
			f.notes = append(f.notes, Reason{CodeThreshold, t.Metric, why.Message})
		}
	}
	for i, p := range notNumbers {
		switch spec := f.spec(p); {
		case used[i]:
		case f.needsEveryRank(spec, p):
			f.violate(p, threshold.Violation{Cause: threshold.CauseEvidence, Bound: "reported by every rank"})
		default:
			f.problems = append(f.problems, problemReason(p, ""))
		}
	}
	for _, s := range f.x.Metrics {
		if how, lacks := f.lacksNumber(s.Name); s.Required && lacks && !f.gatedAlready(s.Name) {
			f.violations = append(f.violations, threshold.Violation{
				Code: CodeMetricAbsent, Subject: s.Name, Message: s.Name + " is required and " + how,
				Cause: threshold.CauseEvidence, Metric: s.Name, Bound: "required",
			})
		}
	}
	for i, v := range f.violations {
		if v.Unit == "" && v.Cause == threshold.CauseEvidence {
			f.violations[i].Unit = f.unitOf(v)
		}
	}
}

// needsEveryRank reports whether a metric that is gated is put together over all
// ranks. Without one of them it is worth nothing: a sum would count silence as
// zero, the rank that is silent may be the worst, and it agrees with nobody. n/a
// is no silence where a threshold allows it.
func (f *facts) needsEveryRank(s metric.Spec, p metric.Problem) bool {
	if s.Aggregate == "" || s.Aggregate == metric.AggregateRoot {
		return false
	}
	m := metric.Measurement{Name: p.Name, Model: p.Model, Source: p.Source}
	relaxed := false
	for _, t := range f.x.Thresholds {
		switch {
		case !t.Matches(m):
		case p.NotApplicable && t.RequiredIfMeasurable:
			relaxed = true
		default:
			return true
		}
	}
	return s.Required && !relaxed
}

// nothingToViolate takes violations back when nothing was reported at all: then
// what is to be explained is that, and values that are no numbers explain it.
func (f *facts) nothingToViolate() {
	for _, v := range f.violations {
		if v.Code == CodeMetricNotANumber {
			f.problems = append(f.problems, reasonOf(v))
		}
	}
	f.violations = nil
}

// lacksNumber reports whether a required metric was not reported as a number, and how
// it was. n/a will do only if a threshold allows that.
func (f *facts) lacksNumber(name string) (how string, lacks bool) {
	relaxed := slices.ContainsFunc(f.x.Thresholds, func(t threshold.Threshold) bool {
		return t.Metric == name && t.RequiredIfMeasurable
	})
	named := threshold.Threshold{Metric: name}
	how = "was not reported"
	for _, m := range f.measurements {
		switch {
		case !named.Matches(m):
		case m.NotApplicable && !relaxed:
			how = "was reported as n/a"
		case m.Label:
			how = "was reported as " + strconv.Quote(m.Text) + ", which is no number"
		default:
			return "", false
		}
	}
	return how, true
}

// gatedAlready reports whether a violation names the metric.
func (f *facts) gatedAlready(name string) bool {
	return slices.ContainsFunc(f.violations, func(v threshold.Violation) bool { return v.Subject == name })
}

// numbers counts the values that were measured; n/a is none.
func (f *facts) numbers() int {
	n := 0
	for _, m := range f.measurements {
		if !m.NotApplicable && !m.Label {
			n++
		}
	}
	return n
}

// violate makes a violation of a problem; v says what the problem does not.
func (f *facts) violate(p metric.Problem, v threshold.Violation) {
	r := problemReason(p, "")
	v.Code, v.Subject, v.Message, v.Text = r.Code, r.Subject, r.Message, p.Text
	v.By(p.From)
	if v.Metric == "" {
		v.Metric = r.Subject
	}
	f.violations = append(f.violations, v)
}

func reasonOf(v threshold.Violation) Reason { return Reason{v.Code, v.Subject, v.Message} }

func reasonsOf(list []threshold.Violation) []Reason {
	var out []Reason
	for _, v := range list {
		out = append(out, reasonOf(v))
	}
	return out
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

// listNames spells names in order, at most eight of them.
func listNames(names []string) string {
	const limit = 8
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

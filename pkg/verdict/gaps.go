package verdict

import (
	"fmt"
	"slices"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// gap is a row or a line that is there and has no usable value. Nothing that it
// would be compared with is satisfied by it.
type gap struct {
	rank   int
	name   string // of the rank
	source metric.Source
	row    metric.Row
}

// whole divides the readings of a rank: those that count, and those that were
// cut because the rank was ended while it wrote them.
func (f *facts) whole(r evidence.Rank) (readings []metric.Reading, cut []gap) {
	clean := f.fault(r) == nil
	name := rankName(r)
	for _, m := range r.Readings {
		if f.x.Contract != ContractAcceptance && !metric.IsPerformance(m.Source) && !slices.Contains(f.declared, m.Name) {
			continue
		}
		if clean || !m.Unended {
			readings = append(readings, m)
			continue
		}
		why := fmt.Sprintf("%s: %s has no line end and its writer did not end clean, so %s may be cut and does not count", name, m.Place, m.Text)
		if m.Source == metric.SourceResults {
			f.results = append(f.results, Reason{CodeResultsUnreadable, f.x.MultipleResults, why})
		} else {
			f.problems = append(f.problems, Reason{CodeMetricNotANumber, m.Name, why})
		}
		for _, row := range metric.CutRows(m) {
			cut = append(cut, gap{r.Rank, name, m.Source, row})
		}
	}
	for _, p := range r.Problems {
		if clean && p.Source != metric.SourceResults {
			continue // a last line without a line end is whole
		}
		for _, row := range p.Rows {
			if !row.Cut && f.outdone(r, metric.Problem{Name: row.Name, Model: row.Model, Source: p.Source}) {
				continue
			}
			cut = append(cut, gap{r.Rank, name, p.Source, row})
		}
	}
	return readings, cut
}

// applies reports whether t would have been compared with what is missing, and
// with its rank.
func (f *facts) applies(t threshold.Threshold, g gap, who reporters) bool {
	return slices.ContainsFunc(f.names(t, g), func(name string) bool {
		return who.counts(g.rank, metric.SpecFor(f.x.Metrics, name, g.source), g.row.Model, g.source, !g.row.Cut)
	})
}

// names lists the metrics that are missing, as far as t gates them. What was cut
// may be anything that begins like it, whether or not that was measured elsewhere.
func (f *facts) names(t threshold.Threshold, g gap) []string {
	if !g.row.Cut {
		if t.Matches(metric.Measurement{Name: g.row.Name, Model: g.row.Model, Source: g.source}) {
			return []string{g.row.Name}
		}
		return nil
	}
	var names []string
	first := -1
	if f.namesModel(t) {
		first = 0
	}
	for at := first; at < len(t.Metric); at++ { // at: the slash between model and metric, -1: there is none
		name := t.Metric[at+1:]
		switch {
		case at >= 0 && (t.Metric[at] != '/' || at == 0 || !strings.HasPrefix(t.Metric[:at], g.row.Model)):
		case name == metric.Performance && metric.IsPerformance(g.source):
			names = append(names, g.row.Name)
			for _, s := range f.x.Metrics {
				if strings.HasPrefix(s.Name, g.row.Name) {
					names = append(names, s.Name)
				}
			}
		case strings.HasPrefix(name, g.row.Name):
			names = append(names, name)
		}
	}
	return names
}

// namesModel reports whether "a/b" is the b of model a in t, going by what was
// measured, and not a metric called "a/b".
func (f *facts) namesModel(t threshold.Threshold) bool {
	gated := func(m metric.Measurement) bool { return t.Matches(m) }
	named := func(m metric.Measurement) bool {
		return m.Name == t.Metric || t.Metric == metric.Performance && metric.IsPerformance(m.Source)
	}
	return slices.ContainsFunc(f.measurements, gated) && !slices.ContainsFunc(f.measurements, named)
}

// missing lists the violations of t by what has no usable value, one a place.
func (f *facts) missing(t threshold.Threshold, gaps []gap, who reporters) []threshold.Violation {
	if len(threshold.Malformed(t)) > 0 {
		return nil // satisfied by nothing, which is said elsewhere
	}
	var out []threshold.Violation
	for _, g := range gaps {
		why := threshold.Violation{
			Code: CodeMetricAbsent, Subject: t.Metric, Cause: threshold.CauseEvidence, Metric: t.Metric, Bound: t.Spelled(), Note: t.Note,
			Message: fmt.Sprintf("%s: %s has no usable value, and %s has to be %s", g.name, g.row.Place, t.Metric, t.Bounds()),
		}
		told := func(v threshold.Violation) bool { return v.Message == why.Message }
		if f.applies(t, g, who) && !slices.ContainsFunc(out, told) {
			why.By(f.origin(f.ranks[g.rank]))
			out = append(out, why)
		}
	}
	return out
}

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
	declared := f.x.Declared()
	clean := f.fault(r) == nil
	for _, m := range r.Readings {
		if !metric.IsPerformance(m.Source) && !slices.Contains(declared, m.Name) {
			continue
		}
		if clean || !m.Unended {
			readings = append(readings, m)
			continue
		}
		name := rankName(r)
		why := fmt.Sprintf("%s: %s has no line end and its writer did not end clean, so %s may be cut and does not count", name, m.Place, m.Text)
		row := metric.Row{Name: m.Name, Model: m.Model, Place: m.Place, Cut: true}
		if m.Source == metric.SourceResults {
			f.results = append(f.results, Reason{CodeResultsUnreadable, f.x.MultipleResults, why})
			if m.Name == metric.Performance {
				row.Name = "" // what a row without a metric is called; it may have lost it
			}
		} else {
			f.problems = append(f.problems, Reason{CodeMetricNotANumber, m.Name, why})
		}
		cut = append(cut, gap{r.Rank, name, m.Source, row})
	}
	for _, p := range r.Problems {
		for _, row := range p.Rows {
			cut = append(cut, gap{r.Rank, rankName(r), metric.SourceResults, row})
		}
	}
	return readings, cut
}

// applies reports whether t would have been compared with what is missing. What
// was cut may be any metric whose name begins like it.
func (f *facts) applies(t threshold.Threshold, g gap) bool {
	if t.Matches(metric.Measurement{Name: g.row.Name, Model: g.row.Model, Source: g.source}) {
		return true
	}
	return g.row.Cut && slices.ContainsFunc(f.measurements, func(m metric.Measurement) bool {
		return m.Source == g.source && strings.HasPrefix(m.Name, g.row.Name) && strings.HasPrefix(m.Model, g.row.Model) && t.Matches(m)
	})
}

// missing lists the violations of t by what has no usable value.
func (f *facts) missing(t threshold.Threshold, gaps []gap) []Reason {
	if len(threshold.Malformed(t)) > 0 {
		return nil // satisfied by nothing, which is said elsewhere
	}
	var out []Reason
	for _, g := range gaps {
		if f.applies(t, g) {
			out = append(out, Reason{CodeMetricAbsent, t.Metric, fmt.Sprintf("%s: %s has no usable value, and %s has to be %s", g.name, g.row.Place, t.Metric, t.Bounds())})
		}
	}
	return out
}

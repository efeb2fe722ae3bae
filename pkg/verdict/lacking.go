package verdict

import (
	"fmt"
	"slices"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// first is the source that counts before all others: what a runner prints under the
// acceptance contract is what it measured.
func (f *facts) first() metric.Source {
	if f.x.Contract == ContractAcceptance {
		return metric.SourceKeyValue
	}
	return ""
}

// outdone reports whether a problem is with what another source said of a metric that
// the first source reported.
func (f *facts) outdone(r evidence.Rank, p metric.Problem) bool {
	return p.Name != "" && p.Model == "" && f.first() != "" && p.Source != f.first() && slices.ContainsFunc(r.Readings, func(m metric.Reading) bool {
		return m.Name == p.Name && m.Source == f.first() && (!m.Unended || f.fault(r) == nil)
	})
}

// hasToBe says what t asks for, as the end of a sentence; empty when nothing can
// satisfy it.
func hasToBe(t threshold.Threshold) string {
	if len(threshold.Malformed(t)) > 0 {
		return ""
	}
	text := fmt.Sprintf("; %s has to be %s", t.Metric, t.Bounds())
	if t.Note != "" {
		text += " (" + t.Note + ")"
	}
	return text
}

// unitOf is the unit of what a violation lacks: as it is declared, or as the name ends.
func (f *facts) unitOf(v threshold.Violation) string {
	for _, name := range []string{v.Subject, v.Metric} {
		last := name[strings.LastIndexByte(name, '/')+1:]
		for _, n := range []string{name, last} {
			if unit := metric.SpecFor(f.x.Metrics, n, "").Unit; unit != "" {
				return unit
			}
		}
		if unit, ok := metric.UnitOf(last); ok {
			return unit
		}
	}
	return ""
}

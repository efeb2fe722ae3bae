package verdict

import (
	"assay/pkg/evidence"
	"assay/pkg/metric"
)

// reporters knows the lowest rank that had something to say about a metric, and
// from a source: the one whose word counts when no aggregate is declared. n/a is
// nothing to say, for what another rank measured counts before it.
type reporters struct {
	every   bool              // it is every rank whose word counts
	metrics map[[2]string]int // by name and model
	sources map[metric.Source]int
}

func newReporters(every bool, readings []metric.RankReadings, ranks []evidence.Rank, gaps []gap) reporters {
	who := reporters{every, map[[2]string]int{}, map[metric.Source]int{}}
	for _, r := range readings {
		for _, m := range r.Readings {
			lower(who.sources, m.Source, r.Rank)
			if !m.NotApplicable {
				lower(who.metrics, [2]string{m.Name, m.Model}, r.Rank)
			}
		}
	}
	for _, r := range ranks {
		for _, p := range r.Problems {
			if left(r) && p.Code == CodeMetricNotANumber {
				lower(who.sources, p.Source, r.Rank)
				lower(who.metrics, [2]string{p.Name, p.Model}, r.Rank)
			}
		}
	}
	for _, g := range gaps {
		lower(who.sources, g.source, g.rank)
		if !g.row.Cut {
			lower(who.metrics, [2]string{g.row.Name, g.row.Model}, g.rank)
		}
	}
	return who
}

func lower[K comparable](lowest map[K]int, key K, rank int) {
	if old, ok := lowest[key]; !ok || rank < old {
		lowest[key] = rank
	}
}

// counts reports whether what rank had to say about a metric would have been
// part of the measurement. When the metric is not known for sure, it is part of
// what its source says.
func (who reporters) counts(rank int, spec metric.Spec, model string, source metric.Source, sure bool) bool {
	switch {
	case spec.Aggregate == metric.AggregateRoot:
		return rank == 0
	case spec.Aggregate != "" || who.every:
		return true
	case !sure:
		return rank == who.sources[source]
	}
	return rank == who.metrics[[2]string{spec.Name, model}]
}

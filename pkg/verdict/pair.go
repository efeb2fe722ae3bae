package verdict

import (
	"slices"

	"assay/pkg/evidence"
	"assay/pkg/metric"
)

// pair reports whether the job is a link: its client decides.
func (f *facts) pair() bool { return f.x.Scope == scopePair }

// scopePair is the scope of a verdict on a link.
const scopePair = "pair"

// leftBySkip reports whether a rank is the client of a link that was not launched since
// its server had declared a skip by then: that the link cannot be measured is all that
// both of them say.
func (u *unit) leftBySkip(r evidence.Rank) bool {
	if !u.pair() || u.world != 2 || r.Rank != 1 || r.State != evidence.RankEnded || r.Outcome != evidence.OutcomeRefused || r.Code != CodeRootEnded {
		return false
	}
	end, _ := u.ending(u.ranks[0], Reason{})
	return end == endedSkip
}

// clientDecides drops what the server of a link reported of metrics that its client
// reported too, unless the card says how they are put together. A link has one rank at
// each end: among others none is the client.
func (f *facts) clientDecides() {
	if f.x.Contract != ContractAcceptance || !f.pair() || len(f.ranks) != 2 {
		return
	}
	type metricName struct{ name, model string }
	client := map[metricName]bool{}
	for _, r := range f.ranks[1].Readings {
		client[metricName{r.Name, r.Model}] = true
	}
	for _, p := range f.ranks[1].Problems {
		if p.Code == CodeMetricNotANumber {
			client[metricName{p.Name, p.Model}] = true
		}
	}
	decided := func(name, model string, source metric.Source) bool {
		return name != "" && client[metricName{name, model}] && metric.SpecFor(f.x.Metrics, name, source).Aggregate == ""
	}
	server := &f.ranks[0]
	server.Readings = slices.DeleteFunc(slices.Clone(server.Readings), func(m metric.Reading) bool { return decided(m.Name, m.Model, m.Source) })
	server.Problems = slices.DeleteFunc(slices.Clone(server.Problems), func(p metric.Problem) bool {
		return p.Code == CodeMetricNotANumber && decided(p.Name, p.Model, p.Source)
	})
}

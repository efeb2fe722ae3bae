package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/phrase"
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
// reported too, and notes where the two differ, unless the card says how they are put
// together. A link has one rank at each end: among others none is the client.
func (f *facts) clientDecides() {
	if f.x.Contract != ContractAcceptance || !f.pair() || len(f.ranks) != 2 {
		return
	}
	client := map[metricName]metric.Reading{}
	for _, p := range f.ranks[1].Problems {
		if p.Code == CodeMetricNotANumber {
			client[metricName{p.Name, p.Model}] = metric.Reading{Text: p.Text, Label: true}
		}
	}
	for _, r := range f.ranks[1].Readings {
		client[metricName{r.Name, r.Model}] = r // the last counts
	}
	decided := func(name, model string, source metric.Source) bool {
		_, reported := client[metricName{name, model}]
		return name != "" && reported && metric.SpecFor(f.x.Metrics, name, source).Aggregate == ""
	}
	server := &f.ranks[0]
	dropped := map[metricName]metric.Reading{}
	server.Readings = slices.DeleteFunc(slices.Clone(server.Readings), func(m metric.Reading) bool {
		drop := decided(m.Name, m.Model, m.Source)
		if drop {
			dropped[metricName{m.Name, m.Model}] = m
		}
		return drop
	})
	server.Problems = slices.DeleteFunc(slices.Clone(server.Problems), func(p metric.Problem) bool {
		return p.Code == CodeMetricNotANumber && decided(p.Name, p.Model, p.Source)
	})
	f.serverDiffers(dropped, client)
}

type metricName struct{ name, model string }

// serverDiffers notes which of the readings that were dropped differ from those that
// count. Both ends of a good link measure a little differently, so that is no fault.
func (f *facts) serverDiffers(server, client map[metricName]metric.Reading) {
	names := slices.SortedFunc(maps.Keys(server), func(a, b metricName) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.model, b.model))
	})
	for _, n := range names {
		s, c := server[n], client[n]
		if s.NotApplicable == c.NotApplicable && s.Label == c.Label && s.Value == c.Value && (!s.Label || s.Text == c.Text) {
			continue
		}
		f.asides = append(f.asides, Reason{CodeMetricDisagrees, n.name, fmt.Sprintf(
			"%s was %s on %s, the server, and %s on %s, the client, which decides", n.name, shown(s), rankName(f.ranks[0]), shown(c), rankName(f.ranks[1]))})
	}
}

// shown is what was written for a reading, bounded.
func shown(r metric.Reading) string {
	text := phrase.Clip(r.Text, maxShown)
	if r.Label {
		return strconv.Quote(text)
	}
	return text
}

// maxShown bounds a value in a warning.
const maxShown = 100

package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// RankReadings are the readings of one rank. A rank that reported nothing has an
// entry too, so that its silence can be told.
type RankReadings struct {
	Rank     int
	Node     string // where it ran; empty: that is not known
	Readings []Reading
	// First is the source that counts before all others; empty: there is none.
	First Source
}

// origin names the rank, unless it is the only one.
func (r RankReadings) origin(ranks []RankReadings) *Origin {
	if len(ranks) < 2 {
		return nil
	}
	return &Origin{r.Rank, r.Node}
}

// Aggregate puts the readings of the ranks together: one measurement for each
// metric name and row model, and for each row when a results CSV repeats them,
// in the order in which the lowest rank reported them.
//
// A metric is put together as its spec declares. Without a declaration it is
// what rank 0 measured, or else the lowest rank that did. The problems say where
// ranks disagree or are silent; they change nothing in the measurements, but
// that one which cannot be a finite number is left out. Within a rank, a results
// CSV counts before a `performance:` line, that before metrics.json, and that
// before a `key=value` line, unless the rank says which source is the first.
func Aggregate(specs []Spec, ranks []RankReadings) ([]Measurement, []Problem) {
	out, problems, _ := aggregate(specs, ranks)
	return out, problems
}

// Each is like Aggregate, and gives of a metric without a declaration what every rank
// reported, each as a measurement of its own, by rank.
func Each(specs []Spec, ranks []RankReadings) []Measurement {
	_, _, each := aggregate(specs, ranks)
	return each
}

func aggregate(specs []Spec, ranks []RankReadings) (out []Measurement, problems []Problem, each []Measurement) {
	ranks = slices.Clone(ranks)
	slices.SortStableFunc(ranks, func(a, b RankReadings) int { return cmp.Compare(a.Rank, b.Rank) })
	var groups []*group
	index := map[groupKey]*group{}
	for _, r := range ranks {
		from := r.origin(ranks)
		chosen, conflicts := oneRank(r)
		for _, p := range conflicts {
			p.From = from
			problems = append(problems, p)
		}
		for _, k := range chosen {
			g := index[k.key]
			if g == nil {
				g = &group{key: k.key}
				index[k.key] = g
				groups = append(groups, g)
			}
			g.values = append(g.values, ranked{r.Rank, from, k.reading})
		}
	}
	for _, g := range groups {
		spec := SpecFor(specs, g.key.name, g.values[0].reading.Source)
		m, found := g.measure(spec, ranks)
		problems = append(problems, found...)
		if m != nil {
			out = append(out, *m)
		}
		switch {
		case !slices.Contains(Aggregates(), spec.Aggregate):
			each = append(each, g.each(spec, m == nil)...)
		case m != nil:
			each = append(each, *m)
		}
	}
	return out, problems, each
}

// SpecFor finds the declaration of a metric. One for "performance" stands for
// every value of a `performance:` line or results CSV that has none of its own.
func SpecFor(specs []Spec, name string, source Source) Spec {
	find := func(name string) int {
		return slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name })
	}
	i := find(name)
	if i < 0 && IsPerformance(source) {
		i = find(Performance)
	}
	if i < 0 {
		return Spec{Name: name}
	}
	spec := specs[i]
	spec.Name = name
	return spec
}

// IsPerformance reports whether values of a source are gated by the name
// "performance".
func IsPerformance(s Source) bool { return s == SourcePerformance || s == SourceResults }

type groupKey struct {
	name, model string
	row         int // counts rows of a results CSV that share name and model
}

type ranked struct {
	rank    int
	from    *Origin
	reading Reading
}

type group struct {
	key    groupKey
	values []ranked // by rank
}

type keyed struct {
	key     groupKey
	reading Reading
}

// oneRank chooses among the sources of one rank.
func oneRank(r RankReadings) (chosen []keyed, problems []Problem) {
	at := map[groupKey]int{}
	rows := map[groupKey]int{}
	first := map[groupKey]bool{} // what the first source says
	for _, reading := range r.Readings {
		if reading.Source == r.First {
			first[groupKey{name: reading.Name, model: reading.Model}] = true
		}
	}
	for _, reading := range r.Readings {
		if !reading.NotApplicable && !finite(reading.Value) {
			problems = append(problems, Problem{
				Code: CodeNotANumber, Name: reading.Name, Model: reading.Model, Source: reading.Source,
				Message: fmt.Sprintf("rank %d reported %s as %v, which is not a finite number", r.Rank, title(reading.Name, reading.Model), reading.Value),
			})
			continue
		}
		key := groupKey{name: reading.Name, model: reading.Model}
		if reading.Source == SourceResults && !first[key] {
			plain := key
			key.row = rows[plain]
			rows[plain]++
		}
		i, ok := at[key]
		if !ok {
			at[key] = len(chosen)
			chosen = append(chosen, keyed{key, reading})
			continue
		}
		old := chosen[i].reading
		better, worse := old, reading
		if r.precedence(reading.Source) <= r.precedence(old.Source) { // of the same source the later
			better, worse = reading, old
		}
		if !same(old, reading) && old.Source != reading.Source {
			problems = append(problems, disagreement(reading, "rank %d reported %s as %s (%s) and as %s (%s); the first of them counts",
				r.Rank, title(reading.Name, reading.Model), show(better), better.Source, show(worse), worse.Source))
		}
		chosen[i].reading = better
	}
	return chosen, problems
}

// precedence orders the sources: what is more deliberate comes first.
func (r RankReadings) precedence(s Source) int {
	if s == r.First {
		return -1
	}
	return slices.Index([]Source{SourceResults, SourcePerformance, SourceMetricsJSON, SourceKeyValue}, s)
}

func same(a, b Reading) bool {
	switch {
	case a.NotApplicable || b.NotApplicable || a.Label != b.Label:
		return a.NotApplicable == b.NotApplicable && a.Label == b.Label
	case a.Label:
		return a.Text == b.Text
	}
	return compareExact(a, b) == 0
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func show(r Reading) string {
	switch {
	case r.NotApplicable:
		return "n/a"
	case r.Label:
		return strconv.Quote(clip(r.Text))
	}
	if Rounded(r.Text, r.Value) != 0 {
		return clip(r.Text)
	}
	return formatNumber(r.Value)
}

// title is how a measurement is called: "llama/tokens" or "tokens".
func title(name, model string) string {
	if model == "" {
		return name
	}
	return model + "/" + name
}

func disagreement(r Reading, format string, args ...any) Problem {
	return Problem{Code: CodeDisagrees, Name: r.Name, Model: r.Model, Source: r.Source, Message: fmt.Sprintf(format, args...)}
}

// listValues spells "rank 0: 12, rank 1: 13", at most eight of them.
func listValues(values []ranked) string {
	const limit = 8
	var b strings.Builder
	for i, v := range values {
		if i == limit {
			fmt.Fprintf(&b, " and %d more", len(values)-limit)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "rank %d: %s", v.rank, show(v.reading))
	}
	return b.String()
}

package metric

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/phrase"
)

// The ways in which a metric of several ranks becomes one value.
const (
	AggregateRoot  = "root"  // what rank 0 reported
	AggregateMin   = "min"   // the smallest
	AggregateMax   = "max"   // the largest
	AggregateSum   = "sum"   // all added up
	AggregateMean  = "mean"  // the arithmetic mean
	AggregateAgree = "agree" // the one value that every rank reported
)

// Aggregates lists the words that a spec may use.
func Aggregates() []string {
	return []string{AggregateRoot, AggregateMin, AggregateMax, AggregateSum, AggregateMean, AggregateAgree}
}

// measure makes one measurement of the values of a group, or none.
func (g *group) measure(spec Spec, ranks []RankReadings) (*Measurement, []Problem) {
	if p := g.misread(spec); p != nil {
		return nil, []Problem{*p}
	}
	m, problems := g.combined(spec, ranks)
	return m, append(problems, g.otherUnit(spec)...)
}

func (g *group) combined(spec Spec, ranks []RankReadings) (*Measurement, []Problem) {
	switch spec.Aggregate {
	case "":
		return g.one(spec, g.first()), g.undeclared()
	case AggregateRoot:
		if g.values[0].rank != 0 {
			return nil, []Problem{g.absent("%s is what rank 0 reports, and rank 0 reported none (%s)", listValues(g.values))}
		}
		return g.one(spec, g.values[0]), nil
	case AggregateAgree:
		m, problems := g.one(spec, g.values[0]), g.silent(spec, ranks)
		if g.agree() {
			m.From = nil
		}
		return m, append(problems, g.disagreements()...)
	}
	numbers := g.numbers()
	if p, ok := g.label(spec, len(numbers)); ok {
		return g.one(spec, g.values[0]), append(g.silent(spec, ranks), p)
	}
	if len(numbers) == 0 { // n/a everywhere, or the same word
		m := g.one(spec, g.values[0])
		m.From = nil
		return m, g.silent(spec, ranks)
	}
	v, text, ok := g.combine(spec.Aggregate, numbers)
	if !ok {
		return g.one(spec, g.values[0]), []Problem{disagreement(g.values[0].reading, "%s is declared with the unknown aggregate %q; what rank %d reported counts", title(g.key.name, g.key.model), spec.Aggregate, g.values[0].rank)}
	}
	if !finite(v) {
		return nil, []Problem{{
			Code: CodeNotANumber, Name: g.key.name, Model: g.key.model, Source: g.values[0].reading.Source,
			Message: fmt.Sprintf("the %s of %s over %s is not a finite number", spec.Aggregate, title(g.key.name, g.key.model), phrase.Count(len(numbers), "rank")),
		}}
	}
	m := g.one(spec, g.values[0])
	m.Value, m.Text, m.NotApplicable, m.From = v, text, false, nil
	if e := g.extreme(spec); e != nil {
		m.From = e.from
		if Rounded(e.reading.Text, v) != 0 {
			m.Text = e.reading.Text
		}
	}
	return m, g.silent(spec, ranks)
}

// combine puts numbers together; text spells what comes out.
func (g *group) combine(how string, numbers []float64) (v float64, text string, ok bool) {
	switch how {
	case AggregateMin:
		v = slices.Min(numbers)
	case AggregateMax:
		v = slices.Max(numbers)
	case AggregateSum:
		v, text = g.total(1)
		return v, text, true
	case AggregateMean:
		v, text = g.total(len(numbers))
		return v, text, true
	default:
		return 0, "", false
	}
	return v, formatNumber(v), true
}

// one is the measurement that a single reading gives.
func (g *group) one(spec Spec, v ranked) *Measurement {
	r := v.reading
	unit := spec.Unit
	if unit == "" {
		unit = r.Unit
	}
	if unit == "" {
		unit, _ = UnitOf(g.key.name)
	}
	return &Measurement{Name: r.Name, Value: r.Value, Text: r.Text, Unit: unit, Model: r.Model, Source: r.Source, NotApplicable: r.NotApplicable, Label: r.Label, From: v.from}
}

// extreme is what the lowest rank reported that has the smallest or the largest value;
// nil where the values of all were put together.
func (g *group) extreme(spec Spec) *ranked {
	sign := map[string]int{AggregateMin: -1, AggregateMax: 1}[spec.Aggregate]
	if sign == 0 {
		return nil
	}
	var best *ranked
	for i, v := range g.values {
		if v.number() && (best == nil || compareExact(v.reading, best.reading) == sign) {
			best = &g.values[i]
		}
	}
	return best
}

// label says that words were reported where numbers are put together.
func (g *group) label(spec Spec, numbers int) (Problem, bool) {
	i := slices.IndexFunc(g.values, func(v ranked) bool { return v.reading.Label })
	if i < 0 || numbers == 0 && g.agree() {
		return Problem{}, false
	}
	return Problem{
		From: g.values[i].from,
		Code: CodeNotANumber, Name: g.key.name, Model: g.key.model, Source: g.values[i].reading.Source, Text: g.values[i].reading.Text,
		Message: fmt.Sprintf("%s is the %s over ranks, and not every rank reported a number (%s)", title(g.key.name, g.key.model), spec.Aggregate, listValues(g.values)),
	}, true
}

func (g *group) numbers() []float64 {
	var out []float64
	for _, v := range g.values {
		if v.number() {
			out = append(out, v.reading.Value)
		}
	}
	return out
}

// number reports whether a rank reported a number.
func (v ranked) number() bool { return !v.reading.NotApplicable && !v.reading.Label }

// undeclared warns when ranks differ and nobody said what that means.
func (g *group) undeclared() []Problem {
	if g.agree() || !slices.ContainsFunc(g.values, ranked.number) { // words may differ: a name of a host, a serial number
		return nil
	}
	r := g.values[0].reading
	return []Problem{disagreement(r, "%s differs between ranks (%s) and no aggregate is declared; the measurement is what rank %d reported", title(g.key.name, g.key.model), listValues(g.values), g.first().rank)}
}

// first is the value of the lowest rank that measured one: that one rank cannot
// measure it takes nothing from what another did.
func (g *group) first() ranked {
	i := slices.IndexFunc(g.values, func(v ranked) bool { return !v.reading.NotApplicable })
	return g.values[max(i, 0)]
}

// silent says which ranks an aggregate over all ranks lacks: those that reported
// nothing, and those that reported n/a beside numbers of others.
func (g *group) silent(spec Spec, ranks []RankReadings) []Problem {
	counts := spec.Aggregate == AggregateAgree || len(g.numbers()) == 0 // then n/a is as good as a number
	inapplicable := make(map[int]bool, len(g.values))                   // has every rank that reported
	for _, v := range g.values {
		inapplicable[v.rank] = v.reading.NotApplicable && !counts
	}
	var silent, without []int
	for _, r := range ranks {
		if na, reported := inapplicable[r.Rank]; !reported {
			silent = append(silent, r.Rank)
		} else if na {
			without = append(without, r.Rank)
		}
	}
	over := len(ranks) - len(silent) - len(without)
	var problems []Problem
	if len(silent) > 0 {
		problems = append(problems, g.absent("%s is the %s over %d of %s; none came from rank %s", spec.Aggregate, over, phrase.Count(len(ranks), "rank"), listRanks(silent)))
	}
	if len(without) > 0 {
		p := g.absent("%s is the %s over %d of %s; n/a came from rank %s", spec.Aggregate, over, phrase.Count(len(ranks), "rank"), listRanks(without))
		p.NotApplicable = true
		problems = append(problems, p)
	}
	return problems
}

// listRanks spells "1, 2, 5", at most eight of them.
func listRanks(ranks []int) string {
	const limit = 8
	var list []string
	for _, r := range ranks[:min(len(ranks), limit)] {
		list = append(list, strconv.Itoa(r))
	}
	text := strings.Join(list, ", ")
	if more := len(ranks) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (g *group) absent(format string, args ...any) Problem {
	args = append([]any{title(g.key.name, g.key.model)}, args...)
	return Problem{Code: CodeAbsent, Name: g.key.name, Model: g.key.model, Source: g.values[0].reading.Source, Message: fmt.Sprintf(format, args...)}
}

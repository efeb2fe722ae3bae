package metric

import "fmt"

// agree says whether every rank reported the same.
func (g *group) agree() bool {
	for _, v := range g.values[1:] {
		if !same(g.values[0].reading, v.reading) {
			return false
		}
	}
	return true
}

// disagreements names each rank that reported another value than most did; each that
// reported any when no value is more frequent than all others.
func (g *group) disagreements() []Problem {
	if g.agree() {
		return nil
	}
	frequent, all := g.mostFrequent(), listValues(g.values)
	var problems []Problem
	for _, v := range g.values {
		if frequent != nil && same(*frequent, v.reading) {
			continue
		}
		on := fmt.Sprintf("rank %d", v.rank)
		if v.from != nil {
			on = v.from.String()
		}
		p := disagreement(v.reading, "%s is %s on %s; it must be the same on every rank, and is not (%s)", title(g.key.name, g.key.model), show(v.reading), on, all)
		p.From, p.Text = v.from, v.reading.Text
		problems = append(problems, p)
	}
	return problems
}

// mostFrequent is the value that more ranks reported than any other; nil: there is none.
func (g *group) mostFrequent() *Reading {
	type value struct {
		inapplicable, label bool
		text                string
		number              float64
	}
	count := map[value]int{}
	var best *Reading
	most, tied := 0, false
	for _, v := range g.values {
		r := v.reading
		key := value{inapplicable: r.NotApplicable, label: r.Label}
		switch {
		case r.NotApplicable:
		case r.Label:
			key.text = r.Text
		default:
			key.number = r.Value
			if Rounded(r.Text, r.Value) != 0 {
				key.text = r.Text
			}
		}
		count[key]++
		switch n := count[key]; {
		case n > most:
			best, most, tied = &r, n, false
		case n == most:
			tied = true
		}
	}
	if tied {
		return nil
	}
	return best
}

package pairwise

import (
	"cmp"
	"math"
	"slices"
)

// Outcome says what came of measuring a link. The zero value is NotMeasured.
type Outcome int

// The outcomes.
const (
	NotMeasured Outcome = iota // nothing is known: it is counted, and never blamed
	Measured                   // it has a value
	Failed                     // it failed without a value, which is worse than any
)

// Link is what was found of the link between two nodes.
type Link struct {
	A, B    string // the server and the client
	Outcome Outcome
	Value   float64 // of a Measured one
}

// Better says which values of a metric are good. The zero value is Unknown: nothing
// can be ranked.
type Better int

// The directions.
const (
	Unknown Better = iota
	Higher
	Lower
)

// Standing says whether something stands out from the others. The zero value is
// Unremarkable.
type Standing int

// The standings.
const (
	Unremarkable Standing = iota
	// Suspect: it is slow where everything around it is not.
	Suspect
	// Unclear: it is slow, and what was measured does not tell whether it is the cause.
	Unclear
)

// NodeRank is what the links of a node say of it.
type NodeRank struct {
	Node        string
	Score       float64 // the upper median of its links' values; NaN when it has none
	Ratio       float64 // of the score to the median of all nodes' scores; NaN when there is none
	OthersScore float64 // the median of the others' scores; NaN when there is none
	Links       int     // measured or failed
	Slow        int     // how many of these are slow
	NotMeasured int
	Standing    Standing
}

// LinkRank is how a link compares with the others.
type LinkRank struct {
	Link
	Ratio    float64 // of the value to the median of all links; NaN when there is none
	Nodes    float64 // the worse of its nodes' scores; NaN when there is none
	Standing Standing
}

// Analysis is what the links of a set of nodes say of nodes and links.
type Analysis struct {
	Nodes []NodeRank // the worst first, those without a score last
	Links []LinkRank // the worst first, those that were not measured last
	// NodeMedian and LinkMedian are of the scores and of the values; NaN when there is
	// none.
	NodeMedian, LinkMedian float64
	NotMeasured            int // links
	// Comparable says that there are values which could be compared: a direction, and at
	// least two measured or failed links.
	Comparable bool
}

// Analyse tells bad nodes from bad links. A node is scored by the upper median of its
// links, so that one bad link does not harm it, and is suspect when that score is worse
// than the others' by more than noise. A link is suspect when it is worse than the worse
// of its two nodes is elsewhere, so that the links of a bad node are not blamed. It does
// not matter in which order links come.
func Analyse(links []Link, better Better) Analysis {
	a := &analyser{better: better, links: sorted(links), of: map[string][]int{}}
	a.gather()
	a.judgeNodes()
	a.judgeLinks()
	return a.result()
}

// analyser works with goodness: the value where higher is better, its negative where
// lower is, and -Inf of a link that failed without one. More is better.
type analyser struct {
	better Better
	links  []Link
	good   []float64 // by link; NaN: not measured
	known  int       // how many links were measured or failed
	of     map[string][]int
	names  []string

	ordered map[string][]float64 // by node: the goodness of its links, the worst first
	noise   float64              // how far links are off by chance, as a median deviation

	scores     map[string]float64 // only of nodes with a link that was measured or failed
	candidates map[string]bool    // slow by their score
	slow       []bool             // by link
	nodes      map[string]Standing
	standings  []Standing // by link
}

// sorted puts links into an order that does not depend on the one given.
func sorted(links []Link) []Link {
	out := slices.Clone(links)
	slices.SortStableFunc(out, func(x, y Link) int {
		return cmp.Or(cmp.Compare(min(x.A, x.B), min(y.A, y.B)), cmp.Compare(max(x.A, x.B), max(y.A, y.B)))
	})
	return out
}

func (a *analyser) gather() {
	a.good = make([]float64, len(a.links))
	a.slow = make([]bool, len(a.links))
	a.standings = make([]Standing, len(a.links))
	a.nodes, a.scores, a.candidates = map[string]Standing{}, map[string]float64{}, map[string]bool{}
	for i, l := range a.links {
		if a.good[i] = a.goodness(l); !math.IsNaN(a.good[i]) {
			a.known++
		}
		for _, n := range []string{l.A, l.B} {
			if _, known := a.of[n]; !known {
				a.names = append(a.names, n)
			}
			a.of[n] = append(a.of[n], i)
		}
	}
	slices.Sort(a.names)
	a.ordered = map[string][]float64{}
	for _, n := range a.names {
		if values := a.values(n); len(values) > 0 {
			a.ordered[n], a.scores[n] = slices.Sorted(slices.Values(values)), upperMedian(values)
		}
	}
	a.noise = a.measureNoise()
}

func (a *analyser) goodness(l Link) float64 {
	switch {
	case l.Outcome == Failed:
		return math.Inf(-1)
	case l.Outcome != Measured || math.IsNaN(l.Value):
		return math.NaN()
	case a.better == Lower:
		return -l.Value
	}
	return l.Value
}

// values are the goodness of the links of a node that were measured or failed.
func (a *analyser) values(node string) []float64 {
	var out []float64
	for _, i := range a.of[node] {
		if !math.IsNaN(a.good[i]) {
			out = append(out, a.good[i])
		}
	}
	return out
}

// others are the scores of all nodes but one.
func (a *analyser) others(node string) []float64 {
	var out []float64
	for _, n := range a.names {
		if s, ok := a.scores[n]; ok && n != node {
			out = append(out, s)
		}
	}
	return out
}

// comparable says whether anything can be compared.
func (a *analyser) comparable() bool { return a.better != Unknown && a.known >= 2 }

// judgeNodes finds the nodes whose score is bad. One all of whose links lead to other
// such nodes, or that has one link only, may be innocent: that cannot be told.
func (a *analyser) judgeNodes() {
	if !a.comparable() {
		return
	}
	for _, n := range a.names {
		others := a.others(n)
		score, ok := a.scores[n]
		if ok && len(others) > 0 && a.worse(score, median(others), max(deviation(others), a.scoreNoise(n)), len(a.ordered[n])) {
			a.candidates[n] = true
		}
	}
	a.findSlow()
	for n := range a.candidates {
		a.nodes[n] = Unclear
		if len(a.ordered[n]) < 2 {
			continue
		}
		for _, i := range a.of[n] {
			if a.slow[i] && !a.candidates[a.links[i].other(n)] {
				a.nodes[n] = Suspect
			}
		}
	}
}

// findSlow marks the links that are worse than the scores of the nodes whose score is
// not bad.
func (a *analyser) findSlow() {
	var healthy []float64
	for _, n := range a.names {
		if s, ok := a.scores[n]; ok && !a.candidates[n] {
			healthy = append(healthy, s)
		}
	}
	mid, spread := median(healthy), max(deviation(healthy), a.noise)
	for i, g := range a.good {
		a.slow[i] = !math.IsNaN(g) && a.worse(g, mid, spread, a.fewest(i))
	}
}

// fewest is how many links the one of a link's nodes has that has fewer.
func (a *analyser) fewest(link int) int {
	return min(len(a.ordered[a.links[link].A]), len(a.ordered[a.links[link].B]))
}

func (l Link) other(node string) string {
	if l.A == node {
		return l.B
	}
	return l.A
}

// judgeLinks finds the links that are worse than both of their nodes are elsewhere.
func (a *analyser) judgeLinks() {
	if !a.comparable() {
		return
	}
	for i, l := range a.links {
		switch {
		case math.IsNaN(a.good[i]):
		case a.worse(a.good[i], a.reference(i), a.noise, a.fewest(i)):
			a.standings[i] = Suspect
		case a.slow[i] && a.nodes[l.A] != Suspect && a.nodes[l.B] != Suspect && (a.nodes[l.A] == Unclear || a.nodes[l.B] == Unclear):
			a.standings[i] = Unclear
		}
	}
}

// reference is the worse of the scores of a link's nodes.
func (a *analyser) reference(link int) float64 {
	return min(a.scores[a.links[link].A], a.scores[a.links[link].B])
}

package pairwise

import (
	"math"
	"slices"
)

// result ranks nodes and links.
func (a *analyser) result() Analysis {
	out := Analysis{Comparable: a.comparable()}
	all := a.others("")
	var known []float64
	for _, g := range a.good {
		if math.IsNaN(g) {
			out.NotMeasured++
		} else {
			known = append(known, g)
		}
	}
	out.NodeMedian, out.LinkMedian = a.value(median(all)), a.value(median(known))
	for _, n := range a.names {
		out.Nodes = append(out.Nodes, a.nodeRank(n, out.NodeMedian))
	}
	for i, l := range a.links {
		r := LinkRank{Link: l, Ratio: math.NaN(), Nodes: a.value(min(a.score(l.A), a.score(l.B))), Standing: a.standings[i]}
		if l.Outcome == Measured {
			r.Ratio = ratio(l.Value, out.LinkMedian)
		}
		out.Links = append(out.Links, r)
	}
	slices.SortStableFunc(out.Nodes, func(x, y NodeRank) int { return worstFirst(a.score(x.Node), a.score(y.Node)) })
	slices.SortStableFunc(out.Links, func(x, y LinkRank) int { return worstFirst(a.goodness(x.Link), a.goodness(y.Link)) })
	return out
}

func (a *analyser) nodeRank(node string, mid float64) NodeRank {
	r := NodeRank{Node: node, Score: a.value(a.score(node)), OthersScore: a.value(median(a.others(node))), Standing: a.nodes[node]}
	r.Ratio = ratio(r.Score, mid)
	for _, i := range a.of[node] {
		switch {
		case math.IsNaN(a.good[i]):
			r.NotMeasured++
		case a.slow[i]:
			r.Slow++
			fallthrough
		default:
			r.Links++
		}
	}
	return r
}

// score is the goodness of a node, NaN when nothing is known of it.
func (a *analyser) score(node string) float64 {
	if s, ok := a.scores[node]; ok {
		return s
	}
	return math.NaN()
}

// value turns goodness back into a value; NaN for that of a failure.
func (a *analyser) value(good float64) float64 {
	switch {
	case math.IsInf(good, 0):
		return math.NaN()
	case a.better == Lower && good != 0:
		return -good
	}
	return good
}

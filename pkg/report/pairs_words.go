package report

import (
	"fmt"
	"strconv"
	"strings"

	"assay/pkg/pairwise"
	"assay/pkg/phrase"
)

// findings are the sentences that say what to look at.
func findings(p Pairs, a pairwise.Analysis) []string {
	out := []string{}
	switch {
	case p.Metric == "":
		out = append(out, "the card declares no metric, so that links are not compared; declare one with what is better (higher or lower)")
	case p.Better == "":
		out = append(out, fmt.Sprintf("nothing is ranked: the card does not say what is better of %s (higher or lower)", p.Metric))
	case !a.Comparable:
		out = append(out, "fewer than two links were measured, so that nothing can be told apart")
	default:
		for _, n := range a.Nodes {
			out = append(out, p.ofNode(n)...)
		}
		for _, l := range a.Links {
			out = append(out, p.ofLink(l, a)...)
		}
		if len(out) == 0 {
			out = append(out, "no node and no link stands out from the others")
		}
	}
	if p.NotMeasured > 0 {
		out = append(out, fmt.Sprintf("%d of %s could not be measured, and nothing is said of what they are like", p.NotMeasured, phrase.Count(len(a.Links), "link")))
	}
	return out
}

func (p Pairs) ofNode(n pairwise.NodeRank) []string {
	score, others := p.quantity(n.Score), p.quantity(n.OthersScore)
	switch {
	case n.Standing == pairwise.Suspect && n.Slow < n.Links:
		return []string{fmt.Sprintf("%s: %d of its %d links are slow (%s; the others' median is %s): look at the node", n.Node, n.Slow, n.Links, score, others)}
	case n.Standing == pairwise.Suspect:
		return []string{fmt.Sprintf("%s: all its links are slow (%s; the others' median is %s): look at the node", n.Node, score, others)}
	case n.Standing == pairwise.Unclear && (n.Links > 1 || !p.hasUnclearLink(n.Node)):
		return []string{fmt.Sprintf("%s: slow (%s; the others' median is %s), but only on links to nodes that are slow themselves: measure it with another node", n.Node, score, others)}
	}
	return nil // of an unclear one with one link the link tells
}

func (p Pairs) hasUnclearLink(node string) bool {
	for _, l := range p.LinkRanking {
		if l.Unclear && (l.Nodes[0] == node || l.Nodes[1] == node) {
			return true
		}
	}
	return false
}

func (p Pairs) ofLink(l pairwise.LinkRank, a pairwise.Analysis) []string {
	name, slow, elsewhere := linkName(l.A, l.B), "slow ("+p.quantity(l.Value)+")", p.quantity(l.Nodes)
	if l.Outcome == pairwise.Failed {
		slow = "failed"
	}
	switch l.Standing {
	case pairwise.Suspect:
		for _, n := range a.Nodes {
			if n.Standing == pairwise.Suspect && (n.Node == l.A || n.Node == l.B) {
				return []string{fmt.Sprintf("%s: %s, worse than %s is on other links (%s): look at the cable or port too", name, slow, n.Node, elsewhere)}
			}
		}
		return []string{fmt.Sprintf("%s: %s although both nodes are fast on other links (%s): look at the cable or port", name, slow, elsewhere)}
	case pairwise.Unclear:
		return []string{fmt.Sprintf("%s: %s where other links reach %s, and %s: look at both nodes and at the link, or measure them with others", name, slow, p.quantity(a.LinkMedian), p.onlyThere(l, a))}
	case pairwise.Unremarkable:
	}
	return nil
}

// onlyThere names the nodes of a link that were measured on no other.
func (p Pairs) onlyThere(l pairwise.LinkRank, a pairwise.Analysis) string {
	var names []string
	for _, n := range a.Nodes {
		if n.Standing == pairwise.Unclear && (n.Node == l.A || n.Node == l.B) {
			names = append(names, n.Node)
		}
	}
	if len(names) == 1 {
		return names[0] + " has no other link that tells more"
	}
	return strings.Join(names, " and ") + " have no other link that tells more"
}

func linkName(a, b string) string { return a + "–" + b }

// quantity is a value of the metric with its unit.
func (p Pairs) quantity(v float64) string {
	n := finite(v)
	switch {
	case n == nil:
		return "failed"
	case p.Unit == "":
		return short(*n)
	}
	return short(*n) + " " + p.Unit
}

// short is a number to four digits.
func short(v float64) string {
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if strings.Contains(text, "e") && v > -1e7 && v < 1e7 && (v >= 1e4 || v <= -1e4) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return text
}

// title names the test and the metric.
func (p Pairs) title() string {
	text := "pairs of " + p.Test
	for _, axis := range sortedKeys(p.Variant) {
		text += " " + axis + "=" + p.Variant[axis]
	}
	if p.Metric == "" {
		return text
	}
	text += ": " + p.Metric
	if p.Unit != "" && !strings.HasSuffix(p.Metric, p.Unit) {
		text += " in " + p.Unit
	}
	if p.Better != "" {
		text += ", " + p.Better + " is better"
	}
	return text
}

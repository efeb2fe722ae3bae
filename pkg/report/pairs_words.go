package report

import (
	"fmt"
	"strconv"
	"strings"

	"assay/pkg/pairwise"
	"assay/pkg/phrase"
)

// Fact is a finding in words for people: what was measured, and what to do about it.
type Fact struct {
	Measured string
	Advice   string // empty: there is none
}

// said are the findings for people. On target local nodes are names for parts of one
// machine, of which there is nothing to look at.
func (p Pairs) said(target string) []string {
	if len(p.Facts) == 0 { // it was read from a file
		return p.Findings
	}
	var out []string
	for _, f := range p.Facts {
		if f.Advice != "" && target != "local" {
			f.Measured += "; " + f.Advice
		}
		out = append(out, f.Measured)
	}
	return out
}

// found is a finding that JSON and people are told in the same words.
func (p *Pairs) found(text string) { p.tell(text, text, "") }

func (p *Pairs) tell(finding, measured, advice string) {
	p.Findings, p.Facts = append(p.Findings, finding), append(p.Facts, Fact{measured, advice})
}

// find says what there is to look at.
func (p *Pairs) find(a pairwise.Analysis) {
	p.Findings = []string{}
	switch {
	case p.Metric == "":
		p.found("the test declares no metric to compare links by; declare one with what is better (higher or lower)")
	case p.Better == "":
		p.found(fmt.Sprintf("nothing is ranked: the card does not say what is better of %s (higher or lower)", p.Metric))
	case !a.Comparable:
		p.found("fewer than two links were measured, so that nothing can be told apart")
	default:
		for _, n := range a.Nodes {
			p.ofNode(n)
		}
		for _, l := range a.Links {
			p.ofLink(l, a)
		}
		if len(p.Findings) == 0 {
			p.found("no node and no link stands out from the others")
		}
	}
	if p.NotMeasured > 0 {
		done := "measured"
		if p.Metric == "" {
			done = "judged"
		}
		p.found(fmt.Sprintf("%d of %s could not be %s, and nothing is said of what they are like", p.NotMeasured, phrase.Count(len(a.Links), "link"), done))
	}
}

func (p *Pairs) ofNode(n pairwise.NodeRank) {
	values := fmt.Sprintf("(%s; the others' median is %s)", p.quantity(n.Score), p.quantity(n.OthersScore))
	against := p.against(n.Score, n.OthersScore)
	switch {
	case n.Standing == pairwise.Suspect && n.Slow < n.Links:
		verb := "are"
		if n.Slow == 1 {
			verb = "is"
		}
		p.tell(fmt.Sprintf("%s: %d of its %d links %s slow %s: look at the node", n.Node, n.Slow, n.Links, verb, values),
			fmt.Sprintf("%s: %d of its %d links %s slower than the others' (%s)", n.Node, n.Slow, n.Links, verb, against), "look at the node")
	case n.Standing == pairwise.Suspect && finite(n.Score) == nil:
		p.tell(fmt.Sprintf("%s: all its links are slow %s: look at the node", n.Node, values),
			fmt.Sprintf("%s: all its links failed (the others' median is %s)", n.Node, p.quantity(n.OthersScore)), "look at the node")
	case n.Standing == pairwise.Suspect:
		p.tell(fmt.Sprintf("%s: all its links are slow %s: look at the node", n.Node, values),
			fmt.Sprintf("%s: all its links are slower than the others' (%s)", n.Node, against), "look at the node")
	case n.Standing == pairwise.Unclear && (n.Links > 1 || !p.hasUnclearLink(n.Node)): // else the link tells
		p.tell(fmt.Sprintf("%s: slow %s, but only on links to nodes that are slow themselves: measure it with another node", n.Node, values),
			fmt.Sprintf("%s: slower than the others (%s), but only on links to nodes that are slow themselves", n.Node, against), "measure it with another node")
	}
}

func (p Pairs) hasUnclearLink(node string) bool {
	for _, l := range p.LinkRanking {
		if l.Unclear && (l.Nodes[0] == node || l.Nodes[1] == node) {
			return true
		}
	}
	return false
}

func (p *Pairs) ofLink(l pairwise.LinkRank, a pairwise.Analysis) {
	name, slow, elsewhere := linkName(l.A, l.B), "slow ("+p.quantity(l.Value)+")", p.quantity(l.Nodes)
	failed := l.Outcome == pairwise.Failed
	if failed {
		slow = "failed"
	}
	// than is what the link is compared with, and its value.
	measured := func(than string, value float64) string {
		if failed {
			return fmt.Sprintf("%s: failed, where %s reach %s", name, than, p.quantity(value))
		}
		return fmt.Sprintf("%s: slower than %s (%s)", name, than, p.against(l.Value, value))
	}
	switch l.Standing {
	case pairwise.Suspect:
		for _, n := range a.Nodes {
			if n.Standing == pairwise.Suspect && (n.Node == l.A || n.Node == l.B) {
				p.tell(fmt.Sprintf("%s: %s, worse than %s is on other links (%s): look at the cable or port too", name, slow, n.Node, elsewhere),
					measured("other links of "+n.Node, l.Nodes), "look at the cable or port too")
				return
			}
		}
		p.tell(fmt.Sprintf("%s: %s although both nodes are fast on other links (%s): look at the cable or port", name, slow, elsewhere),
			measured("other links of both nodes", l.Nodes), "look at the cable or port")
	case pairwise.Unclear:
		const advice = "look at both nodes and at the link, or measure them with others"
		only := p.onlyThere(l, a)
		p.tell(fmt.Sprintf("%s: %s where other links reach %s, and %s: %s", name, slow, p.quantity(a.LinkMedian), only, advice),
			measured("other links", a.LinkMedian)+", and "+only, advice)
	case pairwise.Unremarkable:
	}
}

// against are two values of the metric with its unit.
func (p Pairs) against(v, other float64) string {
	if finite(v) == nil || finite(other) == nil || p.Unit == "" {
		return p.quantity(v) + " against " + p.quantity(other)
	}
	return short(v) + " against " + p.quantity(other)
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

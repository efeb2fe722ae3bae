package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

const (
	matrixNodes = 8  // how many a matrix of 80 columns has at most
	matrixName  = 14 // columns of a node's name
	matrixCell  = 7  // columns of a value, without the mark behind it
	rankedShown = 8  // of nodes and of links, where there is no matrix

	findingsShown = 12 // of a test
)

// pairs writes what links say of nodes and links: a matrix where it fits, else those
// that are worst, and what to look at.
func pairs(buf *bytes.Buffer, list []Pairs, target string, all bool) {
	for _, p := range list {
		fmt.Fprintf(buf, "%s\n", phrase.Line(p.title()))
		switch {
		case len(p.Nodes) <= matrixNodes:
			p.matrix(buf)
		case p.Better != "":
			p.worst(buf)
		}
		said := p.said(target)
		for i, f := range said {
			if i == findingsShown && !all {
				fmt.Fprintf(buf, "    …and %d more, all with --verbose and in the report\n", len(said)-i)
				break
			}
			fmt.Fprintf(buf, "    %s\n", phrase.Line(f))
		}
	}
}

func (p Pairs) matrix(buf *bytes.Buffer) {
	label := 0
	for _, n := range p.Nodes {
		label = max(label, textWidth(phrase.Line(n)))
	}
	label = min(label, matrixName)
	line := strings.Repeat(" ", label+1)
	for _, n := range p.Nodes {
		line += padLeft(tail(phrase.Line(n), matrixCell), matrixCell) + " "
	}
	fmt.Fprintf(buf, "    %s\n", strings.TrimRight(line, " "))
	for i, n := range p.Nodes {
		name := tail(phrase.Line(n), label)
		line := name + p.nodeMark(n) + strings.Repeat(" ", label-textWidth(name))
		for k := range p.Nodes {
			line += padLeft(p.cell(i, k), matrixCell) + p.linkMark(n, p.Nodes[k])
		}
		fmt.Fprintf(buf, "    %s\n", strings.TrimRight(line, " "))
	}
}

// cell is a value, or the verdict of a link that has none.
func (p Pairs) cell(i, k int) string {
	switch {
	case i == k:
		return "-"
	case p.Cells[i][k] != nil:
		if text := short(*p.Cells[i][k]); len(text) <= matrixCell {
			return text
		}
		return fmt.Sprintf("%.1g", *p.Cells[i][k])
	case p.Words[i][k] == "":
		return "."
	case p.Words[i][k] == verdict.NoMetric.String():
		return "NONE"
	}
	return phrase.Clip(p.Words[i][k], matrixCell)
}

// The marks behind nodes and links that stand out.
const (
	suspectMark = "!"
	unclearMark = "?"
	noMark      = " "
)

func standing(suspect, unclear bool) string {
	switch {
	case suspect:
		return suspectMark
	case unclear:
		return unclearMark
	}
	return noMark
}

func (p Pairs) nodeMark(node string) string {
	for _, n := range p.NodeRanking {
		if n.Node == node {
			return standing(n.Suspect, n.Unclear)
		}
	}
	return noMark
}

func (p Pairs) linkMark(a, b string) string {
	for _, l := range p.LinkRanking {
		if l.Nodes == [2]string{a, b} || l.Nodes == [2]string{b, a} {
			return standing(l.Suspect, l.Unclear)
		}
	}
	return noMark
}

// worst writes the nodes and links that are worst.
func (p Pairs) worst(buf *bytes.Buffer) {
	fmt.Fprintf(buf, "    the worst of %s:\n", phrase.Count(len(p.Nodes), "node"))
	for _, n := range p.NodeRanking[:min(rankedShown, len(p.NodeRanking))] {
		fmt.Fprintf(buf, "      %s%s %s\n", phrase.Line(n.Node), standing(n.Suspect, n.Unclear), p.compare(n.Score, n.Ratio))
	}
	fmt.Fprintf(buf, "    the worst of %s:\n", phrase.Count(len(p.LinkRanking), "link"))
	for _, l := range p.LinkRanking[:min(rankedShown, len(p.LinkRanking))] {
		fmt.Fprintf(buf, "      %s%s %s\n", phrase.Line(linkName(l.Nodes[0], l.Nodes[1])), standing(l.Suspect, l.Unclear), p.compare(l.Value, l.Ratio))
	}
}

// compare is a value and how it compares with the median.
func (p Pairs) compare(value, ratio *float64) string {
	switch {
	case value == nil:
		return "no value"
	case ratio == nil:
		return p.quantity(*value)
	}
	return fmt.Sprintf("%s (%.0f %% of the median)", p.quantity(*value), *ratio*100)
}

func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-textWidth(s))) + s }

// tail is the end of a name, where names that are alike differ.
func tail(s string, n int) string {
	r := []rune(s)
	if textWidth(s) <= n {
		return s
	}
	for textWidth(string(r)) > n-1 && len(r) > 0 {
		r = r[1:]
	}
	return "…" + string(r)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

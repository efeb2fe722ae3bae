package lint

import (
	"fmt"
	"slices"
	"strings"

	"assay/pkg/document"
)

// edit replaces [start, end) of a text.
type edit struct {
	start, end int
	text       string
}

// apply makes edits that do not overlap.
func apply(source string, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(source[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(source[at:])
	return b.String()
}

// cuts removes members of the root with the comma and the space that belong to
// them: up to the next member that stays, or back to the one before.
func cuts(doc *document.Document, names []string) []edit {
	members := slices.Collect(doc.Root().Children())
	gone := func(i int) bool { return slices.Contains(names, members[i].Key()) }
	var edits []edit
	for i := 0; i < len(members); i++ {
		if !gone(i) {
			continue
		}
		from := i
		for i+1 < len(members) && gone(i+1) {
			i++
		}
		start, _ := members[from].Offsets()
		_, end := members[i].Offsets()
		switch {
		case i+1 < len(members):
			end, _ = members[i+1].Offsets()
		case from > 0:
			_, start = members[from-1].Offsets()
		}
		edits = append(edits, edit{start, end, ""})
	}
	return edits
}

// unifiedDiff shows a change of one region with three lines around it. The
// regions of Fix may lie apart; each run of equal lines longer than six ends a
// hunk.
func unifiedDiff(name, before, after string) string {
	a, b := lines(before), lines(after)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", name, name)
	for _, h := range hunks(diffLines(a, b)) {
		h.write(&out)
	}
	return out.String()
}

func lines(s string) []string {
	all := strings.SplitAfter(s, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// change is one line of a diff: ' ', '-' or '+'.
type change struct {
	op           byte
	text         string
	lineA, lineB int // the line it is, or comes before, in each text
}

// diffLines pairs lines greedily: a line that is gone here and appears there is
// found by looking ahead. The texts differ in a few moved blocks, so a full
// longest common subsequence is not needed to get a readable diff.
func diffLines(a, b []string) []change {
	var out []change
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			out = append(out, change{' ', a[i], i, j})
			i, j = i+1, j+1
			continue
		}
		di, dj := resync(a[i:], b[j:])
		for range di {
			out = append(out, change{'-', a[i], i, j})
			i++
		}
		for range dj {
			out = append(out, change{'+', b[j], i, j})
			j++
		}
	}
	return out
}

// resync returns the smallest step in both texts to two lines that are equal.
func resync(a, b []string) (int, int) {
	const reach = 2000
	for sum := 1; sum <= min(len(a)+len(b), reach); sum++ {
		for di := max(0, sum-len(b)); di <= min(sum, len(a)); di++ {
			dj := sum - di
			if di < len(a) && dj < len(b) && a[di] == b[dj] && steady(a[di:], b[dj:]) {
				return di, dj
			}
		}
	}
	return len(a), len(b)
}

// steady says whether two texts agree for three lines, or to their ends.
func steady(a, b []string) bool {
	for k := range 3 {
		if k >= len(a) || k >= len(b) {
			return len(a) == len(b)
		}
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

type hunk []change

const contextLines = 3

// hunks cuts a diff into regions with their context.
func hunks(all []change) []hunk {
	var out []hunk
	for i := 0; i < len(all); i++ {
		if all[i].op == ' ' {
			continue
		}
		start, end := max(0, i-contextLines), i
		for k := i; k < len(all) && k <= end+2*contextLines; k++ {
			if all[k].op != ' ' {
				end = k
			}
		}
		stop := min(len(all), end+contextLines+1)
		out = append(out, hunk(all[start:stop]))
		i = stop - 1
	}
	return out
}

func (h hunk) write(out *strings.Builder) {
	na, nb := 0, 0
	for _, c := range h {
		if c.op != '+' {
			na++
		}
		if c.op != '-' {
			nb++
		}
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", h[0].lineA+1, na, h[0].lineB+1, nb)
	for _, c := range h {
		out.WriteByte(c.op)
		out.WriteString(c.text)
		if !strings.HasSuffix(c.text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

package discover

import (
	"slices"
	"sort"
	"strings"
)

// Nearest returns the candidates that someone who wrote word may have meant, the
// likeliest first, at most n: those within a few edits of it, and those that it
// begins or is a part of.
func Nearest(word string, candidates []string, n int) []string {
	type scored struct {
		text string
		cost int
	}
	folded := strings.ToLower(word)
	limit := min(3, (len([]rune(word))+1)/3)
	var near []scored
	for _, c := range candidates {
		low := strings.ToLower(c)
		cost := distance(folded, low)
		if scope, ok := strings.CutSuffix(low, "/"+All); ok {
			cost = min(cost, distance(folded, scope))
		}
		if cost > limit {
			part := strings.Contains(low, folded) || len(low) >= 3 && strings.HasPrefix(folded, low)
			if len(folded) < 3 || !part {
				continue
			}
			cost = limit + 1
		}
		near = append(near, scored{c, cost})
	}
	sort.SliceStable(near, func(i, j int) bool {
		if near[i].cost != near[j].cost {
			return near[i].cost < near[j].cost
		}
		return near[i].text < near[j].text
	})
	var out []string
	for _, s := range near {
		if len(out) < n && !slices.Contains(out, s.text) {
			out = append(out, s.text)
		}
	}
	return out
}

// distance counts the insertions, deletions, replacements and swaps of neighbours
// that make a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	older, old, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range row {
		old[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(y)]
}

package discover

import (
	"slices"
	"sort"
	"strings"

	"assay/pkg/spelling"
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
		cost := spelling.Distance(folded, low, limit)
		if scope, ok := strings.CutSuffix(low, "/"+All); ok {
			cost = min(cost, spelling.Distance(folded, scope, limit))
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

package document

import (
	"slices"
	"strings"
	"unicode"
)

// Nearest returns the candidate that word was probably meant to be, or "" when
// none is close: the same but for case, hyphens and underscores, or one edit
// away (two for words of six letters or more; a swap of neighbours is one edit).
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", 3
	folded := fold(word)
	if len(folded) < 3 || len(folded) > 64 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(candidates))
	for _, c := range sorted {
		if c == "" {
			continue
		}
		f := fold(c)
		limit := 1
		if min(len(folded), len(f)) >= 6 {
			limit = 2
		}
		if d := distance(folded, f, limit); d <= limit && d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// distance is the number of insertions, deletions, substitutions and swaps of
// neighbours between two words, or limit+1 when it is more than limit.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return min(previous[len(b)], limit+1)
}

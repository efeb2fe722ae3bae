// Package spelling finds the word that somebody meant to write.
package spelling

import (
	"slices"
	"strings"
	"unicode"
)

// longest bounds the words that are compared, in letters: nobody misspells more.
const longest = 64

// Nearest returns the candidate that word was probably meant to be, or "" when
// none is close: the same but for case, hyphens, underscores and spaces, or one
// edit away; two for words of six letters or more.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", 3
	folded := fold(word)
	if n := len([]rune(folded)); n < 3 || n > longest {
		return ""
	}
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if c == "" {
			continue
		}
		f := fold(c)
		limit := 1
		if min(len(folded), len(f)) >= 6 {
			limit = 2
		}
		if d := Distance(folded, f, limit); d <= limit && d < bestDistance {
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

// Distance counts the insertions, deletions, replacements and swaps of neighbours
// that make a into b (the optimal string alignment distance). It is limit+1 when
// there are more than limit.
func Distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d > limit || -d > limit || len(x) > longest || len(y) > longest {
		return limit + 1
	}
	before, previous, current := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(x); i++ {
		current[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return min(previous[len(y)], limit+1)
}

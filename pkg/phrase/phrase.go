// Package phrase makes the words for people that every part of the program says
// in the same way: numbers of things, durations, and text of others that is made
// safe and short.
package phrase

import (
	"fmt"
	"math"
	"strings"
)

// Count writes a number of things: "1 job", "3 jobs", "2 processes".
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Seconds writes a duration that is given in seconds: "0.51 s", "12.3 s",
// "1m15s", "2h05m".
func Seconds(s float64) string {
	s = max(s, 0)
	switch {
	case math.IsNaN(s):
		return "0.00 s"
	case s < 9.995:
		return fmt.Sprintf("%.2f s", s)
	case s < 59.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 3599.5:
		whole := int(math.Round(s))
		return fmt.Sprintf("%dm%02ds", whole/60, whole%60)
	}
	minutes := math.Floor(math.Round(s) / 60)
	return fmt.Sprintf("%.0fh%02.0fm", math.Floor(minutes/60), math.Mod(minutes, 60))
}

// Clip returns s when it has at most n characters, and else the first n of them
// and an ellipsis.
func Clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

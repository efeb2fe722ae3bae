package plan

import (
	"strconv"
	"strings"
	"unicode"
)

// printable escapes what a terminal would not show as it is, so that a value of
// a manifest can neither break a line nor steer the terminal.
func printable(s string) string {
	if strings.IndexFunc(s, odd) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if odd(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func odd(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

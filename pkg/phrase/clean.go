package phrase

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns s with everything that could steer a terminal or hide text made
// visible: control characters, escape sequences, overrides of the writing
// direction, characters without a shape and bytes that are no UTF-8 become
// escapes such as \x1b. Newlines and tabs stay.
func Clean(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) })
}

// Escape is Clean for a value that has to stay on its line and be told apart
// from any other: newlines and tabs become escapes too.
func Escape(s string) string {
	return escape(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// Line is Clean for a sentence, or a cell of a table: newlines and tabs become
// spaces.
func Line(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\n", " ", "\t", " ").Replace(Clean(strings.ReplaceAll(s, "\r\n", "\n"))))
}

func escape(s string, odd func(rune) bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || odd(r) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !odd(r):
			b.WriteRune(r)
		default:
			b.WriteString(escaped(r))
		}
		i += n
	}
	return b.String()
}

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

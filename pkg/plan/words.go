package plan

import (
	"errors"
	"strings"
)

// SplitWords splits a string into words as a POSIX shell does, without any
// expansion: quotes and backslashes are removed, and `$HOME`, `*`, `#`, `|` and
// the like are ordinary characters. An unbalanced quote is an error.
func SplitWords(s string) ([]string, error) {
	var (
		words  []string
		word   strings.Builder
		inWord bool
	)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		case '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("a single quote is opened and never closed")
			}
			word.WriteString(s[i+1 : i+1+n])
			i += 1 + n
			inWord = true
		case '"':
			n, err := doubleQuoted(s[i+1:], &word)
			if err != nil {
				return nil, err
			}
			i += n
			inWord = true
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New("it ends in a backslash that quotes nothing")
			}
			if s[i] != '\n' { // a backslash at the end of a line joins the lines
				word.WriteByte(s[i])
				inWord = true
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// doubleQuoted writes what stands before the closing double quote of s, and
// returns how much of s it took, with the quote. A backslash quotes only what
// has a meaning inside double quotes.
func doubleQuoted(s string, word *strings.Builder) (int, error) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '"' {
			return i + 1, nil
		}
		if c == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] != '\n' {
				word.WriteByte(s[i])
			}
			continue
		}
		word.WriteByte(c)
	}
	return 0, errors.New("a double quote is opened and never closed")
}

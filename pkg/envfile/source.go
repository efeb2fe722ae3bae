package envfile

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/regular"
)

// quoteAdvice follows the complaint that a part of a value is no command.
const quoteAdvice = " (put quotes around a value that holds spaces, or any of ; & | ( ) < >)"

// sourceText is the text of a file that bash complains about; empty when it
// cannot be read. It tells the names of variables from parts of values.
type sourceText struct{ text string }

func newSourceText(path string) sourceText {
	if !filepath.IsAbs(path) {
		return sourceText{}
	}
	data, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return sourceText{}
	}
	return sourceText{string(data)}
}

// advice says what to do about a complaint, where that is known: in
// TOKEN=abc def bash takes def for a command.
func (t sourceText) advice(number, complaint string) string {
	subject, ok := strings.CutSuffix(complaint, ": command not found")
	n, err := strconv.Atoi(number)
	lines := strings.Split(t.text, "\n")
	if !ok || err != nil || n < 1 || n > len(lines) || !inValue(lines[n-1], subject) {
		return ""
	}
	return quoteAdvice
}

// inValue reports whether the word may be a part of an unquoted value that the
// line assigns: it comes after what bash took for the value, and nothing that
// surely ends that command stands between them.
func inValue(line, word string) bool {
	if strings.Contains(line, "$("+word) || strings.Contains(line, "`"+word) {
		return false // a command that gives the value
	}
	assignment := regexp.MustCompile(`(?:^|[\s;&|(])[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=`)
	for _, m := range assignment.FindAllStringIndex(line, -1) {
		rest := commandOf(line[m[1]:])
		if end := strings.IndexAny(rest, " \t;&|()<>"); end >= 0 && standsIn(rest[end:], word) {
			return true
		}
	}
	return false
}

// standsIn reports whether the word is written in the line as it stands.
func standsIn(line, word string) bool {
	return slices.Contains(regexp.MustCompile("[\\s;&|()<>`]+").Split(line, -1), word)
}

// commandOf cuts the text after the command that it begins in: at a separator
// beside a space, outside of quotes. A separator between other characters may as
// well be meant as a part of a value.
func commandOf(text string) string {
	for _, m := range regexp.MustCompile(`\s[;&|]|[;&|]\s|\s#`).FindAllStringIndex(text, -1) {
		before := text[:m[0]]
		if strings.Count(before, `"`)%2 == 0 && strings.Count(before, "'")%2 == 0 {
			return before
		}
	}
	return text
}

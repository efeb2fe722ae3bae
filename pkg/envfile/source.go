package envfile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/regular"
)

// quoteAdvice follows the complaint that a part of a value is no command.
const quoteAdvice = " (put quotes around a value that holds spaces, or any of ; & | ( ) < >)"

// sourceText is the text of the file that bash complains about. Its words are
// needed to tell a part of a value, which nobody may see, from a name.
type sourceText struct {
	path  string
	lines []string // nil when it cannot be read
	split bool     // a value was split: what is left of it may be on any later line
}

func newSourceText(path string) *sourceText {
	data, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return &sourceText{path: path}
	}
	return &sourceText{path: path, lines: strings.Split(string(data), "\n")}
}

// shown is what may be shown of a line that was printed, or "".
func (t *sourceText) shown(line string, hide secrets, strict bool) string {
	where := regexp.MustCompile(`^` + regexp.QuoteMeta(t.path) + `: line (\d+): `).FindStringSubmatch(line)
	switch {
	case where == nil && strict:
		return ""
	case where == nil:
		return hide.hide(line)
	}
	number, _ := strconv.Atoi(where[1])
	complaint, advice := t.withoutValue(number, line[len(where[0]):])
	if strict {
		complaint = withoutWords(complaint)
		complaint = strings.TrimPrefix(complaint[max(strings.LastIndex(complaint, ": "), 0):], ": ")
	}
	return where[0] + hide.hide(complaint) + advice
}

// withoutValue blanks the words of a complaint that are parts of a value: in
// TOKEN=abc def bash takes def for a command.
func (t *sourceText) withoutValue(number int, complaint string) (text, advice string) {
	at := strings.LastIndex(complaint, ": ")
	if at < 0 {
		return complaint, ""
	}
	subject, what := complaint[:at], complaint[at:]
	source := ""
	if number >= 1 && number <= len(t.lines) {
		source = t.lines[number-1]
	}
	noCommand := what == ": command not found"
	word := strings.Trim(regexp.MustCompile("`.*'").FindString(subject), "`'")
	part := inValue(source, subject)
	t.split = t.split || part || (word != "" && inValue(source, word))
	switch {
	case noCommand && part:
		return blank + what, quoteAdvice
	case part:
		return blank + what, ""
	case noCommand && (t.split || !standsIn(source, subject)):
		return blank + what, "" // the rest of a value, or what a variable held
	case t.split && word != "": // export: `def': not a valid identifier
		return strings.Replace(complaint, word, blank, 1), ""
	}
	return complaint, ""
}

// standsIn reports whether the word is written in the line as it stands.
func standsIn(line, word string) bool {
	return slices.Contains(regexp.MustCompile("[\\s;&|()<>`]+").Split(line, -1), word)
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

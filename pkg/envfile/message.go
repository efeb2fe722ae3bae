package envfile

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"assay/pkg/phrase"
	"assay/pkg/regular"
)

// messageLimit bounds the part of an error that bash wrote, in bytes.
const messageLimit = 600

// ending says how bash ended.
func ending(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "bash could not be run: " + err.Error()
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return fmt.Sprintf("bash was ended by a signal (%v)", st.Signal())
	}
	return fmt.Sprintf("bash ended with status %d", exit.ExitCode())
}

// quoteBash turns what bash wrote to stderr into the end of an error message.
// Lines that show source text or traces would show values, and are left out;
// values in other lines are blanked. Where not all values are known, only what
// bash itself said of a line of the file is left.
func quoteBash(path, said string, hide secrets) string {
	if len(said) >= stderrLimit {
		said = hide.hideCut(said)
	}
	strict := !hide.complete || regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(path)+`: line \d+: (syntax error|unexpected EOF)`).MatchString(said)
	var lines []string
	for _, line := range strings.Split(said, "\n") {
		line = strings.TrimRight(line, "\r \t")
		if line == "" || strings.HasPrefix(line, "+") || echoesSource(path, line) {
			continue
		}
		if text := shown(path, line, hide, strict); text != "" {
			lines = append(lines, phrase.Line(text))
		}
	}
	text := strings.Join(lines, "; ")
	if text == "" {
		return ""
	}
	if len(text) > messageLimit {
		text = "…" + strings.ToValidUTF8(text[len(text)-messageLimit:], "")
	}
	return ": " + text
}

// shown is what may be shown of a line, or "".
func shown(path, line string, hide secrets, strict bool) string {
	where := regexp.MustCompile(`^` + regexp.QuoteMeta(path) + `: line \d+: `).FindString(line)
	switch {
	case where != "" && strict:
		text := withoutWords(withoutValue(path, line)[len(where):])
		return where + hide.hide(strings.TrimPrefix(text[max(strings.LastIndex(text, ": "), 0):], ": "))
	case strict:
		return ""
	case where != "":
		return where + hide.hide(withoutValue(path, line)[len(where):])
	}
	return hide.hide(line)
}

// withoutWords blanks the words of the file that a syntax error quotes, and
// leaves those of the grammar.
func withoutWords(text string) string {
	grammar := regexp.MustCompile("^`(\\W+|newline|if|then|elif|else|fi|for|in|do|done|while|until|case|esac|select|function|time)'$")
	return regexp.MustCompile("`.*'").ReplaceAllStringFunc(text, func(word string) string {
		if grammar.MatchString(word) {
			return word
		}
		return "`" + blank + "'"
	})
}

// echoesSource recognises the second line of a syntax error, which repeats the
// line of the file: path: line 3: `TOKEN=(abc'.
func echoesSource(path, line string) bool {
	rest, ok := strings.CutPrefix(line, path+": line ")
	if !ok {
		return false
	}
	_, rest, _ = strings.Cut(rest, ": ")
	return strings.HasPrefix(rest, "`") && strings.HasSuffix(rest, "'")
}

// withoutValue hides the word that bash names in front of its complaint when the
// line assigns something: in TOKEN=abc def the word is half of the value.
func withoutValue(path, line string) string {
	rest, ok := strings.CutPrefix(line, path+": line ")
	if !ok {
		return line
	}
	number, rest, _ := strings.Cut(rest, ": ")
	i := strings.LastIndex(rest, ": ")
	if n, err := strconv.Atoi(number); err != nil || i < 0 || !assigns(path, n) {
		return line
	}
	return fmt.Sprintf("%s: line %s: %s, in an assignment: put quotes around a value that holds spaces",
		path, number, strings.TrimSpace(rest[i+2:]))
}

// assigns reports whether line n of the file holds an assignment.
func assigns(path string, n int) bool {
	data, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return true // when in doubt, hide
	}
	lines := strings.Split(string(data), "\n")
	if n < 1 || n > len(lines) {
		return true
	}
	return regexp.MustCompile(`(^|[\s;&|])[A-Za-z_][A-Za-z0-9_]*\+?=`).MatchString(lines[n-1])
}

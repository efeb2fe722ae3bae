package envfile

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"assay/pkg/phrase"
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
	text := newSourceText(path)
	for _, line := range strings.Split(said, "\n") {
		line = strings.TrimRight(line, "\r \t")
		if line == "" || strings.HasPrefix(line, "+") || echoesSource(path, line) {
			continue
		}
		if part := text.shown(line, hide, strict); part != "" {
			lines = append(lines, phrase.Line(part))
		}
	}
	whole := strings.Join(lines, "; ")
	if whole == "" {
		return ""
	}
	if len(whole) > messageLimit {
		whole = "…" + strings.ToValidUTF8(whole[len(whole)-messageLimit:], "")
	}
	return ": " + whole
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

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

// quoteBash turns what bash and the file wrote to stderr into the end of an
// error message. Traces would show values, and are left out. What the file
// printed is shown with values blanked, and only where all of them are known;
// of a complaint of bash only what complaintOf says is shown.
func quoteBash(path, said string, hide secrets) string {
	said, cut := strings.CutPrefix(said, cutSign)
	if cut {
		said = hide.hideCut(said)
	}
	begins := regexp.MustCompile(`^(` + regexp.QuoteMeta(path) + `|.*?)(: (?:eval|command substitution))?(: line (\d+): )`)
	strict := !hide.complete || regexp.MustCompile(`(?m): line \d+: (syntax error|unexpected EOF)`).MatchString(said)
	var lines []string
	finished := true // the last complaint
	all := strings.Split(said, "\n")
	if cut {
		all = all[restOfComplaint(all, begins):]
	}
	for _, line := range all {
		line = strings.TrimRight(line, "\r \t")
		where := begins.FindStringSubmatch(line)
		switch {
		case line == "" || strings.HasPrefix(line, "+"):
		case where != nil:
			text, complaint := newSourceText(where[1]), line[len(where[0]):]
			var part string
			part, finished = text.complaintOf(complaint, text.advice(where[4], complaint), hide)
			if !finished && echoesSource(complaint) {
				finished = true
				continue
			}
			lines = append(lines, phrase.Line(hide.hideBut(path, where[1])+where[2]+where[3]+part))
		case !finished: // the rest of the complaint
			_, finished = sourceText{}.complaintOf(line, "", hide)
		case !strict:
			lines = append(lines, phrase.Line(hide.hide(line)))
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

// restOfComplaint counts the lines that a cut left of a complaint: those in front
// of the next one, up to one with words of bash.
func restOfComplaint(lines []string, begins *regexp.Regexp) int {
	for i, line := range lines {
		if begins.MatchString(line) {
			return 0
		}
		if _, finished := (sourceText{}).complaintOf(line, "", secrets{}); finished {
			return i + 1
		}
	}
	return 0
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
func echoesSource(complaint string) bool {
	return strings.HasPrefix(complaint, "`") && strings.HasSuffix(complaint, "'")
}

package envfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
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
// Lines that show source text or traces would show values, and are left out.
func quoteBash(path, said string) string {
	var lines []string
	for _, line := range strings.Split(said, "\n") {
		line = strings.TrimRight(line, "\r \t")
		if line == "" || strings.HasPrefix(line, "+") || echoesSource(path, line) {
			continue
		}
		lines = append(lines, phrase.Line(withoutValue(path, line)))
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
	data, err := os.ReadFile(path)
	if err != nil {
		return true // when in doubt, hide
	}
	lines := strings.Split(string(data), "\n")
	if n < 1 || n > len(lines) {
		return true
	}
	return regexp.MustCompile(`(^|[\s;&|])[A-Za-z_][A-Za-z0-9_]*\+?=`).MatchString(lines[n-1])
}

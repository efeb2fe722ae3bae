package envfile

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/plan"
	"assay/pkg/regular"
)

// minSecret is the length from which a value is looked for in messages, in bytes:
// a shorter one is part of every other word.
const minSecret = 3

// blank stands for a value in a message.
const blank = "***"

// secrets are the values that no message may show.
type secrets struct {
	values   []string // longest first
	complete bool     // bash could still say what it had assigned
}

// newSecrets gathers the values that the file assigned, by what bash said of its
// variables before and after, those that the text of the file assigns, and
// inherited ones whose name looks like a secret's.
func newSecrets(o Options, declared string) secrets {
	before, after, complete := strings.Cut(declared, "\x00")
	old := map[string]bool{}
	for _, v := range declaredValues(before) {
		old[v] = true
	}
	s := secrets{complete: complete && after != ""}
	for _, v := range declaredValues(after) {
		if !old[v] {
			s.add(v)
		}
	}
	for _, v := range assignedIn(o.Path) {
		s.add(v)
	}
	for _, kv := range o.Base {
		if name, value, _ := strings.Cut(kv, "="); plan.LooksSecret(name) && !bookkeeping(name) {
			s.add(value)
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.values = slices.Compact(s.values)
	return s
}

// add takes a value line by line, as messages are looked at.
func (s *secrets) add(value string) {
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= minSecret {
			s.values = append(s.values, line)
		}
	}
}

// hide blanks every value in the text.
func (s secrets) hide(text string) string {
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, blank)
	}
	return text
}

// hideBut is hide for the path of a file, unless it is the one that is known.
func (s secrets) hideBut(known, path string) string {
	if path == known {
		return path
	}
	return s.hide(path)
}

// hideCut blanks what a cut left of a value at the beginning of the text.
func (s secrets) hideCut(text string) string {
	for _, v := range s.values {
		for i := 1; i < len(v); i++ {
			if rest, ok := strings.CutPrefix(text, v[i:]); ok {
				return blank + rest
			}
		}
	}
	return text
}

const quotedString = `(?:\$'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`

// declaredValues reads the values in the output of `declare -p`, but for bash's
// own variables.
func declaredValues(text string) []string {
	declaration := regexp.MustCompile(`(?ms)^declare -\S+ (\w+)=(` + quotedString + `|\((?:\[(?:` + quotedString + `|[^\]"]*)\]=` + quotedString + `\s*)*\))`)
	var out []string
	for _, m := range declaration.FindAllStringSubmatch(text, -1) {
		if bookkeeping(m[1]) {
			continue
		}
		for _, q := range regexp.MustCompile(`(?s)`+quotedString).FindAllString(m[2], -1) {
			out = append(out, unquote(q))
		}
	}
	return out
}

// unquote undoes the quotes that bash puts around a value.
func unquote(q string) string {
	if body, ok := strings.CutPrefix(q, "$'"); ok {
		return regexp.MustCompile(`(?s)\\([0-7]{1,3}|.)`).ReplaceAllStringFunc(strings.TrimSuffix(body, "'"), func(escape string) string {
			if n, err := strconv.ParseUint(escape[1:], 8, 8); err == nil {
				return string([]byte{byte(n)})
			}
			if i := strings.IndexByte("abtnvfrE", escape[1]); i >= 0 {
				return "\a\b\t\n\v\f\r\x1b"[i : i+1]
			}
			return escape[1:]
		})
	}
	return regexp.MustCompile(`(?s)\\(.)`).ReplaceAllString(q[1:len(q)-1], "$1")
}

// assignedIn finds the values that stand in the text of the file: bash may end
// before it can say what it had assigned, and a later value hides an earlier one.
func assignedIn(path string) []string {
	data, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return nil
	}
	assignment := regexp.MustCompile(`(?s)\b[A-Za-z_]\w*(?:\[[^\]\n]*\])?\+?=(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;&|()<>]+))`)
	name := regexp.MustCompile(`^\$\w+$`) // of another variable, which is no value
	var out []string
	for _, m := range assignment.FindAllStringSubmatch(string(data), -1) {
		if name.MatchString(m[3]) {
			m[3] = ""
		}
		out = append(out, m[1], m[2], strings.Trim(m[3], `"'$`))
	}
	return out
}

// readAll reads an anonymous file from its beginning.
func readAll(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	data := make([]byte, info.Size())
	n, err := f.ReadAt(data, 0)
	if n == len(data) {
		err = nil
	}
	return string(data[:n]), err
}

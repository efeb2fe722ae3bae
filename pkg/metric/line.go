package metric

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay/pkg/phrase"
)

// performanceTag starts a reading. It is lower case: programs print
// "Performance:" for much that is no result.
const performanceTag = "performance:"

// maxName is the longest metric name, in bytes.
const maxName = 256

// parsePerformance reads `performance: <number>[unit][,] <metric>`. The unit may
// also be a word of its own before the metric. What follows the metric is no part
// of the reading. Found is false when the line is no such line; else the problem
// has a code when the line is one and gives no reading.
func parsePerformance(line string, declared map[string]struct{}) (e entry, found bool) {
	rest, prefixed, ok := afterTag(line)
	if !ok {
		return e, false
	}
	e.prefixed = prefixed
	words := performanceWords(rest)
	if len(words) == 0 {
		e.problem = notANumber("", "%q gives no value", clip(line))
		return e, true
	}
	q, err := parseValue(words[0])
	unit, name, trail := performanceMetric(words[1:], q.unit == "", declared)
	e.trail = trail
	switch {
	case err != nil && !startsNumber(words[0]):
		if len(words) > 2 {
			return e, false // a sentence
		}
		e.problem = notANumber("", "%q gives no number after performance: (was a variable empty?)", clip(line))
	case err != nil:
		e.problem = notANumber(name, "%q is no reading: %v", clip(line), err)
	case name == "":
		e.problem = notANumber("", "%q names no metric; print performance: <number> <metric>", clip(line))
	case numberLen(name) == len(name):
		e.problem = notANumber("", "%q has a number where the metric belongs; print performance: <number> <metric>, the number without separators", clip(line))
	default:
		if q.unit != "" {
			unit = q.unit
		}
		e.reading = Reading{Name: name, Value: q.value, Text: q.text, Unit: unit, NotApplicable: q.notApplicable}
	}
	return e, true
}

// afterTag returns what follows the tag, when the line begins with it or has
// only a log prefix before it.
func afterTag(line string) (rest string, prefixed, ok bool) {
	for from := 0; ; {
		i := strings.Index(line[from:], performanceTag)
		if i < 0 {
			return "", false, false
		}
		at := from + i
		from = at + len(performanceTag)
		if isLogPrefix(line[:at]) {
			return line[from:], at > 0, true
		}
	}
}

// performanceWords splits at white space, and at commas that are no part of a
// number.
func performanceWords(s string) []string {
	var words []string
	for _, f := range strings.Fields(s) {
		for f != "" {
			i := strings.IndexByte(f, ',')
			if i < 0 || i+1 < len(f) && isDigit(f[i+1]) && len(words) == 0 {
				words = append(words, f)
				break
			}
			if i > 0 {
				words = append(words, f[:i])
			}
			f = f[i+1:]
		}
	}
	return words
}

// performanceMetric takes the words after the number apart. The metric is the
// first of them, unless that is a unit of its own and the metric follows: then
// two lines that differ in the metric are two readings. Trail is the rest.
func performanceMetric(words []string, unitMayFollow bool, declared map[string]struct{}) (unit, name, trail string) {
	if len(words) > 1 && strings.HasPrefix(words[0], "/") || unitMayFollow && unitBeforeMetric(words, declared) {
		unit, words = words[0], words[1:]
	} else if unitMayFollow && len(words) > 0 && isBarePrefix(words[0]) && !has(declared, words[0]) {
		unit = words[0] // 14 k is hardly 14 of k
	}
	if len(words) > 0 && len(words[0]) <= maxName && utf8.ValidString(words[0]) {
		name = words[0]
	}
	if len(words) > 1 {
		trail = phrase.Clip(strings.Join(words[1:], " "), maxName)
	}
	return unit, name, trail
}

// unitBeforeMetric reports whether words begin with a unit and the metric that it
// belongs to. "12.5 GB/s on 8 GPUs" names no metric but the unit, and a card may
// declare a metric that is called like a unit.
func unitBeforeMetric(words []string, declared map[string]struct{}) bool {
	if len(words) < 2 || !isUnitWord(words[0]) && !isBarePrefix(words[0]) || has(declared, words[0]) {
		return false
	}
	switch strings.ToLower(words[1]) {
	case "at", "by", "for", "from", "in", "of", "on", "over", "per", "using", "with":
		return false
	}
	r, _ := utf8.DecodeRuneInString(words[1])
	return unicode.IsLetter(r)
}

func has(set map[string]struct{}, name string) bool {
	_, ok := set[name]
	return ok
}

// startsNumber reports whether a word was meant as a number.
func startsNumber(s string) bool {
	t := strings.TrimLeft(s, "+-")
	return notFinite(s) || t != "" && (isDigit(t[0]) || t[0] == '.' && len(t) > 1 && isDigit(t[1]))
}

// parseKeyValue reads `name=value` for a declared name. The first equals sign
// splits the line.
func parseKeyValue(line string, declared map[string]struct{}) (e entry, found bool) {
	left, value, ok := strings.Cut(line, "=")
	if !ok || strings.HasPrefix(value, "=") {
		return e, false
	}
	left = strings.TrimRight(left, " \t")
	start := keyStart([]byte(left))
	name := left[start:]
	if _, ok := declared[name]; !ok || !isLogPrefix(left[:start]) {
		return e, false
	}
	e.prefixed = start > 0
	q, err := parseQuantity(value)
	if err != nil {
		e.problem = notANumber(name, "%q is no reading: %v", clip(line), err)
		return e, true
	}
	e.reading = Reading{Name: name, Value: q.value, Text: q.text, Unit: q.unit, NotApplicable: q.notApplicable}
	return e, true
}

// keyStart returns where the name that ends left begins.
func keyStart(left []byte) int {
	i := len(left)
	for i > 0 && isNameByte(left[i-1]) {
		i--
	}
	return i
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c == '.' || c == '-' || c == '/' || c >= utf8.RuneSelf
}

func notANumber(name, format string, args ...any) Problem {
	return Problem{Code: CodeNotANumber, Name: name, Message: fmt.Sprintf(format, args...)}
}

// stripEscapes removes terminal escape codes: colours, and titles set by OSC.
func stripEscapes(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, 0x1b)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		s = s[escapeLen(s):]
	}
}

// escapeLen returns the length of the escape code that follows ESC in s.
func escapeLen(s string) int {
	if s == "" {
		return 0
	}
	switch s[0] {
	case '[': // CSI: parameters, then one final byte
		for i := 1; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case ']': // OSC: up to BEL or ESC \
		if i := strings.IndexAny(s, "\a\x1b"); i >= 0 {
			if s[i] == '\a' {
				return i + 1
			}
			return i
		}
		return len(s)
	}
	return 1
}

package metric

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// maxSaid is how many bytes of a line, or of a value that is no number, are kept.
const maxSaid = 300

// NewAcceptanceCollector returns a Collector for the acceptance contract, under which
// every `key=value` line counts, and not only those that are declared. Its lines come
// from the Runners that Stdout and Stderr return.
func NewAcceptanceCollector(specs []Spec, declared []string) *Collector {
	c := NewCollector(declared)
	c.units = make(map[string]string, len(specs))
	for _, s := range specs {
		c.units[s.Name] = s.Unit
	}
	return c
}

// Stdout reads the standard output of a workload under the acceptance contract.
func (c *Collector) Stdout() *Runner { return &Runner{c: c, pairs: true} }

// Stderr reads the standard error of one: no metrics but `performance:` lines.
func (c *Collector) Stderr() *Runner { return &Runner{c: c} }

// Muted is a Runner for the same stream that picks up no metrics, for jobs that are
// not measured.
func (r *Runner) Muted() *Runner { return &Runner{c: r.c, pairs: r.pairs, muted: true} }

// Runner reads one stream of a workload under the acceptance contract. Besides metrics
// it finds the line that declares a skip, and what the workload said last; the payload
// of an artifact is neither. It is not safe for concurrent use.
type Runner struct {
	c     *Collector
	pairs bool // `key=value` lines are metrics, and artifacts pass
	muted bool

	fence string // the line that ends the artifact whose payload passes; empty: none does
	skip  string
	said  []byte
}

// Skip is the first line that declared a skip, clipped; empty when none did.
func (r *Runner) Skip() string { return r.skip }

// Said is the last line that is neither blank nor a metric, clipped; empty when there
// is none.
func (r *Runner) Said() string { return clean(string(r.said)) }

// Tags lists what a line has that has to be looked at by Line. Others are no metrics.
func (r *Runner) Tags() []string {
	tags := []string{performanceTag, skipTag}
	if r.pairs {
		tags = append(tags, "=", artifactTag)
	}
	return tags
}

const (
	skipTag     = "_SKIP"
	artifactTag = " ARTIFACT"
)

// Line looks at a line that has one of the tags, or may have. Cut says that it has no
// line end. The line is not kept.
func (r *Runner) Line(line []byte, place string, cut bool) {
	line = bytes.TrimRight(line, "\r\n")
	if r.artifact(line) {
		return
	}
	if last := bytes.LastIndexByte(line, '\r'); last >= 0 { // drawn over
		for part := range bytes.SplitSeq(line[:last], []byte("\r")) {
			r.one(part, place, false, "")
		}
		line = line[last+1:]
	}
	r.one(line, place, cut, "")
}

// Long looks at a line that is too long to be kept, by its beginning. A reading that
// begins there is none, and takes the place of an earlier one all the same. Limit is
// how long a line may be, in words. The beginning is not kept.
func (r *Runner) Long(head []byte, place, limit string) {
	if r.artifact(head) {
		return
	}
	if last := bytes.LastIndexByte(head, '\r'); last >= 0 {
		for part := range bytes.SplitSeq(head[:last], []byte("\r")) {
			r.one(part, place, false, "")
		}
		head = head[last+1:]
	}
	r.one(head, place, false, limit)
}

// Plain looks at lines none of which has a tag.
func (r *Runner) Plain(lines []byte) {
	if r.fence != "" {
		return
	}
	lines = bytes.TrimRight(lines, " \t\r\n")
	if len(lines) == 0 {
		return
	}
	r.say(lines[bytes.LastIndexAny(lines, "\r\n")+1:])
}

func (r *Runner) say(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) > maxSaid {
		line = line[:maxSaid]
	}
	r.said = append(r.said[:0], line...)
}

// artifact reports whether a line is a part of an artifact. Whatever follows the
// words that begin one, its payload is no output: it is not a metric by accident.
func (r *Runner) artifact(line []byte) bool {
	if !r.pairs || r.fence == "" && !bytes.Contains(line, []byte(artifactTag)) {
		return r.fence != ""
	}
	line = bytes.TrimSpace(line)
	for _, kind := range []string{"ASSAY", "BURNIN"} {
		if bytes.HasPrefix(line, []byte("-----BEGIN "+kind+artifactTag)) {
			r.fence = "-----END " + kind + artifactTag // an artifact inside of one ends it
			return true
		}
	}
	inside := r.fence != ""
	if inside && bytes.HasPrefix(line, []byte(r.fence)) {
		r.fence = ""
	}
	return inside
}

// one looks at a line without its end. Limit is not empty when it is longer than that.
func (r *Runner) one(line []byte, place string, cut bool, limit string) {
	if declaresSkip(line) {
		if r.skip == "" {
			r.skip = clean(string(line[:min(len(line), maxSaid)]))
		}
		r.say(line)
		return
	}
	limited := limit // of a pair; what follows a metric is no part of a performance line
	if len(line) > maxLine {
		line, limited = line[:maxLine], maxLineText // a reading is short
	}
	text := strings.TrimSpace(stripEscapes(string(line)))
	if text == "" {
		return
	}
	e, found := parsePerformance(text, r.c.declared)
	source := SourcePerformance
	if !found && r.pairs {
		e, found = r.c.parsePair(text)
		source, limit = SourceKeyValue, limited
	}
	if found && limit != "" && e.problem.Code != CodeName {
		e.problem, e.reading = notANumber(e.name(), "%q is no reading: its line is longer than %s", clip(text), limit), Reading{}
	}
	switch {
	case !found:
		r.say([]byte(text))
	case !r.muted:
		r.c.record(source, e, place, cut)
	}
}

// declaresSkip reports whether a line begins with capitals, digits and underscores
// that end in _SKIP, as in "NCCL_SKIP: only one GPU". White space before it, or a word
// that goes on, disqualifies it; so does a number after an equals sign, for that is a
// counter: TESTS_SKIP=0.
func declaresSkip(line []byte) bool {
	n := 0
	for n < len(line) && (line[n] >= 'A' && line[n] <= 'Z' || n > 0 && (isDigit(line[n]) || line[n] == '_')) {
		n++
	}
	if n < len(line) && line[n] >= 'a' && line[n] <= 'z' {
		return false
	}
	word, ends := bytes.CutSuffix(line[:n], []byte(skipTag))
	return ends && len(word) > 0 && !counts(line[n:])
}

// counts reports whether what follows a name gives it a number.
func counts(rest []byte) bool {
	value, is := bytes.CutPrefix(bytes.TrimSpace(rest[:min(len(rest), maxSaid)]), []byte("="))
	if !is {
		return false
	}
	_, err := parseQuantity(string(bytes.TrimSpace(value)))
	return err == nil
}

// parsePair reads a `key=value` line of the acceptance contract: the first equals sign
// splits it, and its key has no blanks. A value that is no number is a label.
func (c *Collector) parsePair(line string) (e entry, found bool) {
	key, value, ok := strings.Cut(line, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if !ok || key == "" || strings.ContainsAny(key, " \t") {
		return e, false
	}
	name, err := c.pairName(key)
	if err != nil {
		e.problem = Problem{Code: CodeName, Name: clip(key), Text: clean(value), Message: fmt.Sprintf("%q is no metric: the %v", clip(line), err)}
		return e, true
	}
	e.reading, e.spelled = Reading{Name: name}, key
	q, err := parseQuantity(value)
	switch {
	case err == nil && (q.unit == "" || c.unitOf(name, q.unit)):
		e.reading.Value, e.reading.Text, e.reading.Unit, e.reading.NotApplicable = q.value, q.text, q.unit, q.notApplicable
	case err != nil && (notFinite(value) || beyond(value)):
		e.problem = notANumber(name, "%q is no reading: %v", clip(line), err)
		e.problem.Text = clean(value)
	default:
		e.reading.Text, e.reading.Label = clean(value), true
	}
	return e, true
}

// pairName is the name of the metric that a key stands for. One that is declared
// counts as it is; words_like_these may stand for the name that is declared.
func (c *Collector) pairName(key string) (string, error) {
	if _, ok := c.declared[key]; ok {
		return key, nil
	}
	err := ValidName(key)
	if err == nil {
		return key, nil
	}
	name := Camel(key)
	if _, ok := c.declared[name]; ok {
		return name, nil
	}
	if ValidName(name) == nil {
		err = fmt.Errorf("%w; print %s", err, name)
	}
	return "", err
}

// unitOf reports whether a unit is that of a metric, as it is declared or as its name
// ends: a number in another one is not the number that the name promises.
func (c *Collector) unitOf(name, unit string) bool {
	suffix, _ := UnitOf(name)
	return slices.ContainsFunc([]string{suffix, c.units[name]}, func(u string) bool { return u != "" && SameUnit(u, unit) })
}

// beyond reports whether a value is a decimal number that does not fit.
func beyond(value string) bool { return value != "" && numberLen(value) == len(value) }

// clean is text fit to be quoted: valid UTF-8 and without escape codes.
func clean(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(stripEscapes(s), ""))
	if len(s) > maxSaid {
		s = strings.ToValidUTF8(s[:maxSaid], "")
	}
	return s
}

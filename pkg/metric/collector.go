package metric

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"assay/pkg/phrase"
)

// Limits that keep a hostile or broken log from filling memory.
const (
	maxNames    = 10_000 // different metrics one rank may report
	maxProblems = 20     // problems kept where they have no metric name
	maxLine     = 8 << 10

	maxLineText = "8 KiB" // maxLine in words
)

// Collector picks readings out of the lines of a log while they pass. It keeps
// the last reading of each source and name. A value that is no number stands
// like any other: it takes the place of an earlier reading of the same name. A
// line that may be cut takes no place: it is kept beside what whole lines said.
// Names that are declared count however many others there are.
// It is safe for concurrent use.
type Collector struct {
	declared map[string]struct{}
	units    map[string]string // that are declared, by name; under the acceptance contract

	mu      sync.Mutex
	index   map[slot]int
	entries []entry
	loose   []Problem      // problems that belong to no name
	dropped int            // loose problems beyond maxProblems
	ignored map[Source]int // readings beyond maxNames, by source
	odd     int            // different keys that are no names
	more    int            // lines with such keys beyond maxProblems different ones

	changed atomic.Int64
}

type slot struct {
	source Source
	name   string
	cut    bool
}

type entry struct {
	reading Reading
	problem Problem // set when Code is not empty; then reading does not count
	// prefixed says that the line had a log prefix.
	prefixed bool
	trail    string    // what followed the metric on its line
	spelled  string    // the key as it was written; empty: as the name is
	others   []variant // what other spellings of the name said last
	twice    Problem   // set when lines that say different things have one name
}

// name is the metric that the line was about, "" when it names none.
func (e entry) name() string {
	if e.problem.Code != "" {
		return e.problem.Name
	}
	return e.reading.Name
}

// value is how messages call what the line said.
func (e entry) value() string {
	if e.problem.Code != "" {
		return "no number"
	}
	return e.reading.Text
}

// NewCollector returns a Collector that reads `performance:` lines, and
// `key=value` lines whose key is one of the declared names.
func NewCollector(declared []string) *Collector {
	return &Collector{declared: nameSet(declared), index: map[slot]int{}}
}

func nameSet(names []string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, n := range names {
		if n != "" {
			set[n] = struct{}{}
		}
	}
	return set
}

// Line looks at one line of output, with or without its line end. Place says
// where it is from, for example "stdout". The line is not kept.
func (c *Collector) Line(line []byte, place string) { c.look(line, place, false) }

// Unended looks at what follows the last line end of a stream that is over. When
// its writer was ended in the middle, it is half of a line; the reading says so,
// and whoever knows how the writer ended decides.
func (c *Collector) Unended(line []byte, place string) { c.look(line, place, true) }

func (c *Collector) look(line []byte, place string, cut bool) {
	perf := bytes.Contains(line, []byte(performanceTag))
	equals := -1
	if len(c.declared) > 0 {
		equals = bytes.IndexByte(line, '=')
	}
	if !perf && equals < 0 {
		return
	}
	line = bytes.TrimRight(line, "\r\n")
	if last := bytes.LastIndexByte(line, '\r'); last >= 0 { // a progress bar that was drawn over
		for part := range bytes.SplitSeq(line[:last], []byte("\r")) {
			c.look(part, place, false)
		}
		c.look(line[last+1:], place, cut)
		return
	}
	if len(line) > maxLine {
		line = line[:maxLine] // a reading is short; the rest is no part of one
	}
	if !perf && equals < len(line) && bytes.IndexByte(line, 0x1b) < 0 && !c.declaresKeyAt(line, equals) {
		return
	}
	c.text(strings.Trim(stripEscapes(string(line)), " \t"), place, cut)
}

// declaresKeyAt is the cheap refusal of the many lines that hold an equals sign
// and are no readings.
func (c *Collector) declaresKeyAt(line []byte, equals int) bool {
	left := bytes.TrimRight(line[:equals], " \t")
	key := left[keyStart(left):]
	_, ok := c.declared[string(key)]
	return ok
}

// text looks at one line without its line end and escape codes.
func (c *Collector) text(line, place string, cut bool) {
	if line == "" {
		return
	}
	if e, found := parsePerformance(line, c.declared); found {
		c.record(SourcePerformance, e, place, cut)
		return
	}
	if e, found := parseKeyValue(line, c.declared); found {
		c.record(SourceKeyValue, e, place, cut)
	}
}

func (c *Collector) record(source Source, e entry, place string, cut bool) {
	e.reading.Source, e.problem.Source, e.reading.Place, e.reading.Unended = source, source, place, cut
	if e.problem.Code != "" && cut {
		e.problem.Rows = CutRows(Reading{Name: e.problem.Name, Place: place, Source: source})
	}
	if e.problem.Code != "" && place != "" {
		e.problem.Message = place + ": " + e.problem.Message
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Add(1)
	name := e.name()
	if name == "" {
		if cut || len(c.loose) < maxProblems {
			c.loose = append(c.loose, e.problem)
		} else {
			c.dropped++
		}
		return
	}
	if e.problem.Code == CodeName {
		source = sourceName // keys and metrics never take each other's place
	}
	key := slot{source, name, cut}
	if i, ok := c.index[key]; ok {
		e.twice, e.others = overwritten(c.entries[i], e), otherVariants(c.entries[i], e)
		c.entries[i] = e
		return
	}
	if _, declared := c.declared[name]; !cut && !declared && len(c.entries) >= maxNames {
		if c.ignored == nil {
			c.ignored = map[Source]int{}
		}
		c.ignored[e.reading.Source]++
		return
	}
	if source == sourceName {
		if c.odd++; c.odd > maxProblems {
			c.more++
			return
		}
	}
	c.index[key] = len(c.entries)
	c.entries = append(c.entries, e)
}

// sourceName is the source of slots for keys that are no names.
const sourceName Source = "name"

// overwritten says that next takes the place of old although they may be two
// things: their lines go on differently after the metric, or only one of them has
// a log prefix, which may have been a heading ("gpt2: "). Numbers after the metric make no
// difference: "step 1" and "step 2" are one thing at two times. Once said, it
// stays said.
func overwritten(old, next entry) Problem {
	r := Reading{Name: next.name(), Source: next.reading.Source}
	if old.prefixed != next.prefixed && old.value() != next.value() {
		how := map[bool]string{true: "with a log prefix", false: "without a log prefix"}
		return disagreement(r, "%s was reported as %s %s and as %s %s, and is one metric; the last of them counts",
			r.Name, old.value(), how[old.prefixed], next.value(), how[next.prefixed])
	}
	if old.trail == next.trail || withoutDigits(old.trail) == withoutDigits(next.trail) {
		return old.twice
	}
	called := func(e entry) string { return strings.TrimSpace(e.name() + " " + e.trail) }
	return disagreement(r, "%s was reported as %s of %q and as %s of %q, and is one metric; the last of them counts",
		r.Name, old.value(), clip(called(old)), next.value(), clip(called(next)))
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, s)
}

// Changed counts the readings and problems seen so far. It grows whenever Result
// may have changed.
func (c *Collector) Changed() int { return int(c.changed.Load()) }

// Result returns what stands now: readings in the order in which their names
// first appeared, and why other lines are none.
func (c *Collector) Result() ([]Reading, []Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var readings []Reading
	var problems []Problem
	for _, e := range c.entries {
		if e.problem.Code != "" {
			problems = append(problems, e.problem)
		} else {
			readings = append(readings, e.reading)
		}
		if e.twice.Code != "" {
			problems = append(problems, e.twice)
		}
		problems = append(problems, e.merged()...)
	}
	problems = append(problems, c.loose...)
	if c.dropped > 0 {
		problems = append(problems, Problem{Code: CodeNotANumber, Message: fmt.Sprintf("%d more lines look like readings and are none", c.dropped)})
	}
	if c.more > 0 {
		problems = append(problems, Problem{Code: CodeName, Source: SourceKeyValue, Message: fmt.Sprintf("%d more lines have keys that are no names of metrics", c.more)})
	}
	for _, source := range slices.Sorted(maps.Keys(c.ignored)) {
		were := "were"
		if c.ignored[source] == 1 {
			were = "was"
		}
		problems = append(problems, Problem{Code: CodeNotANumber, Source: source, Message: fmt.Sprintf("%s %s ignored: more than %d different metric names were reported", phrase.Count(c.ignored[source], "reading"), were, maxNames)})
	}
	return readings, problems
}

package rank

import (
	"bytes"
	"strconv"
)

// maxLine is the longest line that is looked at, in bytes. Longer ones are no
// readings, and skipping them bounds the memory.
const maxLine = 64 << 10

// scanner finds the lines of a stream that may hold a reading. It searches whole
// chunks for the bytes that every reading has, so that other lines cost next to
// nothing.
type scanner struct {
	place  string
	equals bool // lines with an equals sign count too
	emit   func(line []byte, place string)
	tail   func(line []byte, place string) // for what follows the last line end; nil: emit

	lines int64  // complete lines seen
	carry []byte // beginning of a line whose end has not come yet
	skip  bool   // that line is too long
}

func newScanner(place string, equals bool, emit func([]byte, string)) *scanner {
	return &scanner{place: place, equals: equals, emit: emit}
}

// feed looks at the next chunk.
func (s *scanner) feed(chunk []byte) {
	if len(s.carry) > 0 || s.skip {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			s.hold(chunk)
			return
		}
		s.hold(chunk[:i])
		s.flush()
		chunk = chunk[i+1:]
	}
	end := bytes.LastIndexByte(chunk, '\n') + 1
	s.whole(chunk[:end])
	s.hold(chunk[end:])
}

// end ends the stream: what is being held has no line end.
func (s *scanner) end() {
	if s.tail != nil {
		s.emit = s.tail
	}
	s.flush()
}

// flush ends the line that is being held.
func (s *scanner) flush() {
	if !s.skip && len(s.carry) > 0 {
		s.line(s.carry)
	}
	s.carry, s.skip = s.carry[:0], false
	s.lines++
}

func (s *scanner) hold(part []byte) {
	if s.skip || len(s.carry)+len(part) > maxLine {
		s.carry, s.skip = s.carry[:0], true
		return
	}
	s.carry = append(s.carry, part...)
}

// whole looks at complete lines.
func (s *scanner) whole(b []byte) {
	perf, equal := -1, -1
	from := 0 // beginning of a line
	for from < len(b) {
		if perf < from {
			perf = indexFrom(b, from, performanceTag)
		}
		if equal < from {
			equal = len(b)
			if s.equals {
				equal = indexFrom(b, from, "=")
			}
		}
		at := min(perf, equal)
		if at == len(b) {
			break
		}
		start := bytes.LastIndexByte(b[:at], '\n') + 1
		end := at + bytes.IndexByte(b[at:], '\n')
		s.lines += int64(bytes.Count(b[from:start], []byte("\n")))
		if end-start <= maxLine {
			s.line(b[start:end])
		}
		s.lines++
		from = end + 1
	}
	if from < len(b) {
		s.lines += int64(bytes.Count(b[from:], []byte("\n")))
	}
}

const performanceTag = "performance:"

// indexFrom is the place of what at or after from, or the length of b.
func indexFrom(b []byte, from int, what string) int {
	if i := bytes.Index(b[from:], []byte(what)); i >= 0 {
		return from + i
	}
	return len(b)
}

func (s *scanner) line(line []byte) {
	if (s.equals && bytes.IndexByte(line, '=') >= 0) || bytes.Contains(line, []byte(performanceTag)) {
		s.emit(line, s.place+":"+strconv.FormatInt(s.lines+1, 10))
	}
}

package rank

import (
	"bytes"
	"strconv"
)

// maxLine is the longest line that is looked at, in bytes. Longer ones are no
// readings, and skipping them bounds the memory; maxHead bytes of one are kept.
const (
	maxLine     = 64 << 10
	maxLineText = "64 KiB"
	maxHead     = 300
)

// scanner finds the lines of a stream that may hold a reading. It searches whole
// chunks for the tags that every reading has, so that other lines cost next to
// nothing.
type scanner struct {
	place string
	tags  []string
	emit  func(line []byte, place string) // for lines that have a tag
	tail  func(line []byte, place string) // for such a one without a line end; nil: emit
	plain func(lines []byte)              // for lines without a tag, several at once; nil: nobody looks at them
	long  func(head []byte, place string) // for the beginning of a line that is too long; nil: nobody looks at it

	lines int64  // complete lines seen
	carry []byte // beginning of a line whose end has not come yet
	skip  bool   // that line is too long, and no more than its head is kept
	next  []int  // where the tags come next; used by whole
}

func newScanner(place string, tags []string, emit func([]byte, string)) *scanner {
	return &scanner{place: place, tags: tags, emit: emit, next: make([]int, len(tags))}
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
	switch {
	case s.skip:
		s.tooLong(s.carry)
	case len(s.carry) > 0:
		s.line(s.carry)
	}
	s.carry, s.skip = s.carry[:0], false
	s.lines++
}

func (s *scanner) hold(part []byte) {
	switch {
	case s.skip:
	case len(s.carry)+len(part) > maxLine:
		s.carry, s.skip = s.carry[:min(len(s.carry), maxHead)], true
		s.carry = append(s.carry, part[:min(len(part), maxHead-len(s.carry))]...)
	default:
		s.carry = append(s.carry, part...)
	}
}

// tooLong looks at the beginning of a line that is too long.
func (s *scanner) tooLong(line []byte) {
	if s.long != nil {
		s.long(line[:min(len(line), maxHead)], s.here())
	}
}

// whole looks at complete lines.
func (s *scanner) whole(b []byte) {
	for i := range s.next {
		s.next[i] = -1
	}
	for from := 0; from < len(b); { // from is the beginning of a line
		at := s.tagged(b, from)
		start, end := len(b), len(b)
		if at < len(b) {
			start = bytes.LastIndexByte(b[:at], '\n') + 1
			end = at + bytes.IndexByte(b[at:], '\n')
		}
		if start > from {
			s.lines += int64(bytes.Count(b[from:start], []byte("\n")))
			if s.plain != nil {
				s.plain(b[from:start])
			}
		}
		if start == len(b) {
			return
		}
		if end-start <= maxLine {
			s.emitLine(b[start:end])
		} else {
			s.tooLong(b[start:end])
		}
		s.lines++
		from = end + 1
	}
}

// tagged is the place of the next tag at or after from, or the length of b.
func (s *scanner) tagged(b []byte, from int) int {
	first := len(b)
	for i, tag := range s.tags {
		if s.next[i] < from {
			s.next[i] = indexFrom(b, from, tag)
		}
		first = min(first, s.next[i])
	}
	return first
}

// performanceTag is what lines have that are readings whatever is declared.
const performanceTag = "performance:"

// indexFrom is the place of what at or after from, or the length of b.
func indexFrom(b []byte, from int, what string) int {
	if i := bytes.Index(b[from:], []byte(what)); i >= 0 {
		return from + i
	}
	return len(b)
}

// line looks at a line that came in pieces.
func (s *scanner) line(line []byte) {
	for _, tag := range s.tags {
		if bytes.Contains(line, []byte(tag)) {
			s.emitLine(line)
			return
		}
	}
	if s.plain != nil {
		s.plain(line)
	}
}

func (s *scanner) emitLine(line []byte) {
	s.emit(line, s.here())
}

// here is the place of the line that is looked at.
func (s *scanner) here() string { return s.place + ":" + strconv.FormatInt(s.lines+1, 10) }

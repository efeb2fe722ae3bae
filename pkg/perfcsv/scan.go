package perfcsv

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// scanner reads the records of a CSV file one by one and knows where each lies.
// Unlike encoding/csv it gives back a carriage return inside quotes as it was
// written, and tells a record that was cut off from a whole one.
type scanner struct {
	in     *bufio.Reader
	fields []string
	buf    []byte // the unquoted text of all fields of the record
	ends   []int  // where each field but the last ends in buf
	raw    []byte // the record as it stands in the file
	commas []int  // where each field but the last ends in raw

	offset  int64 // of the byte after the record just read
	line    int   // on which the record just read begins, from 1
	next    int   // line on which the next record begins
	fault   string
	faultAt int  // where in raw the fault is
	open    bool // the record just read was cut off inside quotes
}

// recordLimit bounds a record, so that a quote that is never closed is no reason
// to hold the rest of the file.
const recordLimit = 16 << 20

var (
	// errCut says that the file ends inside a record.
	errCut = errors.New("the file ends inside a record")
	// errTooLong says that a record has more than recordLimit bytes.
	errTooLong = fmt.Errorf("the record is longer than %d MiB: a quote is not closed", recordLimit>>20)
)

// byteOrderMark is what some spreadsheets write at the start of a file.
const byteOrderMark = "\ufeff"

// newScanner reads records from r, whose first byte lies at offset.
func newScanner(r io.Reader, offset int64) *scanner {
	return &scanner{in: bufio.NewReaderSize(r, 1<<18), offset: offset, next: 1}
}

// skipMark skips a byte order mark, and says whether there was one.
func (s *scanner) skipMark() bool {
	start, err := s.in.Peek(len(byteOrderMark))
	if err != nil || string(start) != byteOrderMark {
		return false
	}
	n, err := s.in.Discard(len(byteOrderMark))
	s.offset += int64(n)
	return err == nil
}

// scan returns the next record; io.EOF after the last, errCut when the file ends
// inside it and errTooLong when it is beyond the limit, in which cases the offset
// stays where the record began. The slice is valid until the next call.
func (s *scanner) scan() ([]string, error) {
	s.buf, s.ends, s.raw, s.commas, s.fault = s.buf[:0], s.ends[:0], s.raw[:0], s.commas[:0], ""
	s.line = s.next
	quoted := false // inside quotes
	fresh := true   // nothing of the current field was seen
	closed := false // the field's quotes were closed
	for {
		chunk, err := s.in.ReadSlice('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if errors.Is(err, io.EOF) && len(s.raw)+len(chunk) == 0 {
			return nil, io.EOF
		}
		if len(s.raw)+len(chunk) > recordLimit {
			return nil, errTooLong
		}
		s.raw = append(s.raw, chunk...)
		quoted, fresh, closed = s.take(chunk, quoted, fresh, closed)
		if whole {
			s.next++
		}
		if whole && !quoted {
			s.offset += int64(len(s.raw))
			return s.split(), nil
		}
		if errors.Is(err, io.EOF) {
			s.open = quoted
			return s.split(), errCut
		}
	}
}

// take adds a piece of the file, the end of raw, to the fields. It returns whether
// the piece ends inside quotes, at the start of a field, and after closed quotes.
func (s *scanner) take(chunk []byte, quoted, fresh, closed bool) (bool, bool, bool) {
	base := len(s.raw) - len(chunk)
	for i := 0; i < len(chunk); i++ {
		c := chunk[i]
		switch {
		case quoted && c == '"':
			quoted, closed = false, true
		case quoted:
			run := bytes.IndexByte(chunk[i:], '"')
			if run < 0 {
				run = len(chunk) - i
			}
			s.buf = append(s.buf, chunk[i:i+run]...)
			i += run - 1
		case c == '"' && fresh:
			quoted, fresh = true, false
		case c == '"' && closed: // a doubled quote
			s.buf = append(s.buf, '"')
			quoted, closed = true, false
		case c == ',':
			s.ends = append(s.ends, len(s.buf))
			s.commas = append(s.commas, base+i)
			fresh, closed = true, false
		case c == '\n':
			s.trimReturn(closed)
		case closed && c == '\r' && (i+1 == len(chunk) || chunk[i+1] == '\n'):
		default:
			if closed {
				s.blame(base+i, "text follows a closing quote")
			} else if c == '"' {
				s.blame(base+i, "a bare quote stands inside a field")
			}
			fresh, closed = false, false // a stray quote spoils this field, not the rows after it
			run := plainRun(chunk[i:])
			s.buf = append(s.buf, chunk[i:i+run]...)
			i += run - 1
		}
	}
	return quoted, fresh, closed
}

// blame notes the first fault of a record.
func (s *scanner) blame(at int, fault string) {
	if s.fault == "" {
		s.fault, s.faultAt = fault, at
	}
}

// fieldAt returns where in raw a field begins; for one that the record lacks,
// where the record ends.
func (s *scanner) fieldAt(field int) int {
	switch {
	case field == 0:
		return 0
	case field <= len(s.commas):
		return s.commas[field-1] + 1
	}
	return len(bytes.TrimRight(s.raw, "\r\n"))
}

// plainRun is the length of the text at the start of b that has no meaning in
// CSV, at least 1.
func plainRun(b []byte) int {
	for i := 1; i < len(b); i++ {
		if c := b[i]; c == ',' || c == '\n' || c == '"' {
			return i
		}
	}
	return len(b)
}

// trimReturn takes the carriage return of a CRLF line end off the last field.
func (s *scanner) trimReturn(closed bool) {
	start := 0
	if len(s.ends) > 0 {
		start = s.ends[len(s.ends)-1]
	}
	if n := len(s.buf); n > start && s.buf[n-1] == '\r' && !closed {
		s.buf = s.buf[:n-1]
	}
}

// split returns the fields of the record as strings that share one allocation.
func (s *scanner) split() []string {
	text := string(s.buf)
	s.fields = s.fields[:0]
	start := 0
	for _, end := range append(s.ends, len(s.buf)) {
		s.fields = append(s.fields, text[start:end])
		start = end
	}
	return s.fields
}

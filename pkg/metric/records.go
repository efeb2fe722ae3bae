package metric

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxRecord is the longest record of a CSV, in bytes.
const maxRecord = 1 << 20

// recordError is a record that cannot be parsed; the next one may be fine.
type recordError struct {
	line int
	msg  string
}

func (e *recordError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.msg) }

// records splits a CSV as programs write it in practice: a quote is special only
// where a field begins, white space around a field does not count, lines end
// with LF or CRLF, empty lines are skipped. Unlike encoding/csv it tells a last
// line that has no end, and goes on after a record that is broken.
type records struct {
	r      *bufio.Reader
	line   int  // lines read
	start  int  // the line where the record began
	torn   bool // the record ended with the input, not with its line
	long   []byte
	fields []string
	buf    []byte
}

func newRecords(r io.Reader) *records {
	br := bufio.NewReaderSize(r, 64<<10)
	if mark, err := br.Peek(3); err == nil && bytes.Equal(mark, []byte("\ufeff")) {
		_, _ = br.Discard(3)
	}
	return &records{r: br}
}

// readLine returns the next line without its end, valid until the next call.
func (r *records) readLine() ([]byte, error) {
	line, err := r.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = append(r.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) && len(r.long) <= maxRecord {
			line, err = r.r.ReadSlice('\n')
			r.long = append(r.long, line...)
		}
		if len(r.long) > maxRecord {
			return nil, fmt.Errorf("line %d is longer than %d bytes", r.line+1, maxRecord)
		}
		line = r.long
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	r.line++
	r.torn = err != nil
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// next returns the fields of the next record, valid until the next call. It
// returns io.EOF at the end, a *recordError for a record that is broken, and any
// other error when it is no use to go on.
func (r *records) next() ([]string, error) {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		var err error
		if line, err = r.readLine(); err != nil {
			return nil, err
		}
	}
	r.start, r.fields = r.line, r.fields[:0]
	for {
		rest, err := r.field(line)
		if err != nil {
			return nil, err
		}
		if rest == nil {
			return r.fields, nil
		}
		line = rest
	}
}

// field reads the first field of line and returns what follows its comma, or nil
// when it was the last one.
func (r *records) field(line []byte) ([]byte, error) {
	trimmed := bytes.TrimLeft(line, " \t")
	if len(trimmed) > 0 && trimmed[0] == '"' {
		return r.quoted(trimmed[1:])
	}
	value, rest, more := bytes.Cut(line, []byte{','})
	if bytes.IndexByte(value, 0) >= 0 {
		return nil, &recordError{r.line, "there are NUL bytes in it (was it written by several processes at once, or as UTF-16?)"}
	}
	r.fields = append(r.fields, string(bytes.TrimSpace(value)))
	return tail(rest, more), nil
}

// quoted reads a field after its opening quote. It may go on over several lines.
func (r *records) quoted(line []byte) ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		i := bytes.IndexByte(line, '"')
		switch {
		case i < 0:
			r.buf = append(append(r.buf, line...), '\n')
			if len(r.buf) > maxRecord {
				return nil, fmt.Errorf("line %d: a quoted field is longer than %d bytes (is a closing quote missing?)", r.start, maxRecord)
			}
			next, err := r.readLine()
			if errors.Is(err, io.EOF) {
				r.torn = true
				return nil, &recordError{r.start, "a quoted field has no closing quote"}
			}
			if err != nil {
				return nil, err
			}
			line = next
		case i+1 < len(line) && line[i+1] == '"':
			r.buf = append(r.buf, line[:i+1]...)
			line = line[i+2:]
		default:
			r.buf = append(r.buf, line[:i]...)
			gap, rest, more := bytes.Cut(line[i+1:], []byte{','})
			if len(bytes.TrimSpace(gap)) > 0 {
				return nil, &recordError{r.line, "there is text after a closing quote"}
			}
			if bytes.IndexByte(r.buf, 0) >= 0 {
				return nil, &recordError{r.start, "there are NUL bytes in it"}
			}
			r.fields = append(r.fields, string(bytes.TrimSpace(r.buf)))
			return tail(rest, more), nil
		}
	}
}

// tail tells an empty last field from no further field.
func tail(rest []byte, more bool) []byte {
	if more && rest == nil {
		return []byte{}
	}
	if !more {
		return nil
	}
	return rest
}

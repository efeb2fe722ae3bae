package lint

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

var errRowTooLong = errors.New("the row is too long")

// rowReader cuts a CSV into rows. A row ends at a line end outside quotes. A
// quote opens a quoted cell only where a cell begins, so that a stray quote
// spoils one row and not the rest of the file.
type rowReader struct {
	r    *bufio.Reader
	line int // lines read
}

// next returns a row with its line end, and the line it begins on. At the end of
// the file the last row may come together with io.EOF.
func (r *rowReader) next() (raw string, line int, err error) {
	line = r.line + 1
	var b strings.Builder
	var q quoting
	for {
		part, err := r.r.ReadSlice('\n')
		b.Write(part)
		q.read(part)
		if b.Len() > maxRowBytes {
			return "", line, errRowTooLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return "", line, err
		}
		r.line++
		if err != nil || !q.quoted {
			return b.String(), line, err
		}
	}
}

// quoting follows whether a text stands inside a quoted cell.
type quoting struct {
	quoted   bool
	unquoted bool // inside a cell that did not begin with a quote
}

func (q *quoting) read(text []byte) {
	for _, c := range text {
		switch {
		case c == '"' && !q.unquoted:
			// Two quotes in a row close the cell and open it again.
			q.quoted = !q.quoted
		case q.quoted:
		case c == ',':
			q.unquoted = false
		default:
			q.unquoted = true
		}
	}
}

// cell is one cell of a row and the column, in characters, where it begins.
type cell struct {
	text   string
	column int
}

// badCell says why a row cannot be cut into cells.
type badCell struct {
	column  int
	message string
}

// split cuts a row into cells, strictly as RFC 4180 has it.
func split(raw string) ([]cell, *badCell) {
	line := strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r")
	var cells []cell
	for at := 0; ; {
		column := utf8.RuneCountInString(line[:at]) + 1
		rest := line[at:]
		if !strings.HasPrefix(rest, `"`) {
			end := strings.IndexByte(rest, ',')
			text := rest
			if end >= 0 {
				text = rest[:end]
			}
			if q := strings.IndexByte(text, '"'); q >= 0 {
				return nil, &badCell{column + utf8.RuneCountInString(text[:q]), "a quote inside a cell that does not begin with one"}
			}
			cells = append(cells, cell{text, column})
			if end < 0 {
				return cells, nil
			}
			at += end + 1
			continue
		}
		text, size, ok := unquoteCell(rest)
		if !ok {
			return nil, &badCell{column, "a quoted cell that is not closed"}
		}
		cells = append(cells, cell{text, column})
		at += size
		if at == len(line) {
			return cells, nil
		}
		if line[at] != ',' {
			return nil, &badCell{utf8.RuneCountInString(line[:at]) + 1, "text after the closing quote of a cell"}
		}
		at++
	}
}

// unquoteCell reads a quoted cell and returns how many bytes it takes.
func unquoteCell(s string) (text string, size int, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		return b.String(), i + 1, true
	}
	return "", 0, false
}

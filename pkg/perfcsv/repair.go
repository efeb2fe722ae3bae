package perfcsv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"assay/pkg/durable"
	"assay/pkg/exitcode"
)

const (
	// tailReach is how much of the end of a file is looked at when no note tells
	// where its last append began.
	tailReach = 64 << 10
	// tornLimit bounds what is taken for a torn record. More than that is a quote
	// somebody forgot, and rows would be lost.
	tornLimit = 64 << 10
)

// repair makes sure that f ends where a record ends. Whole rows stay; a record
// that was cut off by the death of its writer is moved to a file of its own,
// whose name is returned. What cannot be told from damage is refused.
func repair(f *os.File, path string) (torn string, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	n, known := readNote(f, path)
	if known && n.end == size {
		return "", nil
	}
	if known && n.begin <= size {
		if n.begin == size {
			return "", nil
		}
		return mend(f, path, n.begin, size, n.end)
	}
	sound, err := soundTail(f, size)
	if err != nil || sound {
		return "", err
	}
	return mend(f, path, 0, size, 0)
}

// soundTail says whether the last line of f is a whole record by itself.
func soundTail(f *os.File, size int64) (bool, error) {
	start := max(0, size-tailReach)
	tail := make([]byte, size-start)
	if _, err := f.ReadAt(tail, start); err != nil {
		return false, err
	}
	if !bytes.HasSuffix(tail, []byte("\n")) {
		return false, nil
	}
	last := tail[bytes.LastIndexByte(tail[:len(tail)-1], '\n')+1:]
	return wholeRow(last), nil
}

// wholeRow says whether line, with its line end, is one record of our width.
func wholeRow(line []byte) bool {
	record, err := newScanner(bytes.NewReader(line), 0).scan()
	return err == nil && len(record) == len(Columns()) && (record[len(record)-1] == "" || endsInTime(record))
}

// endsInTime says whether the last cell is a whole time. No beginning of a time
// is one.
func endsInTime(record []string) bool {
	_, err := time.Parse(time.RFC3339Nano, record[len(record)-1])
	return err == nil
}

// mend reads f from the byte start, where a record begins, and cuts off the
// record that the end of the file cuts. end is where the last append would have
// ended; 0 when that is not known.
func mend(f *os.File, path string, start, size, end int64) (torn string, err error) {
	s := newScanner(io.NewSectionReader(f, start, size-start), start)
	record, err := s.scan()
	for err == nil {
		record, err = s.scan()
	}
	switch {
	case errors.Is(err, io.EOF):
		return "", nil
	case errors.Is(err, errTooLong):
		return "", endless(path, s.offset)
	case !errors.Is(err, errCut):
		return "", err
	}
	return cut{f: f, path: path, offset: s.offset, size: size, end: end, record: record, open: s.open}.mend()
}

// cut is a record that the end of the file cuts off.
type cut struct {
	f            *os.File
	path         string
	offset, size int64 // where the record begins and the file ends
	end          int64 // where the last append would have ended; 0: not known
	record       []string
	open         bool // it is cut off inside quotes
}

// mend completes the record, sets it aside, or refuses.
func (c cut) mend() (torn string, err error) {
	ours := c.size < c.end // inside an append that is known
	if !ours && c.size-c.offset > tornLimit {
		return "", endless(c.path, c.offset)
	}
	piece := make([]byte, c.size-c.offset)
	if _, err := c.f.ReadAt(piece, c.offset); err != nil {
		return "", err
	}
	full := !c.open && len(c.record) == len(Columns())
	switch {
	case c.size == c.end-1, full && endsInTime(c.record):
		_, err := c.f.WriteString("\n") // only the line end is missing
		return "", err
	case !ours && full && c.record[len(c.record)-1] == "":
		return "", exitcode.Errorf(exitcode.Invalid,
			"%s: the last line, at byte %d, has no line end and may be cut off; nothing was appended. If it is whole end it with a newline, else delete it", c.path, c.offset)
	case !ours && hidesRows(piece):
		return "", endless(c.path, c.offset)
	}
	return c.setAside(piece)
}

// hidesRows says whether a line inside a torn record looks like a row of its own.
func hidesRows(piece []byte) bool {
	for line := range bytes.Lines(piece) {
		if len(line) < len(piece) && wholeRow(line) {
			return true
		}
	}
	return false
}

func endless(path string, offset int64) error {
	return exitcode.Errorf(exitcode.Invalid,
		"%s: the record that begins at byte %d never ends (a quote is not closed), and whole rows may follow it; nothing was appended. See `assay perf validate`, and mend the file or move it away", path, offset)
}

// setAside moves piece, the record, to a file of its own.
func (c cut) setAside(piece []byte) (string, error) {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s.torn-%d", c.path, c.offset)
		if i > 0 {
			name = fmt.Sprintf("%s-%d", name, i)
		}
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		if err := durable.WriteFile(name, piece, 0o644); err != nil {
			return "", fmt.Errorf("%s ends in a torn record at byte %d, which could not be set aside: %w", c.path, c.offset, err)
		}
		return name, c.f.Truncate(c.offset)
	}
}

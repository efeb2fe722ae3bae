package perfcsv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// The codes of a Problem.
const (
	CodeEmpty  = "EMPTY"       // the file has no content
	CodeBOM    = "BOM"         // it begins with a byte order mark
	CodeHeader = "PERF_HEADER" // the header is another one
	CodeWidth  = "PERF_WIDTH"  // a row has too few or too many cells
	CodeQuote  = "PERF_QUOTE"  // a quoted cell is malformed
	CodeNUL    = "PERF_NUL"    // a row has NUL bytes
	CodeValue  = "PERF_VALUE"  // a cell is not what its column holds
	CodeTorn   = "PERF_TORN"   // the last row has no line end
)

// Problem is one thing that is wrong with a perf.csv.
type Problem struct {
	Code    string
	Line    int    // from 1
	At      int    // the character of the line, from 1
	Row     int    // which row it is in, from 1; 0 for the header
	Column  string // the column's name; empty when the row as a whole is meant
	Message string
	Source  string // the line as it stands in the file, or the beginning of it
}

// String returns the problem as one line without the file's name.
func (p Problem) String() string {
	if p.Column == "" {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d: %s: %s", p.Line, p.Column, p.Message)
}

// Summary is what Validate found.
type Summary struct {
	Rows     int
	Problems []Problem // the first of them, in the order of the file
	More     int       // how many further problems there are
}

const (
	// problemLimit bounds how many problems are listed; the rest are counted.
	problemLimit = 1000
	// sourceLimit bounds the line that is kept with a problem.
	sourceLimit = 8 << 10
)

// Validate reads the file at path row by row and lists what is wrong with it:
// the header, rows of another width, cells of the wrong type, a torn end. Memory
// does not grow with the file. An error means that it could not be read.
func Validate(path string) (Summary, error) {
	f, err := Open(path)
	if err != nil {
		return Summary{}, err
	}
	sum, err := ValidateReader(f)
	return sum, errors.Join(err, f.Close())
}

// ValidateReader is Validate for content that is open already.
func ValidateReader(in io.Reader) (Summary, error) {
	v := validator{scanner: newScanner(in, 0), columns: Columns()}
	v.performance = slices.Index(v.columns, "performance")
	marked := v.skipMark()
	known, err := v.header(marked)
	for known && err == nil {
		var record []string
		v.current = v.sum.Rows + 1
		record, err = v.scan()
		if err == nil {
			v.sum.Rows++
			v.row(record)
		}
	}
	switch {
	case !known, errors.Is(err, io.EOF):
	case errors.Is(err, errTooLong):
		v.inRow(CodeQuote, 0, err.Error())
	case errors.Is(err, errCut) && v.open:
		v.inRow(CodeQuote, v.fieldAt(len(v.commas)), "the file ends inside a quoted cell: a quote is not closed, or the row is torn")
	case errors.Is(err, errCut):
		v.inRow(CodeTorn, 0, "the file ends without a line end: the row may be torn")
	default:
		return v.sum, err
	}
	return v.sum, nil
}

type validator struct {
	*scanner
	columns     []string
	performance int // the index of that column
	current     int // the row that was read last; 0 for the header
	sum         Summary
}

// header checks the first line and says whether the rows can be understood. The
// error is what ended the header: the end of the file, or a failure to read.
func (v *validator) header(marked bool) (known bool, err error) {
	head, err := v.scan()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errCut) && !errors.Is(err, errTooLong) {
		return true, err
	}
	if marked {
		v.add(Problem{Code: CodeBOM, Message: markProblem}, 0)
	}
	if errors.Is(err, io.EOF) {
		v.add(Problem{Code: CodeEmpty, Message: "the file is empty: it has no header"}, 0)
		return false, nil
	}
	if problem, field := headerProblem(head); problem != "" {
		v.add(Problem{Code: CodeHeader, Message: problem}, v.fieldAt(field))
		return false, nil
	}
	return true, err
}

// add lists a problem at a byte of the record that was read last.
func (v *validator) add(p Problem, at int) {
	if len(v.sum.Problems) == problemLimit {
		v.sum.More++
		return
	}
	start := bytes.LastIndexByte(v.raw[:at], '\n') + 1
	line, _, _ := bytes.Cut(v.raw[start:], []byte("\n"))
	p.Line = max(v.line, 1) + bytes.Count(v.raw[:start], []byte("\n"))
	p.At = utf8.RuneCount(v.raw[start:at]) + 1
	p.Source = string(bytes.TrimSuffix(line[:min(len(line), sourceLimit)], []byte("\r")))
	v.sum.Problems = append(v.sum.Problems, p)
}

// inRow lists a problem of the row that was read last.
func (v *validator) inRow(code string, at int, message string) {
	v.add(Problem{Code: code, Row: v.current, Message: message}, at)
}

func (v *validator) inCell(field int, message string) {
	v.add(Problem{Code: CodeValue, Row: v.current, Column: v.columns[field], Message: message}, v.fieldAt(field))
}

func (v *validator) row(record []string) {
	switch nul := bytes.IndexByte(v.raw, 0); {
	case nul >= 0:
		v.inRow(CodeNUL, nul, "the row has NUL bytes: several writers without a lock, or a file system that lost a write")
		return
	case v.fault != "":
		v.inRow(CodeQuote, v.faultAt, v.fault)
		return
	case len(record) != len(v.columns):
		v.inRow(CodeWidth, 0, fmt.Sprintf("%d cells where the header has %d", len(record), len(v.columns)))
		return
	}
	readable := utf8.Valid(v.buf)
	for i, name := range v.columns {
		switch problem := cellProblem(name, record[i]); {
		case problem != "":
			v.inCell(i, fmt.Sprintf("%.60q %s", record[i], problem))
		case !readable && !utf8.ValidString(record[i]):
			v.inCell(i, fmt.Sprintf("%.60q is not valid UTF-8", record[i]))
		case name == "status" && record[i] == StatusSuccess && record[v.performance] == "":
			v.inCell(i, "SUCCESS without a number in performance")
		}
	}
}

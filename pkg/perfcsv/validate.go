package perfcsv

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// Problem is one thing that is wrong with a perf.csv.
type Problem struct {
	Line    int    // on which the row begins, from 1
	Column  string // the column's name; empty when the row as a whole is meant
	Message string
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

// problemLimit bounds how many problems are listed; the rest are counted.
const problemLimit = 1000

// Validate reads the file at path row by row and lists what is wrong with it:
// the header, rows of another width, cells of the wrong type, a torn end. Memory
// does not grow with the file. An error means that it could not be read.
func Validate(path string) (Summary, error) {
	f, err := openRegular(path)
	if err != nil {
		return Summary{}, err
	}
	sum, err := validate(f)
	return sum, errors.Join(err, f.Close())
}

func validate(in io.Reader) (Summary, error) {
	v := validator{columns: Columns(), scanner: newScanner(in, 0)}
	v.status = slices.Index(v.columns, "status")
	v.performance = slices.Index(v.columns, "performance")
	head, err := v.scanner.scan()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errCut) {
		return v.sum, err
	}
	if problem := headerProblem(head); problem != "" {
		v.add("", problem)
		return v.sum, nil
	}
	v.width = len(v.columns)
	for err == nil {
		var record []string
		record, err = v.scanner.scan()
		if err == nil {
			v.row(record)
		}
	}
	switch {
	case errors.Is(err, errCut) && v.scanner.open:
		v.add("", "the file ends inside a quoted cell: a quote is not closed, or the row is torn")
	case errors.Is(err, errCut):
		v.add("", "the file ends without a line end: the row may be torn")
	case !errors.Is(err, io.EOF):
		return v.sum, err
	}
	return v.sum, nil
}

type validator struct {
	scanner             *scanner
	columns             []string
	width               int
	status, performance int
	sum                 Summary
}

func (v *validator) add(column, message string) {
	if len(v.sum.Problems) == problemLimit {
		v.sum.More++
		return
	}
	v.sum.Problems = append(v.sum.Problems, Problem{v.scanner.line, column, message})
}

func (v *validator) row(record []string) {
	v.sum.Rows++
	if v.scanner.fault != "" {
		v.add("", v.scanner.fault)
	}
	if len(record) != v.width {
		v.add("", fmt.Sprintf("%d cells where the header has %d", len(record), v.width))
		return
	}
	if !utf8.Valid(v.scanner.buf) {
		v.add("", "is not valid UTF-8")
	}
	for i, name := range v.columns {
		if problem := cellProblem(name, record[i]); problem != "" {
			v.add(name, fmt.Sprintf("%.60q %s", record[i], problem))
		}
	}
	if record[v.status] == StatusSuccess && record[v.performance] == "" {
		v.add("status", "SUCCESS without a number in performance")
	}
}

package perfcsv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"assay/pkg/exitcode"
)

// headerReach is how much of a file is read for its header; ours is a tenth.
const headerReach = 8 << 10

// madengineColumns is how many columns madengine writes; they are our first.
const madengineColumns = 29

// checkHeader refuses a file whose first line is not our header. A file counts
// as empty when it holds nothing, or no more than the beginning of our header,
// left by a writer that was killed.
func checkHeader(f *os.File, path string) (empty bool, err error) {
	first := make([]byte, headerReach)
	n, err := f.ReadAt(first, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first = first[:n]
	if want := header(); n < len(want) && bytes.HasPrefix(want, first) {
		return true, nil
	}
	in := newScanner(bytes.NewReader(first), 0)
	marked := in.skipMark()
	record, err := in.scan()
	if err != nil && n == headerReach {
		record = nil
	}
	problem, _ := headerProblem(record)
	if marked {
		problem = markProblem
	}
	if problem != "" {
		return false, exitcode.Errorf(exitcode.Invalid,
			"%s: %s; nothing was appended. Name another file with --perf-csv, or move this one away and recreate it with `assay perf rebuild`", path, problem)
	}
	return false, nil
}

// markProblem is what is wrong with a file that a spreadsheet has saved. Rows
// that are added to it would be found, but its first column would not.
const markProblem = "the file begins with a byte order mark, which readers take for a part of the first column's name"

// headerProblem says in what a header differs from ours, and in which field; ""
// when it does not.
func headerProblem(got []string) (problem string, field int) {
	want := Columns()
	switch {
	case slices.Equal(got, want):
		return "", 0
	case len(got) == 0:
		return "line 1 is no header of perf.csv", 0
	case len(got) <= madengineColumns && got[0] == want[0] && isSubset(got, want):
		return fmt.Sprintf("the header is that of a madengine perf.csv, %d columns where assay writes %d, and rows of two widths would shift columns", len(got), len(want)), len(got)
	}
	for i, name := range want {
		if i >= len(got) {
			return fmt.Sprintf("the header ends after column %d; column %d, %q, is missing", len(got), i+1, name), i
		}
		if got[i] != name {
			return fmt.Sprintf("column %d of the header is %.40q where %q is expected", i+1, got[i], name), i
		}
	}
	return fmt.Sprintf("column %d of the header, %.40q, is not known", len(want)+1, got[len(want)]), len(want)
}

func isSubset(names, of []string) bool {
	for _, n := range names {
		if !slices.Contains(of, n) {
			return false
		}
	}
	return true
}

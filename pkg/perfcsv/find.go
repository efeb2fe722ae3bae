package perfcsv

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// without returns the rows that are not in f at or after from. Rows are the same
// when run, attempt, scope, model and metric are; of n equal ones n must be there.
func without(f *os.File, rows []Row, from int64) ([]Row, error) {
	there := map[string]int{}
	err := eachAfter(f, from, func(r Row) bool {
		there[rowKey(r)]++
		return true
	})
	if err != nil {
		return nil, err
	}
	var missing []Row
	for _, r := range rows {
		if key := rowKey(readable(r)); there[key] > 0 {
			there[key]--
			continue
		}
		missing = append(missing, r)
	}
	return missing, nil
}

func rowKey(r Row) string {
	return strings.Join([]string{r.RunID, strconv.Itoa(r.Attempt), r.Scope, r.Model, r.Metric}, "\x00")
}

// eachAfter hands over the rows of f that lie at or after from until yield says
// false. An offset that is no start of a line, of a file that was replaced since,
// means the whole file. Of a row only the columns that tell it apart are set.
func eachAfter(f *os.File, from int64, yield func(Row) bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if from > 0 && !endsLine(f, from, info.Size()) {
		from = 0
	}
	at := newPositions()
	s := newScanner(io.NewSectionReader(f, from, info.Size()-from), from)
	for {
		record, err := s.scan()
		if errors.Is(err, io.EOF) || errors.Is(err, errCut) {
			return nil
		}
		if errors.Is(err, errTooLong) {
			return endless(f.Name(), s.offset)
		}
		if err != nil {
			return err
		}
		if row, ok := at.identity(record); ok && !yield(row) {
			return nil
		}
	}
}

// endsLine says whether a line ends just before offset.
func endsLine(f *os.File, offset, size int64) bool {
	var b [1]byte
	if offset > size {
		return false
	}
	_, err := f.ReadAt(b[:], offset-1)
	return err == nil && b[0] == '\n'
}

// positions are the indices of the columns that tell rows apart.
type positions struct {
	width, runID, attempt, scope, model, metric int
}

func newPositions() positions {
	columns := Columns()
	at := func(name string) int { return slices.Index(columns, name) }
	return positions{
		width: len(columns), runID: at("run_id"), attempt: at("attempt"),
		scope: at("scope"), model: at("model"), metric: at("metric"),
	}
}

func (p positions) identity(record []string) (Row, bool) {
	if len(record) != p.width {
		return Row{}, false
	}
	attempt, err := strconv.Atoi(record[p.attempt])
	return Row{
		RunID: record[p.runID], Attempt: attempt, Scope: record[p.scope],
		Model: record[p.model], Metric: record[p.metric],
	}, err == nil
}

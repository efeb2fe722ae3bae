package perfcsv

import (
	"errors"
	"fmt"
	"io"

	"github.com/gocarina/gocsv"
)

// read returns the rows of the file at path as a typed reader sees them.
func read(path string) ([]Row, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	var rows []Row
	err = gocsv.UnmarshalCSV(csvReader{newScanner(f, 0)}, &rows)
	return rows, errors.Join(err, f.Close())
}

// csvReader is a scanner as gocsv wants it.
type csvReader struct{ *scanner }

func (r csvReader) Read() ([]string, error) {
	record, err := r.scan()
	switch {
	case errors.Is(err, errCut) && !r.open:
		return record, nil
	case err != nil:
		return nil, err
	}
	return record, nil
}

func (r csvReader) ReadAll() ([][]string, error) {
	var all [][]string
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		if len(all) > 0 && len(record) != len(all[0]) {
			return nil, fmt.Errorf("line %d has %d cells where the header has %d", r.line, len(record), len(all[0]))
		}
		all = append(all, append([]string(nil), record...))
	}
}

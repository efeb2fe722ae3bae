package lint

import (
	"bytes"
	"fmt"
	"io"
	"strconv"

	"assay/pkg/perfcsv"
)

func perfFile(path string) *Result {
	f, err := perfcsv.Open(path)
	if err != nil {
		return readFailed(path, PerfCSV, err)
	}
	defer f.Close()
	return perf(path, f)
}

func perfBytes(name string, data []byte) *Result { return perf(name, bytes.NewReader(data)) }

// perf turns the problems of a perf.csv into findings.
func perf(name string, r io.Reader) *Result {
	sum, err := perfcsv.ValidateReader(r)
	if err != nil {
		return readFailed(name, PerfCSV, err)
	}
	res := &Result{File: name, Kind: PerfCSV, excerpts: map[place]excerpt{}}
	for _, p := range sum.Problems {
		f := Finding{
			File: name, Line: p.Line, Column: p.At, Severity: Error, Code: p.Code,
			Pointer: perfPointer(p), Message: p.Message, Fix: perfFix(p.Code),
		}
		if p.Column != "" {
			f.Message = p.Column + ": " + p.Message
		}
		res.Findings = append(res.Findings, f)
		res.excerpts[placeOf(f)] = cut(p.Source, p.At)
	}
	if sum.More > 0 {
		last := sum.Problems[len(sum.Problems)-1]
		res.Findings = append(res.Findings, Finding{
			File: name, Line: last.Line, Column: last.At, Severity: Error, Code: More, Message: fmt.Sprintf("and %d more problems", sum.More),
		})
	}
	return res
}

func perfPointer(p perfcsv.Problem) string {
	if p.Row == 0 {
		return ""
	}
	pointer := "/" + strconv.Itoa(p.Row-1)
	if p.Column != "" {
		pointer += "/" + p.Column
	}
	return pointer
}

func perfFix(code string) string {
	switch code {
	case perfcsv.CodeBOM:
		return "save the file as UTF-8 without a byte order mark"
	case PerfHeader, PerfNUL:
		return "assay perf rebuild recreates the file from the runs"
	case PerfTorn:
		return "the next append completes the row or sets it aside, where it is certain which, and else refuses the file; assay perf rebuild recreates it from the runs"
	}
	return ""
}

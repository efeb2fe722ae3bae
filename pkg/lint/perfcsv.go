package lint

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"assay/pkg/document"
	"assay/pkg/phrase"
	"assay/pkg/spelling"
	"assay/schemas"
)

// maxRowBytes bounds one row, so that a file without line ends is no reason to
// hold all of it.
const maxRowBytes = 16 << 20

// maxPerfFindings bounds the findings of one perf.csv: beyond it the file is
// something else.
const maxPerfFindings = 1000

// column is what the schema says about one column.
type column struct {
	name     string
	types    []string
	enum     []string
	nonEmpty bool
	minimum  *float64
	dateTime bool
}

// perfCheck checks one perf.csv as a stream.
type perfCheck struct {
	columns []column
	result  *Result
	row     int // data rows seen
}

func (l *Linter) perfFile(path string) *Result {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		defer f.Close()
		var info os.FileInfo
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
			return l.perf(path, f)
		}
	}
	// The same words as for every other file.
	if _, err := document.Read(path); err != nil {
		return readFailed(path, PerfCSV, err)
	}
	return readFailed(path, PerfCSV, err)
}

func (l *Linter) perfBytes(name string, data []byte) *Result {
	return l.perf(name, bytes.NewReader(data))
}

func (l *Linter) perf(name string, r io.Reader) *Result {
	p := &perfCheck{result: &Result{File: name, Kind: PerfCSV, excerpts: map[place]excerpt{}}}
	columns, err := perfColumns()
	if err != nil {
		p.add(0, 0, Internal, "", err.Error(), "", "")
		return p.result
	}
	p.columns = columns
	if err := p.read(r); err != nil {
		p.add(0, 0, ReadFailed, "", err.Error(), "", "")
	}
	return p.result
}

// perfColumns reads the columns from the schema.
func perfColumns() ([]column, error) {
	text, err := schemas.Read("perf_csv")
	if err != nil {
		return nil, err
	}
	doc, problems := document.Parse("perf_csv.schema.json", text)
	if doc == nil {
		return nil, fmt.Errorf("schema perf_csv: %s", problems[0].Message)
	}
	var columns []column
	for n := range doc.Root().Get("x-columns").Children() {
		prop := doc.Root().Get("properties").Get(n.Text())
		c := column{name: n.Text(), types: texts(prop.Get("type")), enum: texts(prop.Get("enum"))}
		length, _ := prop.Get("minLength").Int()
		c.nonEmpty = length > 0
		c.dateTime = prop.Get("format").Text() == "date-time"
		if v, ok := prop.Get("minimum").Number(); ok {
			c.minimum = &v
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// texts returns a string, or the strings of a list.
func texts(n document.Node) []string {
	if n.Kind() == document.KindString {
		return []string{n.Text()}
	}
	var all []string
	for c := range n.Children() {
		if c.Kind() == document.KindString {
			all = append(all, c.Text())
		}
	}
	return all
}

// read checks the header and then each row.
func (p *perfCheck) read(r io.Reader) error {
	rows := &rowReader{r: bufio.NewReaderSize(r, 1<<16)}
	header := true
	for len(p.result.Findings) < maxPerfFindings {
		raw, line, err := rows.next()
		if err != nil && !errors.Is(err, io.EOF) {
			if errors.Is(err, errRowTooLong) {
				p.add(line, 1, PerfQuote, "", fmt.Sprintf("the row is longer than %d MiB: a quote is probably not closed", maxRowBytes>>20), "", "")
				return nil
			}
			return err
		}
		if len(raw) == 0 {
			if header {
				p.add(1, 1, document.CodeEmpty, "", "the file is empty", "", "")
			}
			return nil
		}
		if header {
			header = false
			if !p.header(raw, line) {
				return nil
			}
		} else {
			p.check(raw, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
	p.add(0, 0, PerfValue, "", fmt.Sprintf("more than %d findings: the rest of the file was not looked at", maxPerfFindings), "", "")
	return nil
}

// header checks the header and says whether the rows can be understood.
func (p *perfCheck) header(raw string, line int) bool {
	if rest, ok := strings.CutPrefix(raw, "\ufeff"); ok {
		raw = rest
		p.addSeverity(Warning, line, 1, document.CodeBOM, "", "the file begins with a byte order mark, which readers take for a part of the first column's name", "save the file as UTF-8 without a byte order mark", raw)
	}
	cells, bad := split(raw)
	if bad != nil {
		p.add(line, bad.column, PerfQuote, "", "the header has "+bad.message, "", raw)
		return false
	}
	var want []string
	for _, c := range p.columns {
		want = append(want, c.name)
	}
	for i, name := range want {
		switch {
		case i >= len(cells):
			p.add(line, len([]rune(strings.TrimRight(raw, "\r\n")))+1, PerfHeader, "", fmt.Sprintf("the header ends after %d columns; %q is missing", len(cells), name), "assay perf rebuild recreates the file from the runs", raw)
			return false
		case cells[i].text != name:
			message := fmt.Sprintf("column %d of the header is %q, not %q", i+1, phrase.Clip(cells[i].text, 60), name)
			if slices.Contains(want, cells[i].text) {
				message += ": the columns are in another order or one is missing"
			}
			p.add(line, cells[i].column, PerfHeader, "", message, "assay perf rebuild recreates the file from the runs", raw)
			return false
		}
	}
	if len(cells) > len(want) {
		extra := cells[len(want)]
		p.add(line, extra.column, PerfHeader, "", fmt.Sprintf("the header has a column %q that is not known", phrase.Clip(extra.text, 60)), "assay perf rebuild recreates the file from the runs", raw)
		return false
	}
	return true
}

// check checks one row.
func (p *perfCheck) check(raw string, line int) {
	index := p.row
	p.row++
	pointer := "/" + strconv.Itoa(index)
	if i := strings.IndexByte(raw, 0); i >= 0 {
		p.add(line, utf8.RuneCountInString(raw[:i])+1, PerfNUL, pointer, "the row has NUL bytes: several writers without a lock, or a file system that lost a write", "assay perf rebuild recreates the file from the runs", raw)
		return
	}
	if !strings.HasSuffix(raw, "\n") {
		p.add(line, 1, PerfTorn, pointer, "the last row has no line end: an append was interrupted", "the next append repairs it", raw)
	}
	cells, bad := split(raw)
	if bad != nil {
		p.add(line, bad.column, PerfQuote, pointer, "the row has "+bad.message, "", raw)
		return
	}
	if len(cells) != len(p.columns) {
		p.add(line, 1, PerfWidth, pointer, fmt.Sprintf("the row has %d cells, and the header has %d columns", len(cells), len(p.columns)), "", raw)
		return
	}
	status, performance := "", ""
	for i, c := range p.columns {
		text := cells[i].text
		if why := c.wrong(text); why != "" {
			// The position of a cell behind a line break inside a quoted cell is that
			// of the row: good enough to find it.
			p.add(line, cells[i].column, PerfValue, pointer+"/"+c.name, fmt.Sprintf("%s %s", c.name, why), "", raw)
		}
		switch c.name {
		case "status":
			status = text
		case "performance":
			performance = text
		}
	}
	if status == "SUCCESS" && performance == "" {
		p.add(line, 1, PerfValue, pointer+"/status", "status is SUCCESS and there is no performance: a success has a number", "", raw)
	}
}

// wrong says what is wrong with a cell, or "".
func (c column) wrong(text string) string {
	if !utf8.ValidString(text) {
		return "is not UTF-8"
	}
	if text == "" {
		if c.nonEmpty || !slices.Contains(c.types, "null") && !slices.Contains(c.types, "string") || len(c.enum) > 0 && !slices.Contains(c.types, "null") {
			return "is empty"
		}
		return ""
	}
	if len(c.enum) > 0 && !slices.Contains(c.enum, text) {
		why := fmt.Sprintf("is %q, not one of %s", phrase.Clip(text, 60), strings.Join(c.enum, ", "))
		if near := spelling.Nearest(text, c.enum); near != "" {
			why += fmt.Sprintf("; did you mean %q?", near)
		}
		return why
	}
	if c.dateTime {
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return fmt.Sprintf("is %q, not a time such as 2026-01-31T12:00:00Z", phrase.Clip(text, 60))
		}
	}
	if slices.Contains(c.types, "string") {
		return ""
	}
	return c.wrongNumber(text)
}

func (c column) wrongNumber(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	integer := slices.Contains(c.types, "integer")
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprintf("is %q, not a finite number", phrase.Clip(text, 60))
	case integer && v != math.Trunc(v):
		return fmt.Sprintf("is %s, not an integer", text)
	case c.minimum != nil && v < *c.minimum:
		return fmt.Sprintf("is %s, less than %v", text, *c.minimum)
	}
	return ""
}

func (p *perfCheck) add(line, column int, code, pointer, message, fix, raw string) {
	p.addSeverity(Error, line, column, code, pointer, message, fix, raw)
}

func (p *perfCheck) addSeverity(s Severity, line, column int, code, pointer, message, fix, raw string) {
	f := Finding{File: p.result.File, Line: line, Column: column, Severity: s, Code: code, Pointer: pointer, Message: message, Fix: fix}
	p.result.Findings = append(p.result.Findings, f)
	first, _, _ := strings.Cut(raw, "\n")
	p.result.excerpts[placeOf(f)] = cut(phrase.Clip(strings.TrimSuffix(first, "\r"), 1<<16), column)
}

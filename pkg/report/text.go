package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/verdict"

	"github.com/mattn/go-runewidth"
)

// Options say how text is laid out.
type Options struct {
	Color   bool // use the escape sequences of a terminal
	Width   int  // columns of the terminal; 0 means no limit
	Verbose bool // every measurement, reason and warning
}

const (
	reasonsShown      = 3 // of each code
	measurementsShown = 2
)

// Text writes the table of a run: one line a job, its reasons below it, and the
// verdict on the run at the end. The same run gives the same text.
func Text(w io.Writer, run Run, opt Options) error {
	var buf bytes.Buffer
	t := table{opt: opt, rows: [][]string{{"JOB", "VERDICT", "MEASURED", "ELAPSED", "NODES"}}}
	names := labels(run)
	for i, j := range run.Jobs {
		t.rows = append(t.rows, t.row(names[i], j))
	}
	t.fit()
	if len(run.Jobs) > 0 {
		t.line(&buf, 0, verdict.Unknown)
	}
	for i, j := range run.Jobs {
		t.line(&buf, i+1, j.Verdict)
		notes(&buf, j, opt)
	}
	pairs(&buf, run.Pairs, run.Target, opt.Verbose)
	fmt.Fprintf(&buf, "%s  %s\n", Paint(run.Verdict.String(), run.Verdict, opt.Color), phrase.Line(summing(run)))
	if run.Dir != "" {
		fmt.Fprintf(&buf, "run %s in %s\n", phrase.Line(run.RunID), phrase.Line(run.Dir))
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// notes writes the reasons and warnings of a job below its line.
func notes(buf *bytes.Buffer, j Job, opt Options) {
	most := reasonsShown
	if opt.Verbose {
		most = 0
	}
	if j.Verdict != verdict.Pass || opt.Verbose {
		for _, line := range group(j.Reasons, most) {
			fmt.Fprintf(buf, "    %s\n", phrase.Line(line))
		}
	}
	for _, n := range j.NotEvaluated {
		fmt.Fprintf(buf, "    not evaluated: %s\n", phrase.Line(n.Message))
	}
	for _, line := range group(j.Warnings, most) {
		fmt.Fprintf(buf, "    warning: %s\n", phrase.Line(line))
	}
	for _, line := range attempts(j) {
		fmt.Fprintf(buf, "    %s\n", phrase.Line(line))
	}
}

// table lays out cells in columns.
type table struct {
	opt    Options
	rows   [][]string
	widths []int
}

// The columns that get special treatment.
const (
	jobColumn      = 0
	verdictColumn  = 1
	measuredColumn = 2
	nodesColumn    = 4
	leastWidth     = 12 // what a column keeps on a narrow terminal
)

func (t *table) row(name string, j Job) []string {
	most := measurementsShown
	if t.opt.Verbose {
		most = 0
	}
	cells := []string{name, j.Verdict.String(), measurements(j.Measurements, most), elapsed(j.ElapsedSeconds), nodeList(j.Nodes)}
	for i, c := range cells {
		cells[i] = phrase.Line(c)
	}
	return cells
}

// fit sets the widths of the columns, and shortens the measurements, then the
// names, then the nodes where the terminal is too narrow.
func (t *table) fit() {
	t.widths = make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], textWidth(cell))
		}
	}
	over := 2 * (len(t.widths) - 1)
	for _, w := range t.widths {
		over += w
	}
	over -= t.opt.Width
	for _, column := range []int{measuredColumn, jobColumn, nodesColumn} {
		if t.opt.Width > 0 && over > 0 {
			over -= t.shorten(column, over)
		}
	}
}

// shorten takes up to n columns from a column of the table and returns how many
// it took.
func (t *table) shorten(column, n int) int {
	room := max(leastWidth, t.widths[column]-n)
	took := t.widths[column] - room
	if took <= 0 {
		return 0
	}
	t.widths[column] = room
	for _, row := range t.rows {
		row[column] = width().Truncate(row[column], room, "…")
	}
	return took
}

func (t *table) line(buf *bytes.Buffer, n int, word verdict.Word) {
	var line strings.Builder
	for i, cell := range t.rows[n] {
		if i > 0 {
			line.WriteString("  ")
		}
		pad := strings.Repeat(" ", max(0, t.widths[i]-textWidth(cell)))
		if i == verdictColumn && n > 0 {
			cell = Paint(cell, word, t.opt.Color)
		}
		line.WriteString(cell + pad)
	}
	buf.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// width measures text in the columns it takes, whatever the locale.
func width() *runewidth.Condition { return &runewidth.Condition{} }

func textWidth(s string) int { return width().StringWidth(s) }

// Paint colours text by a verdict, when there is to be colour.
func Paint(text string, word verdict.Word, color bool) string {
	if !color {
		return text
	}
	code := "33"
	switch word {
	case verdict.NoMetric, verdict.Skip: // yellow
	case verdict.Pass:
		code = "32"
	case verdict.Fail:
		code = "31"
	case verdict.Error:
		code = "35"
	case verdict.Unknown, verdict.Pending:
		code = "36"
	}
	return "\x1b[1;" + code + "m" + text + "\x1b[0m"
}

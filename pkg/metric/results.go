package metric

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/spelling"
)

// The columns of a results CSV that are read.
const (
	columnModel       = "model"
	columnPerformance = "performance"
	columnMetric      = "metric"
	columnUnit        = "unit"
)

// Performance is the name under which values of `performance:` lines and results
// CSVs are gated, and the name of a value whose row names no metric.
const Performance = "performance"

// ParseResults reads a results CSV as a stream. Its header needs a performance
// column; model, metric and unit are read when present and every other column is
// left alone. Case, spacing, quoting and order of the columns do not matter.
//
// Rows come in file order, duplicates included: rows that share model and metric
// often differ in another column. A row without a performance, one that is not
// as wide as the header and one that was cut off are problems and no readings. Of
// a last line that has no end, what is read may be half of the last field; the
// reading says so, and whoever knows how the writer ended decides. Name stands for
// the file in places and problems. Columns are the columns as the header spells them.
func ParseResults(r io.Reader, name string) (rows []Reading, columns []string, problems []Problem) {
	p := resultsParser{name: name, in: newRecords(r)}
	header, err := p.in.next()
	if err != nil {
		return nil, nil, []Problem{p.headerProblem(err)}
	}
	p.columns = slices.Clone(header)
	if !p.findColumns() {
		return nil, p.columns, p.problems
	}
	for p.row() {
	}
	p.finish()
	return p.rows, p.columns, p.problems
}

type resultsParser struct {
	name     string
	in       *records
	columns  []string
	model    int // indexes of columns; -1: there is none
	perf     int
	metric   int
	unit     int
	rows     []Reading
	seen     int // whole rows
	empty    int // rows without a performance
	empties  []Row
	problems []Problem
	more     int // problems beyond maxProblems
}

func (p *resultsParser) headerProblem(err error) Problem {
	if errors.Is(err, io.EOF) {
		return p.problem(CodeEmpty, "%s is empty", p.name)
	}
	return p.problem(CodeUnreadable, "%s cannot be read: %v", p.name, err)
}

func (p *resultsParser) problem(code, format string, args ...any) Problem {
	return Problem{Code: code, Source: SourceResults, Message: fmt.Sprintf(format, args...)}
}

func (p *resultsParser) add(problem Problem) {
	if len(p.problems) >= maxProblems {
		p.more++
		return
	}
	p.problems = append(p.problems, problem)
}

// findColumns looks the columns up and says what is wrong with the header when
// that makes the file useless.
func (p *resultsParser) findColumns() bool {
	find := func(want string) int {
		return slices.IndexFunc(p.columns, func(c string) bool { return normalColumn(c) == want })
	}
	p.model, p.perf, p.metric, p.unit = find(columnModel), find(columnPerformance), find(columnMetric), find(columnUnit)
	if p.perf < 0 {
		p.add(p.problem(CodeNoColumn, "%s has no performance column; its columns are %s%s", p.name, listColumns(p.columns), columnHint(p.columns)))
		return false
	}
	for i, c := range p.columns {
		if i != p.perf && normalColumn(c) == columnPerformance {
			p.add(p.problem(CodeUnreadable, "%s has two performance columns (%d and %d); keep one", p.name, p.perf+1, i+1))
			return false
		}
	}
	if p.metric < 0 {
		p.add(p.problem(CodeNoColumn, "%s has no metric column, so its values are called %s; its columns are %s", p.name, Performance, listColumns(p.columns)))
	}
	return true
}

// row reads one row and reports whether to go on.
func (p *resultsParser) row() bool {
	fields, err := p.in.next()
	var broken *recordError
	switch {
	case errors.Is(err, io.EOF):
		return false
	case errors.As(err, &broken):
		p.add(p.lost(Row{}, "%s: %v", p.name, err))
		return true
	case err != nil:
		p.add(p.lost(Row{}, "%s cannot be read any further: %v", p.name, err))
		return false
	}
	if len(fields) != len(p.columns) {
		why := "the row is no reading"
		if p.in.torn && len(fields) < len(p.columns) {
			why = "the last line was cut off and is no reading"
		}
		var row Row // which columns a ragged row lacks is not known
		if p.in.torn && len(fields) < len(p.columns) {
			row = p.rowOf(fields)
		}
		p.add(p.lost(row, "%s:%d has %s where the header has %d; %s", p.name, p.in.start, phrase.Count(len(fields), "field"), len(p.columns), why))
		return true
	}
	if p.in.torn && p.metric == len(fields)-1 && fields[p.metric] == "" && fields[p.perf] != "" {
		p.add(p.lost(p.rowOf(fields), "%s:%d ends in an empty metric and has no line end; the last line may be cut off and is no reading", p.name, p.in.start))
		return true
	}
	p.seen++
	p.reading(fields)
	return true
}

// lost is the problem of a row that cannot be read, row what is left of it.
func (p *resultsParser) lost(row Row, format string, args ...any) Problem {
	problem := p.problem(CodeUnreadable, format, args...)
	row.Place, row.Cut = p.place(), true
	if p.metric < 0 {
		row.Name = Performance // without a metric column it can be nothing else
	}
	problem.Rows = []Row{row}
	return problem
}

// place is where the row began that was read last.
func (p *resultsParser) place() string { return p.name + ":" + strconv.Itoa(p.in.start) }

// rowOf is what a row is about, as far as it goes.
func (p *resultsParser) rowOf(fields []string) Row {
	row := Row{Name: pick(fields, p.metric), Model: pick(fields, p.model), Place: p.place(), Cut: p.in.torn}
	if row.Name == "" && (!row.Cut || p.metric < 0) {
		row.Name = Performance
	}
	return row
}

// anyRow stands for rows of which nothing is kept.
func (p *resultsParser) anyRow() Row {
	if p.metric < 0 {
		return Row{Name: Performance, Place: p.name, Cut: true}
	}
	return Row{Place: p.name, Cut: true}
}

// withoutValue remembers a row whose performance is empty.
func (p *resultsParser) withoutValue(row Row) {
	p.empty++
	known := func(r Row) bool {
		return r == p.anyRow() || r.Name == row.Name && r.Model == row.Model && r.Cut == row.Cut
	}
	switch n := len(p.empties); {
	case slices.ContainsFunc(p.empties, known):
	case n < maxProblems:
		p.empties = append(p.empties, row)
	default:
		p.empties = append(p.empties, p.anyRow()) // any other
	}
}

func (p *resultsParser) reading(fields []string) {
	text := fields[p.perf]
	if text == "" {
		p.withoutValue(p.rowOf(fields))
		return
	}
	r := Reading{
		Name: Performance, Source: SourceResults,
		Place: p.place(),
		Model: pick(fields, p.model), Unit: pick(fields, p.unit),
		Unended: p.in.torn && slices.Contains([]int{p.model, p.perf, p.metric, p.unit}, len(fields)-1),
	}
	if name := pick(fields, p.metric); name != "" {
		r.Name = name
	}
	q, err := parseQuantity(text)
	if err != nil {
		bad := p.problem(CodeNotANumber, "%s: %v", r.Place, err)
		bad.Name, bad.Model = r.Name, r.Model
		if r.Unended {
			bad.Rows = []Row{p.rowOf(fields)}
		}
		p.add(bad)
		return
	}
	r.Value, r.Text, r.NotApplicable = q.value, q.text, q.notApplicable
	if q.unit != "" {
		r.Unit = q.unit
	}
	if n := len(p.rows); n > 0 { // rows repeat themselves: share their text
		r.Name, r.Model, r.Unit = share(r.Name, p.rows[n-1].Name), share(r.Model, p.rows[n-1].Model), share(r.Unit, p.rows[n-1].Unit)
	}
	p.rows = append(p.rows, r)
}

// finish says what holds for the file as a whole.
func (p *resultsParser) finish() {
	end := func(rows []Row, code, format string, args ...any) {
		problem := p.problem(code, format, args...)
		problem.Rows = rows
		p.problems = append(p.problems, problem)
	}
	switch {
	case p.empty > 0 && p.empty == p.seen:
		end(p.empties, CodeEmpty, "%s has %s and every performance is empty", p.name, phrase.Count(p.seen, "row"))
	case p.empty > 0:
		end(p.empties, CodeEmpty, "%s: %d of %s have an empty performance and were skipped", p.name, p.empty, phrase.Count(p.seen, "row"))
	case p.seen == 0 && len(p.problems) == 0 || p.seen == 0 && p.metric < 0 && len(p.problems) == 1:
		end(nil, CodeEmpty, "%s has a header and no rows", p.name)
	}
	if p.more > 0 {
		end([]Row{p.anyRow()}, CodeUnreadable, "%s has %s without a reading", p.name, phrase.Count(p.more, "more row"))
	}
}

func pick(fields []string, i int) string {
	if i < 0 || i >= len(fields) {
		return ""
	}
	return fields[i]
}

func share(s, known string) string {
	if s == known {
		return known
	}
	return s
}

func normalColumn(c string) string {
	return strings.ToLower(strings.Trim(strings.TrimSpace(c), `"' `))
}

func listColumns(columns []string) string {
	const limit = 20
	shown := columns[:min(len(columns), limit)]
	quoted := make([]string, len(shown))
	for i, c := range shown {
		quoted[i] = strconv.Quote(clip(c))
	}
	list := strings.Join(quoted, ", ")
	if more := len(columns) - len(shown); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// columnHint says what is probably meant when there is no performance column.
func columnHint(columns []string) string {
	if len(columns) == 1 && strings.ContainsAny(columns[0], ";\t|") {
		return "; separate columns with commas"
	}
	best, bestDistance := "", 4
	for _, c := range columns {
		n := normalColumn(c)
		d := spelling.Distance(n, columnPerformance, 3)
		if strings.Contains(n, "perf") {
			d = min(d, 2)
		}
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q to be performance?", clip(best))
}

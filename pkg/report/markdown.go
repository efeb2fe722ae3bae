package report

import (
	"bytes"
	"io"
	"io/fs"
	"strings"
	"text/template"
	"unicode"

	"assay/pkg/phrase"
	"assay/pkg/verdict"
	"assay/templates"
)

// Limits of a summary: GitHub takes no more than 1 MiB a step.
const (
	summaryJobs      = 500
	summaryCellBytes = 400
)

// Markdown writes a summary for a CI page: a table of the jobs, those that did
// not pass first, and their reasons. No text of a workload can break the table
// or become markup.
func Markdown(w io.Writer, run Run) error {
	text, err := fs.ReadFile(templates.Files(), "summary.md.tmpl")
	if err != nil {
		return err
	}
	t, err := template.New("summary").Funcs(template.FuncMap{
		"md": markdown, "measured": func(j Job) string { return measurements(j.Measurements, measurementsShown) },
		"elapsed": elapsed, "nodes": nodeList, "mark": mark, "tally": tally, "pairTitle": Pairs.title, "pairSaid": Pairs.said, "caveats": caveats,
		"group": func(r []verdict.Reason) []string { return group(r, reasonsShown) },
	}).Parse(string(text))
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, newSummary(run)); err != nil {
		return err
	}
	_, err = w.Write(buf.Bytes())
	return err
}

// summary is what the markdown template sees.
type summary struct {
	Run
	Listed []listed
	More   int // jobs left out
}

type listed struct {
	Label string
	Job
}

func newSummary(run Run) summary {
	s := summary{Run: run}
	names := labels(run)
	for _, passed := range []bool{false, true} {
		for i, j := range run.Jobs {
			if (j.Verdict == verdict.Pass) == passed {
				s.Listed = append(s.Listed, listed{names[i], j})
			}
		}
	}
	if s.More = len(s.Listed) - summaryJobs; s.More > 0 {
		s.Listed = s.Listed[:summaryJobs]
	}
	return s
}

// markdown is text that stays text in markdown, on one line.
func markdown(s string) string {
	s = phrase.Line(s)
	if len(s) > summaryCellBytes {
		s = strings.ToValidUTF8(s[:summaryCellBytes], "") + "…"
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@': // would notify people
			b.WriteString("&#64;")
		case r < unicode.MaxASCII && strings.ContainsRune("\\`*_{}[]()#+!|~$:", r):
			b.WriteString("\\" + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func mark(w verdict.Word) string {
	switch w {
	case verdict.Pass:
		return "✅"
	case verdict.Fail:
		return "❌"
	case verdict.Skip:
		return "⏭️"
	case verdict.Pending:
		return "⏳"
	case verdict.Unknown, verdict.NoMetric, verdict.Error:
	}
	return "⚠️"
}

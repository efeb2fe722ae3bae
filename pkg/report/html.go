package report

import (
	"bytes"
	"html/template"
	"io"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/verdict"
	"assay/templates"
)

// LogTail is the end of one stream of one rank.
type LogTail struct {
	Job    string // the job's ID
	Rank   int
	Stream string // "stdout" or "stderr"
	Text   string
	Cut    bool // there is more before Text
}

// HTML writes the run as one page that needs nothing else: no scripts, no fonts,
// no network. Logs appear below their job.
func HTML(w io.Writer, run Run, logs []LogTail) error {
	t, err := template.New("report.html.tmpl").Funcs(pairFuncs()).Funcs(template.FuncMap{
		"elapsed": elapsed, "tally": summing, "measurement": measurement, "attempts": attempts, "first": gatedFirst, "clean": phrase.Clean,
		"value": func(m Measurement) string {
			switch {
			case m.Label:
				return m.Text
			case m.Value == nil:
				return "n/a"
			}
			return number(m)
		},
		"class": func(w verdict.Word) string { return strings.ToLower(w.String()) },
		"join":  strings.Join,
	}).ParseFS(templates.Files(), "report.html.tmpl", "pairs.html.tmpl")
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, newPage(run, logs)); err != nil {
		return err
	}
	_, err = w.Write(buf.Bytes())
	return err
}

// page is what the HTML template sees.
type page struct {
	Run
	Entries []entry
}

type entry struct {
	Label string
	Job
	Logs []LogTail
}

func newPage(run Run, logs []LogTail) page {
	p := page{Run: run}
	names := labels(run)
	byJob := map[string][]LogTail{}
	for _, l := range logs {
		byJob[l.Job] = append(byJob[l.Job], l)
	}
	for i, j := range run.Jobs {
		p.Entries = append(p.Entries, entry{Label: names[i], Job: j, Logs: byJob[j.ID]})
	}
	return p
}

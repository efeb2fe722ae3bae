package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"assay/pkg/metric"
	"assay/pkg/report"
	"assay/pkg/spelling"
	"assay/pkg/verdict"
)

// CheckMetric says why a bound on a metric would make nothing bad but its absence: the
// card of the group does not name it, and no attempt at the job measured it. It is nil
// when there is such a metric.
func (g *Group) CheckMetric(name string) error {
	x := g.attempt.Job.Expect
	known := x.Declared()
	if slices.Contains(known, name) {
		return nil
	}
	if x.Contract != verdict.ContractAcceptance && (name == metric.Performance || strings.HasSuffix(name, "/"+metric.Performance)) {
		return nil // a job that ended early had no chance to print it
	}
	for _, m := range measured(g.Judged) {
		if report.IsMetric(m, name) {
			return nil
		}
		full := m.Name
		if m.Model != "" && !metric.IsPerformance(m.Source) {
			full = m.Model + "/" + m.Name
		}
		if !slices.Contains(known, full) {
			known = append(known, full)
		}
	}
	text := fmt.Sprintf("--metric %s: job %s declares no such metric and did not measure it", name, g.Judged.ID)
	if len(known) == 0 {
		return errors.New(text + ", nor any other")
	}
	if meant := spelling.Nearest(name, known); meant != "" {
		text += fmt.Sprintf("; did you mean %s?", meant)
	}
	return fmt.Errorf("%s; it has: %s", text, listed(known))
}

// metricsShown bounds the names that a message lists.
const metricsShown = 12

func listed(names []string) string {
	if more := len(names) - metricsShown; more > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:metricsShown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// measured are the measurements of a job in all attempts at it.
func measured(j report.Job) []report.Measurement {
	all := slices.Clone(j.Measurements)
	for _, a := range j.History {
		all = append(all, a.Measurements...)
	}
	return all
}

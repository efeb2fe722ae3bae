package rank

import (
	"cmp"

	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// reader picks up what the workload says, as its contract has it.
type reader struct {
	collector *metric.Collector
	tags      []string                  // of lines that count, under the benchmark contract
	off       bool                      // nothing is measured
	runners   map[string]*metric.Runner // by stream, under the acceptance contract
}

func newReader(job plan.Job) *reader {
	names := job.Expect.Declared()
	if job.Expect.Contract != verdict.ContractAcceptance {
		r := &reader{collector: metric.NewCollector(names), tags: []string{performanceTag}, off: job.SkipMetrics}
		if len(names) > 0 {
			r.tags = append(r.tags, "=")
		}
		return r
	}
	c := metric.NewAcceptanceCollector(job.Expect.Metrics, names)
	stdout, stderr := c.Stdout(), c.Stderr()
	if job.SkipMetrics {
		stdout, stderr = stdout.Muted(), stderr.Muted()
	}
	return &reader{collector: c, runners: map[string]*metric.Runner{rundir.StdoutFile: stdout, rundir.StderrFile: stderr}}
}

// scanner is the scanner of one stream, nil when nothing of it counts.
func (r *reader) scanner(stream string) *scanner {
	if runner := r.runners[stream]; runner != nil {
		s := newScanner(stream, runner.Tags(), func(line []byte, place string) { runner.Line(line, place, false) })
		s.tail = func(line []byte, place string) { runner.Line(line, place, true) }
		s.plain = runner.Plain
		s.long = func(head []byte, place string) { runner.Long(head, place, maxLineText) }
		return s
	}
	if r.off {
		return nil
	}
	s := newScanner(stream, r.tags, r.collector.Line)
	s.tail = r.collector.Unended
	return s
}

// words are the line that declared a skip, and the last line that is no metric: of
// stdout, or else of stderr. The streams are over.
func (r *reader) words() (skip, said string) {
	if r.runners == nil {
		return "", ""
	}
	out, err := r.runners[rundir.StdoutFile], r.runners[rundir.StderrFile]
	return cmp.Or(out.Skip(), err.Skip()), cmp.Or(out.Said(), err.Said())
}

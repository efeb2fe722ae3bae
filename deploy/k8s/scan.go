package k8s

import (
	"bytes"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// maxScanned is the longest line that is looked at, in bytes.
const maxScanned = 64 << 10

// scan picks readings out of the log of a rank that runs without the wrapper. In that
// log stdout and stderr are one.
type scan struct {
	collector *metric.Collector
	runner    *metric.Runner // under the acceptance contract; else nil
	line      []byte         // whose end has not come yet
}

// newScan returns nil when nothing of the log counts.
func newScan(job plan.Job) *scan {
	names := job.Expect.Declared()
	switch {
	case job.Expect.Contract == verdict.ContractAcceptance:
		c := metric.NewAcceptanceCollector(job.Expect.Metrics, names)
		s := &scan{collector: c, runner: c.Stdout()}
		if job.SkipMetrics {
			s.runner = s.runner.Muted()
		}
		return s
	case job.SkipMetrics:
		return nil
	}
	return &scan{collector: metric.NewCollector(names)}
}

// feed looks at the next bytes of the log.
func (s *scan) feed(b []byte) {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			s.hold(b)
			return
		}
		s.hold(b[:end])
		if len(s.line) <= maxScanned {
			s.look(false)
		}
		s.line, b = s.line[:0], b[end+1:]
	}
}

// look looks at the line that is held, which has no end when the log is over.
func (s *scan) look(over bool) {
	switch {
	case s.runner != nil:
		s.runner.Line(s.line, rundir.StdoutFile, over)
	case over:
		s.collector.Unended(s.line, rundir.StdoutFile)
	default:
		s.collector.Line(s.line, rundir.StdoutFile)
	}
}

// words are the line that declared a skip, and the last line that is no metric; known
// once result was asked for.
func (s *scan) words() (skip, said string) {
	if s == nil || s.runner == nil {
		return "", ""
	}
	return s.runner.Skip(), s.runner.Said()
}

// hold keeps a piece of a line; one that is too long is not kept whole.
func (s *scan) hold(b []byte) {
	if len(s.line) <= maxScanned {
		s.line = append(s.line, b...)
	}
}

// result is what was read, a line without its end included.
func (s *scan) result() evidence.Metrics {
	m := evidence.Metrics{Version: evidence.MarkerVersion, Readings: []metric.Reading{}}
	if s == nil {
		return m
	}
	if len(s.line) > 0 && len(s.line) <= maxScanned {
		s.look(true)
		s.line = nil
	}
	readings, problems := s.collector.Result()
	m.Readings, m.Problems = append(m.Readings, readings...), problems
	return m
}

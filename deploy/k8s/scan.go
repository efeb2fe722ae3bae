package k8s

import (
	"bytes"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/rundir"
)

// maxScanned is the longest line that is looked at, in bytes.
const maxScanned = 64 << 10

// scan picks readings out of the log of a rank that runs without the wrapper.
type scan struct {
	collector *metric.Collector
	line      []byte // whose end has not come yet
}

func newScan(declared []string) *scan { return &scan{collector: metric.NewCollector(declared)} }

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
			s.collector.Line(s.line, rundir.StdoutFile)
		}
		s.line, b = s.line[:0], b[end+1:]
	}
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
		s.collector.Unended(s.line, rundir.StdoutFile)
		s.line = nil
	}
	readings, problems := s.collector.Result()
	m.Readings, m.Problems = append(m.Readings, readings...), problems
	return m
}

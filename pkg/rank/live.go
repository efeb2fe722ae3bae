package rank

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"assay/pkg/durable"
	"assay/pkg/evidence"
)

// livePeriod is the least time between two refreshes of metrics.json.
const livePeriod = time.Second

// live refreshes metrics.json while the workload runs, for those who look on. It
// does not wait for the disk: what counts is written at the end.
type live struct {
	path    string
	metrics func() evidence.Metrics
	changed func() int

	seen atomic.Int64 // what changed() said at the last refresh

	mu      sync.Mutex
	timer   *time.Timer // a refresh is due
	stopped bool
}

func newLive(path string, metrics func() evidence.Metrics, changed func() int) *live {
	return &live{path: path, metrics: metrics, changed: changed}
}

// poke is told that something may have changed.
func (l *live) poke() {
	if int64(l.changed()) == l.seen.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil && !l.stopped {
		l.timer = time.AfterFunc(livePeriod, l.refresh)
	}
}

func (l *live) refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if l.stopped {
		return
	}
	l.seen.Store(int64(l.changed()))
	data, err := json.MarshalIndent(l.metrics(), "", "  ")
	if err != nil {
		return
	}
	_ = durable.Replace(l.path, append(data, '\n'), 0o600) // the next one may succeed
}

// stop ends the refreshing; none happens after it returns.
func (l *live) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

package rank

import (
	"sync"
	"time"
)

// How often a pulse beats, and how late a beat may be on a busy machine before
// the process counts as having been stopped.
const (
	beat     = time.Second
	lateness = 3 * time.Second
)

// pulse notices that the whole process was stopped for a while: a scheduler that
// suspends a job stops the wrapper with its workload. That time is no part of a
// time limit, and a measurement across it means little.
type pulse struct {
	mu   sync.Mutex
	last time.Time     // of the last beat
	lost time.Duration // while no beat came
	stop chan struct{}
}

func newPulse() *pulse {
	p := &pulse{last: time.Now(), stop: make(chan struct{})}
	go p.run()
	return p
}

func (p *pulse) run() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			p.stoppedFor(now)
		case <-p.stop:
			return
		}
	}
}

// stoppedFor is how long the process was stopped until now.
func (p *pulse) stoppedFor(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if gap := now.Sub(p.last) - beat; gap > lateness {
		p.lost += gap
	}
	if now.After(p.last) {
		p.last = now
	}
	return p.lost
}

func (p *pulse) end() { close(p.stop) }

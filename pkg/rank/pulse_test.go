package rank

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulse()
		defer p.end()
		time.Sleep(time.Minute)
		if lost := p.stoppedFor(time.Now()); lost != 0 {
			t.Errorf("of a minute in which it ran, %s are said to be lost", lost)
		}
		// A process that is continued may see the time before the beat does.
		for _, c := range []struct{ gap, lost time.Duration }{{3 * time.Second, 0}, {15 * time.Second, 14 * time.Second}, {4 * time.Second, 0}, {6 * time.Second, 5 * time.Second}} {
			before := p.stoppedFor(time.Now())
			if lost := p.stoppedFor(p.last.Add(c.gap)) - before; lost != c.lost {
				t.Errorf("after %s without a beat, %s are lost, want %s", c.gap, lost, c.lost)
			}
			p.mu.Lock()
			p.last = time.Now()
			p.mu.Unlock()
		}
	})
}

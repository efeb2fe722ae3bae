package podrank

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// patience is how long the reader of the log may take nothing before what is sent to
// it is given up.
const patience = 10 * time.Second

// progress counts what is taken.
type progress struct {
	to    io.Writer
	taken atomic.Int64
}

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	p.taken.Add(int64(n))
	return n, err
}

// patiently waits for send, which writes, and gives it up when nothing is taken: a
// reader that hangs must not keep the rank from its end. What was given up may then
// hang for ever.
func (p *progress) patiently(send func() error) error {
	done := make(chan error, 1)
	go func() { done <- send() }()
	tick := time.NewTicker(patience / 10)
	defer tick.Stop()
	before, since := p.taken.Load(), time.Now()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		if now := p.taken.Load(); now != before {
			before, since = now, time.Now()
		} else if time.Since(since) > patience {
			return fmt.Errorf("nobody read the log for %v", patience)
		}
	}
}

package slurm

import (
	"fmt"
	"time"
)

// backoff spaces out questions to something that does not answer.
type backoff struct {
	failures int
	until    time.Time
	last     error
}

// wait returns the last error while it is too early to ask again.
func (b *backoff) wait(now time.Time) error {
	if now.Before(b.until) {
		return fmt.Errorf("%w (%d in a row)", b.last, b.failures)
	}
	return nil
}

// note remembers how a question went.
func (b *backoff) note(err error, now time.Time) {
	if err == nil {
		*b = backoff{}
		return
	}
	b.failures++
	b.last = err
	b.until = now.Add(min(time.Second<<min(b.failures-1, 5), 30*time.Second))
}

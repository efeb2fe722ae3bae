package batch

import (
	"context"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
)

// The pace of asking. A scheduler is asked again after a tenth of the age of the
// youngest job, markers are looked for five times as often, and what is about to
// end is asked for at once: short jobs are not kept waiting, and long ones cost
// next to nothing. The number of jobs does not matter: many that end one after the
// other share questions.
const (
	pollLeast, pollMost     = 500 * time.Millisecond, 30 * time.Second
	lookLeast, lookMost     = 100 * time.Millisecond, 5 * time.Second
	settleLeast, settleMost = 100 * time.Millisecond, 2 * time.Second
	// burst is how many questions may follow each other faster than pollLeast.
	burst = 8
)

// Wait implements deploy.Waiter: it returns when the scheduler is to be asked
// again, because it is time or because all ranks of a job have left their end.
func (t *Target) Wait(ctx context.Context, handles []deploy.Handle) error {
	jobs, _, err := t.decodeAll(handles)
	if err != nil {
		return err
	}
	begun := t.now()
	for {
		rest, look := t.pace(jobs, begun)
		if rest <= 0 {
			return nil
		}
		if err := sleep(ctx, min(rest, look)); err != nil {
			return err
		}
		if t.newlyComplete(jobs) && t.mayAsk() == 0 {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pace says how long it is until the scheduler is asked again, and how soon the
// markers are to be looked for.
func (t *Target) pace(jobs []job, begun time.Time) (rest, look time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	rest, look = pollMost, lookMost
	for _, j := range jobs {
		m := t.memoryOf(j)
		age := now.Sub(m.first)
		next := between(pollLeast, age/10, pollMost)
		if m.phase == evidence.PhaseEnding || !m.complete.IsZero() {
			settling := now.Sub(m.change)
			if !m.complete.IsZero() {
				settling = min(settling, now.Sub(m.complete))
			}
			next = between(settleLeast, settling/4, settleMost)
		}
		rest = min(rest, next)
		look = min(look, between(lookLeast, age/50, lookMost))
	}
	return max(rest-now.Sub(begun), t.untilToken(now)), look
}

// mayAsk says how long it is until one more question is allowed.
func (t *Target) mayAsk() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.untilToken(t.now())
}

// untilToken says how long it is until one more question is allowed. The caller
// holds the lock.
func (t *Target) untilToken(now time.Time) time.Duration {
	if t.tokens >= 1 || t.asked.IsZero() {
		return 0
	}
	return max(0, time.Duration((1-t.tokens)*float64(pollLeast))-now.Sub(t.asked))
}

// spend counts a question.
func (t *Target) spend(now time.Time) {
	if t.asked.IsZero() {
		t.tokens = burst
	}
	t.tokens = min(burst, t.tokens+float64(now.Sub(t.asked))/float64(pollLeast)) - 1
	t.asked = now
}

func between(least, d, most time.Duration) time.Duration { return max(least, min(d, most)) }

// newlyComplete looks for markers, and says whether a job has all of them now that
// had not before.
func (t *Target) newlyComplete(jobs []job) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := false
	for _, j := range jobs {
		m := t.memoryOf(j)
		if !m.complete.IsZero() || !m.look(j).complete() {
			continue
		}
		m.complete = t.now()
		found = true
	}
	return found
}

package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
)

// watch waits and asks for some time, as a driver does.
func watch(t *testing.T, target *Target, handles []deploy.Handle, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		observe(t, target, handles...)
		if err := target.Wait(t.Context(), handles); err != nil {
			t.Fatal(err)
		}
	}
}

// Two hundred jobs cost as many questions as one.
func TestQuestionsDoNotDependOnTheNumberOfJobs(t *testing.T) {
	asked := map[int]int{}
	for _, n := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{queue: map[string]Answer{}}
			for _, id := range many(n) {
				f.queue[id] = isRunning()
			}
			target := New(f, time.Now)
			watch(t, target, submitted(t, target, many(n)...), 2*time.Minute)
			asked[n] = f.queues
			if len(f.histories) != 0 {
				t.Errorf("%d jobs: the accounting was asked %d times", n, len(f.histories))
			}
		})
	}
	if asked[1] != asked[200] || asked[1] == 0 {
		t.Errorf("%d questions for 1 job and %d for 200, in 2 minutes", asked[1], asked[200])
	}
	t.Logf("%d questions in 2 minutes", asked[1])
}

// The questions are half a second apart at first and half a minute in the end.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{"a": isRunning()}}
		target := New(f, time.Now)
		watch(t, target, submitted(t, target, "a"), time.Hour)
		var last time.Duration
		for i := 1; i < len(f.queuedAt); i++ {
			gap := f.queuedAt[i].Sub(f.queuedAt[i-1])
			if gap < last || gap < pollLeast || gap > pollMost {
				t.Fatalf("question %d came %s after the one before, which came after %s", i, gap, last)
			}
			last = gap
		}
		if first := f.queuedAt[1].Sub(f.queuedAt[0]); first != pollLeast || last != pollMost {
			t.Errorf("the pace goes from %s to %s, want %s to %s", first, last, pollLeast, pollMost)
		}
	})
}

// A job that is new makes it fast again.
func TestPaceWithANewJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{"a": isRunning(), "b": isRunning()}}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		watch(t, target, handles, time.Hour)
		handles = append(handles, submitted(t, target, "b")...)
		observe(t, target, handles...)
		start := time.Now()
		if err := target.Wait(t.Context(), handles); err != nil || time.Since(start) != pollLeast {
			t.Errorf("%v after %s, want %s", err, time.Since(start), pollLeast)
		}
	})
}

// Jobs that end one after the other do not each cause a question.
func TestQuestionsWhileManyJobsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{}}
		for _, id := range many(40) {
			f.queue[id] = isRunning()
		}
		target := New(f, time.Now)
		handles := submitted(t, target, many(40)...)
		watch(t, target, handles, 3*time.Minute)
		before, start := f.queues, time.Now()
		for i, h := range handles {
			time.AfterFunc(time.Duration(i)*50*time.Millisecond, func() {
				leave(t, h, 1, 0)
				leave(t, h, 1, 1)
			})
		}
		watch(t, target, handles, 10*time.Second)
		if most := burst + 2 + int(time.Since(start)/pollLeast); f.queues-before > most {
			t.Errorf("%d questions in %s, want at most %d", f.queues-before, time.Since(start), most)
		}
	})
}

// The last record of a job ends the wait, long before the scheduler would be asked.
func TestRecordsEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{"a": isRunning(), "b": isRunning()}}
		target := New(f, time.Now)
		handles := submitted(t, target, "a", "b")
		watch(t, target, handles, time.Hour)
		observe(t, target, handles...)
		start := time.Now()
		leave(t, handles[1], 1, 0)
		time.AfterFunc(time.Second, func() { leave(t, handles[1], 1, 1) })
		if err := target.Wait(t.Context(), handles); err != nil || time.Since(start) > time.Second+lookMost {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		// What is complete is asked about at once, and then again soon.
		f.queue["b"] = isCompleted()
		if seen := observe(t, target, handles...); seen[1].Phase != evidence.PhaseEnded {
			t.Errorf("observation %+v", seen[1])
		}
		if len(f.histories) != 0 {
			t.Errorf("the accounting was asked about %q", f.histories)
		}
	})
}

// A job whose records are complete and that goes on is not asked about too often.
func TestPaceOfAJobThatGoesOnAfterItsRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{"a": isRunning()}}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		leave(t, handles[0], 1, 0)
		leave(t, handles[0], 1, 1)
		watch(t, target, handles, time.Hour)
		if most := int(time.Hour/settleMost) + 100; f.queues > most {
			t.Errorf("%d questions in an hour, want at most %d", f.queues, most)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{queue: map[string]Answer{"a": isRunning()}}
		target := New(f, time.Now)
		handles := submitted(t, target, "a")
		watch(t, target, handles, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := target.Wait(ctx, handles); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if len(f.cancelled) != 0 {
			t.Errorf("cancelled %q", f.cancelled)
		}
	})
}

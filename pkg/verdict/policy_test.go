package verdict

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// words makes trials of words; a trial takes 10 s.
func trials(words ...Word) []Trial {
	var out []Trial
	for i, w := range words {
		out = append(out, Trial{Attempt: i + 1, Word: w, ElapsedSeconds: 10})
	}
	return out
}

func TestPolicy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy Policy
		trials []Trial
		due    Trigger
		isDue  bool
		word   Word
	}{
		{"once", Policy{}, trials(Pass), "", false, Pass},
		{"fail is never retried", Policy{Retries: 9, Repeats: 9, DurationSeconds: 99}, trials(Fail), "", false, Fail},
		{"skip is never retried", Policy{Retries: 9, Repeats: 9}, trials(Skip), "", false, Skip},
		{"no metric is never retried", Policy{Retries: 9}, trials(NoMetric), "", false, NoMetric},
		{"error without retries", Policy{}, trials(Error), TriggerRetry, false, Error},
		{"error is retried", Policy{Retries: 1}, trials(Error), TriggerRetry, true, Pending},
		{"retries are bounded", Policy{Retries: 1}, trials(Error, Error), TriggerRetry, false, Error},
		{"error then pass", Policy{Retries: 1}, trials(Error, Pass), "", false, Pass},
		{"error then fail", Policy{Retries: 2}, trials(Error, Fail), "", false, Fail},
		{"repeats", Policy{Repeats: 3}, trials(Pass, Pass), TriggerRepeat, true, Pending},
		{"repeats done", Policy{Repeats: 3}, trials(Pass, Pass, Pass), "", false, Pass},
		{"a repeat fails", Policy{Repeats: 3}, trials(Pass, Fail), "", false, Fail},
		{"a pass earns no more retries", Policy{Repeats: 3, Retries: 1}, trials(Error, Pass, Error), TriggerRetry, false, Error},
		{"retries of all repeats", Policy{Repeats: 3, Retries: 2}, trials(Error, Pass, Error), TriggerRetry, true, Pending},
		{"passed, skipped, and passed", Policy{}, trials(Pass, Skip, Pass), "", false, Error},
		{"passed and skipped", Policy{Repeats: 2}, trials(Pass, Skip), "", false, Error},
		{"duration", Policy{DurationSeconds: 21}, trials(Pass, Pass), TriggerDuration, true, Pending},
		{"duration done", Policy{DurationSeconds: 20}, trials(Pass, Pass), "", false, Pass},
		{"time of what is no pass does not count", Policy{DurationSeconds: 20, Retries: 1}, trials(Error, Pass), TriggerDuration, true, Pending},
		{"ended by a person", Policy{Retries: 5}, []Trial{{Word: Error, Ended: true}}, TriggerRetry, false, Error},
		{"resumed with new retries", Policy{Retries: 1}, []Trial{{Word: Error}, {Word: Error}, {Word: Error, Trigger: TriggerResume}}, TriggerRetry, true, Pending},
		{"a fail that was learnt of late", Policy{Retries: 3}, trials(Fail, Pass), "", false, Fail},
		{"a fail before an error", Policy{Retries: 3}, trials(Fail, Error), "", false, Fail},
		{"a fail before what has not ended", Policy{Retries: 3}, trials(Fail, Pending), "", false, Pending},
		{"not ended", Policy{Repeats: 2}, trials(Pass, Pending), "", false, Pending},
		{"found short, so not retried", Policy{Retries: 5}, []Trial{{Word: Error, Short: true}}, TriggerRetry, false, Error},
		{"passed after it was found short", Policy{Retries: 5}, []Trial{{Word: Error, Short: true}, {Word: Pass, Trigger: TriggerRetry}}, "", false, Error},
		{"passed after it was found short, to be repeated", Policy{Retries: 5, Repeats: 2}, []Trial{{Word: Error, Short: true}, {Word: Pass, Trigger: TriggerRetry}}, "", false, Error},
		{"passed over by a skip after it was found short, learnt of late", Policy{Retries: 5}, []Trial{{Word: Error, Short: true}, {Word: Skip, Trigger: TriggerRetry}}, "", false, Error},
		{"found short, and resumed by a person", Policy{Repeats: 2}, []Trial{
			{Word: Error, Short: true}, {Word: Pass, Trigger: TriggerResume}, {Word: Pass, Trigger: TriggerRepeat},
		}, "", false, Pass},
		{"found short, and resumed in vain", Policy{Retries: 1}, []Trial{{Word: Error, Short: true}, {Word: Error, Trigger: TriggerResume}}, TriggerRetry, true, Pending},
		{"nothing was run", Policy{}, nil, "", true, Error},
	} {
		due, isDue := tt.policy.Next(tt.trials)
		if isDue != tt.isDue || isDue && due != tt.due {
			t.Errorf("%s: due %q %v, want %q %v", tt.name, due, isDue, tt.due, tt.isDue)
		}
		if got := tt.policy.Settle(tt.trials, false); got.Word != tt.word || got.Contradicts != strings.HasPrefix(tt.name, "passed") {
			t.Errorf("%s: %+v, want %s", tt.name, got, tt.word)
		}
		stopped := tt.policy.Settle(tt.trials, true)
		want := tt.word
		if tt.isDue {
			want = Error // what was to come decides, and never comes
		}
		if stopped.Word != want {
			t.Errorf("%s, stopped: %+v, want %s", tt.name, stopped, want)
		}
	}
}

// A job that passes had no attempt that failed, and as many that passed as were
// asked for.
func TestPolicyPassesOnlyWhatPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{Repeats: rapid.IntRange(0, 4).Draw(t, "repeats"), Retries: rapid.IntRange(0, 3).Draw(t, "retries"), DurationSeconds: rapid.IntRange(0, 50).Draw(t, "duration")}
		var done []Trial
		for {
			trigger, due := p.Next(done)
			if !due {
				break
			}
			done = append(done, Trial{
				Attempt: len(done) + 1, Trigger: trigger, ElapsedSeconds: 10,
				Word: rapid.SampledFrom([]Word{Pass, Pass, Pass, Error, Error, Fail, Skip, NoMetric}).Draw(t, "word"),
			})
		}
		settled := p.Settle(done, false)
		word, decides := settled.Word, settled.Decides
		passes, fails := 0, 0
		for _, d := range done {
			if d.Word == Pass {
				passes++
			}
			if d.Word == Fail {
				fails++
			}
		}
		if word == Pending || decides != len(done)-1 {
			t.Fatalf("%s by %d of %+v", word, decides, done)
		}
		if fails > 0 && word != Fail {
			t.Fatalf("%s although an attempt failed: %+v", word, done)
		}
		if word == Pass && (passes < max(1, p.Repeats) || passes*10 < p.DurationSeconds) {
			t.Fatalf("PASS of %+v by %+v", p, done)
		}
	})
}

// Whatever the attempts came to, in whatever order, and however late it was learnt: one
// that failed is never hidden by another, and neither is one made after it.
func TestPolicyNeverHidesAFail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{Repeats: rapid.IntRange(0, 3).Draw(t, "repeats"), Retries: rapid.IntRange(0, 3).Draw(t, "retries")}
		words := rapid.SliceOfN(rapid.SampledFrom([]Word{Pass, Error, Fail, Skip, NoMetric, Pending}), 1, 6).Draw(t, "words")
		all := trials(words...)
		_, due := p.Next(all)
		s := p.Settle(all, rapid.Bool().Draw(t, "stopped"))
		running := words[len(words)-1] == Pending
		if slices.Contains(words, Fail) && (due || !running && (s.Word != Fail || all[s.Decides].Word != Fail)) {
			t.Fatalf("%v: due %v, %+v", words, due, s)
		}
		if s.Word == Pass && (words[len(words)-1] != Pass || slices.Contains(words, Skip) || s.Passes < max(1, p.Repeats)) {
			t.Fatalf("%v: %+v", words, s)
		}
	})
}

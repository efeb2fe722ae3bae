package verdict

import "slices"

// Policy says how often a job is run. The zero value is once.
type Policy struct {
	Repeats         int `json:"repeats,omitempty"`          // how often it has to pass; 0: once
	Retries         int `json:"retries,omitempty"`          // how often an attempt that could not be judged is made again
	DurationSeconds int `json:"duration_seconds,omitempty"` // how long it has to pass, by the time that its ranks ran
}

// Trigger says why an attempt was made.
type Trigger string

// The triggers. The first attempt has none.
const (
	TriggerFirst    Trigger = ""
	TriggerRetry    Trigger = "retry"    // the one before could not be judged
	TriggerRepeat   Trigger = "repeat"   // it has to pass more often
	TriggerDuration Trigger = "duration" // it has to pass for longer
	TriggerResume   Trigger = "resume"   // a person asked for what had not been judged
)

// Trial is an attempt at a job with its verdict.
type Trial struct {
	Attempt        int
	Trigger        Trigger
	Word           Word
	ElapsedSeconds float64 // of the rank that ran longest
	// Ended says that a person ended it: it is not made again for that.
	Ended bool
	// Short says that it could not be judged, and found the hardware short all the same.
	Short bool
}

// Next says whether another attempt is due after trials, in the order in which they
// were made, and why. After a FAIL none ever is, neither is one after a SKIP or a
// NO_METRIC, nor after an ERROR in which the hardware was found short: measuring until
// it comes out well would make an acceptance of a fault.
func (p Policy) Next(trials []Trial) (Trigger, bool) {
	if len(trials) == 0 {
		return TriggerFirst, true
	}
	if firstFail(trials) >= 0 || hides(trials) { // also one that was learnt of late
		return TriggerFirst, false
	}
	switch last := trials[len(trials)-1]; last.Word {
	case Error:
		return TriggerRetry, !last.Ended && !last.Short && failures(trials) <= p.Retries
	case Pass:
		passes, elapsed := passed(trials)
		switch {
		case passes < p.Repeats:
			return TriggerRepeat, true
		case elapsed < float64(p.DurationSeconds):
			return TriggerDuration, true
		}
	case Unknown, Fail, NoMetric, Skip, Pending:
	}
	return TriggerFirst, false
}

// firstFail is the place of the first trial that failed, -1 when none did.
func firstFail(trials []Trial) int {
	return slices.IndexFunc(trials, func(t Trial) bool { return t.Word == Fail })
}

// firstShort is the place of the first trial before the last that found the hardware
// short and could not be judged, -1 when there is none.
func firstShort(trials []Trial) int {
	return slices.IndexFunc(trials[:len(trials)-1], func(t Trial) bool { return t.Short })
}

// hides says that attempts follow such a trial that no person asked for.
func hides(trials []Trial) bool {
	for i := len(trials) - 1; i > 0 && trials[i].Trigger != TriggerResume; i-- {
		if trials[i-1].Short {
			return true
		}
	}
	return false
}

// Remaining is how many seconds of the duration are left after trials.
func (p Policy) Remaining(trials []Trial) float64 {
	_, elapsed := passed(trials)
	return max(0, float64(p.DurationSeconds)-elapsed)
}

// failures counts the attempts that could not be judged since a person asked for it, or
// since the first: a test that passes in between earns no more retries by that.
func failures(trials []Trial) int {
	n := 0
	for i := len(trials) - 1; i >= 0; i-- {
		if trials[i].Word == Error {
			n++
		}
		if trials[i].Trigger == TriggerResume {
			break
		}
	}
	return n
}

func passed(trials []Trial) (n int, elapsed float64) {
	for _, t := range trials {
		if t.Word == Pass {
			n++
			elapsed += t.ElapsedSeconds
		}
	}
	return n, elapsed
}

// Settle says what the attempts at a job come to: the word, and which of them decides
// it. Repeats have to pass all: a FAIL decides wherever it stands, else the last trial
// does. A job of which another
// attempt is due is pending, and when stopped says that none will be made, ERROR. A job
// that passed and then declares itself not applicable contradicts itself, which is
// ERROR too; so does one that passed after the hardware was found short in an attempt
// that could not be judged, unless a person had it run again.
func (p Policy) Settle(trials []Trial, stopped bool) Settled {
	s := Settled{Word: Error, Decides: len(trials) - 1}
	if len(trials) == 0 {
		return s
	}
	s.Passes, s.ElapsedSeconds = passed(trials)
	if fail := firstFail(trials); fail >= 0 && trials[s.Decides].Word != Pending { // else something still runs
		s.Word, s.Decides = Fail, fail
		return s
	}
	last := trials[s.Decides].Word
	_, due := p.Next(trials)
	switch {
	case due && !stopped:
		s.Word, s.Due = Pending, true
	case due:
		s.Due = last == Pass
	case last != Error && last != Pending && hides(trials), s.Passes > 0 && slices.ContainsFunc(trials, func(t Trial) bool { return t.Word == Skip }):
		s.Contradicts = true
	default:
		s.Word = last
	}
	if short := firstShort(trials); short >= 0 && last != Error && last != Pending {
		s.Short = trials[short].Attempt
	}
	return s
}

// Settled is what the attempts at a job come to.
type Settled struct {
	Word           Word
	Decides        int     // place of the trial that decides, -1 when there is none
	Due            bool    // it has not passed as often, or for as long, as it has to; or is retried
	Contradicts    bool    // it passed, and also declared that it does not apply, or found the hardware short
	Short          int     // the attempt that found the hardware short, and could not be judged, before one that was; 0: none
	Passes         int     // how often it passed
	ElapsedSeconds float64 // for how long it passed
}

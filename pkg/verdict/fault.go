package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/phrase"
)

// class says how a rank that did not end clean counts. The order is the order in
// which they are named.
type class int

const (
	classRefused    class = iota // the node refused to launch it
	classFailed                  // it ended by itself: to blame
	classTimedOut                // it was ended at its time limit: to blame, unless it waited for one that failed
	classLost                    // it began and left no end: to blame
	classNotStarted              // it never began: to blame
	classStopped                 // the target ended it and says why
	classCancelled               // a person ended it
	classUnreadable              // what it left cannot be read
)

// fault is a rank that did not end clean.
type fault struct {
	follows int // 1: of another fault, after which it is named
	class   class
	rank    int
	quiet   float64 // where ranks ran into the time limit: minus the seconds for which it had been quiet, so that the quietest comes first
	elapsed float64 // seconds by the rank's own clock; infinite when it left no end
	reason  Reason
}

// blamed reports whether the rank itself is to blame.
func (ft fault) blamed() bool {
	return ft.class == classFailed || ft.class == classTimedOut || ft.class == classLost || ft.class == classNotStarted
}

// FirstFailing returns the rank that failed first: of those that a verdict on e
// names and that began, the one it names first. ok is false when there is none.
func FirstFailing(e evidence.Evidence) (rank int, ok bool) {
	for _, ft := range lookAt(Expectation{}, e).heard() {
		return ft.rank, true
	}
	return 0, false
}

// heard lists the faults of ranks that are over, the most telling first.
func (f *facts) heard() []fault {
	return slices.DeleteFunc(slices.Clone(f.faults), func(ft fault) bool {
		s := f.ranks[ft.rank].State
		return s != evidence.RankEnded && s != evidence.RankLost
	})
}

// rankName is how messages call a rank: "rank 1 (node-b)".
func rankName(r evidence.Rank) string {
	return metric.Origin{Rank: r.Rank, Node: nodeOf(r)}.String()
}

// nodeOf is where a rank ran, as far as that is known.
func nodeOf(r evidence.Rank) string { return cmp.Or(r.Node, r.Host) }

// fault says what is wrong with a rank, nil when it ended clean or when there is
// nothing to say of a rank of a job that never was.
func (f *facts) fault(r evidence.Rank) *fault {
	name := rankName(r)
	bad := func(c class, code, format string, args ...any) *fault {
		return &fault{class: c, rank: r.Rank, elapsed: math.Inf(1), reason: Reason{code, name, name + " " + fmt.Sprintf(format, args...)}}
	}
	if r.State == evidence.RankEnded {
		return f.ended(r, bad)
	}
	switch {
	case r.Unreadable != "":
		return bad(classUnreadable, CodeEvidenceUnreadable, "left no record that can be read: %s", r.Unreadable)
	case r.State == evidence.RankLost && f.e.Cancel != nil:
		return bad(classCancelled, CodeCancelled, "reported no end after the run was cancelled by %s", f.e.Cancel.By)
	case f.gone() && f.e.Cancel != nil && r.State == evidence.RankNotStarted:
		return bad(classCancelled, CodeCancelled, "left no record: the run was cancelled by %s", f.e.Cancel.By)
	case f.gone() && r.State != evidence.RankUnknown:
		return bad(classUnreadable, CodeSchedUnknown, "%s, and %s cannot say how the job ended", leftSoFar(r), schedulerName(f.e.Scheduler))
	case r.State == evidence.RankLost, r.State == evidence.RankRunning:
		return bad(classLost, CodeRankLost, "reported no end (killed or lost)")
	case f.neverSubmitted() && !f.began, f.notLaunched(), f.cancelledElsewhere() && !f.began:
		return nil
	case f.e.Cancel != nil:
		return bad(classCancelled, CodeCancelled, "never started: the run was cancelled by %s", f.e.Cancel.By)
	case r.State == evidence.RankNotStarted:
		return bad(classNotStarted, CodeRankNotStarted, "left no record of having started")
	}
	return bad(classUnreadable, CodeEvidenceUnreadable, "was not looked at: nothing is known of it")
}

// leftSoFar says what a rank without an end left.
func leftSoFar(r evidence.Rank) string {
	if r.State == evidence.RankNotStarted {
		return "left no record"
	}
	return "began and left no end"
}

// ended says what is wrong with a rank that left an end.
func (f *facts) ended(r evidence.Rank, bad func(class, string, string, ...any) *fault) *fault {
	var ft *fault
	switch r.Outcome {
	case evidence.OutcomeExited, evidence.OutcomeUnknown:
		switch {
		case r.ExitCode != 0:
			ft = bad(classFailed, CodeRankExit, "exited %d", r.ExitCode)
			if r.Outcome == evidence.OutcomeUnknown { // what is known of an end that the wrapper could not record
				ft.reason.Message += because(r.Message)
			}
		case r.Outcome == evidence.OutcomeUnknown:
			ft = bad(classUnreadable, CodeEvidenceUnreadable, "left an end that does not say how it ended")
		default:
			return nil
		}
	case evidence.OutcomeReleased: // it was ended as it was meant to be
		return nil
	case evidence.OutcomeSignaled:
		ft = bad(classFailed, CodeRankSignal, "was killed by %s%s", signalName(r), because(r.Message))
	case evidence.OutcomeTimedOut:
		ft = bad(classTimedOut, CodeRankTimeout, "%s", f.timeLimit(r))
		ft.quiet = -r.QuietSeconds
	case evidence.OutcomeStopped:
		switch {
		case f.e.Cancel != nil:
			ft = bad(classCancelled, CodeCancelled, "was stopped: the run was cancelled by %s", f.e.Cancel.By)
		case r.Code != "": // whoever started it knows that it was not asked for
			ft = bad(classRefused, r.Code, "was stopped from outside: %s", r.Message)
		case f.e.Scheduler != nil && (f.e.Scheduler.Bad || f.cancelledElsewhere()):
			ft = bad(classStopped, CodeRankSignal, "was told to stop by %s", signalName(r))
		case f.over() && f.e.Scheduler.Word == "": // it could not be asked, which blames nobody
			ft = bad(classUnreadable, CodeSchedUnknown, "was told to stop by %s, and how the job ended is not known", signalName(r))
		default:
			ft = bad(classFailed, CodeRankSignal, "was told to stop by %s, and nobody says why", signalName(r))
		}
	case evidence.OutcomeRefused:
		code := r.Code
		if code == "" {
			code = CodeLaunchRefused
		}
		why := r.Message
		if why == "" {
			why = "the node does not say why"
		}
		ft = bad(classRefused, code, "was not launched: %s", why)
	default:
		ft = bad(classUnreadable, CodeEvidenceUnreadable, "left an end of an unknown kind")
	}
	ft.elapsed = r.ElapsedSeconds
	return ft
}

// because is what the wrapper knows of it, to be put behind.
func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func signalName(r evidence.Rank) string {
	if r.Signal != "" {
		return r.Signal
	}
	return fmt.Sprintf("a signal (exit code %d)", r.ExitCode)
}

func (f *facts) timeLimit(r evidence.Rank) string {
	quiet := ""
	if r.QuietSeconds > 0 {
		quiet = fmt.Sprintf("; it had been quiet for %s", phrase.Seconds(r.QuietSeconds))
	}
	if f.x.TimeoutSeconds > 0 {
		return fmt.Sprintf("ran past its time limit of %d s%s", f.x.TimeoutSeconds, quiet)
	}
	return fmt.Sprintf("ran past its time limit and was ended after %s%s", phrase.Seconds(r.ElapsedSeconds), quiet)
}

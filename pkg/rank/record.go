package rank

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/signame"
)

// noteLeft says what had to be ended, and what could not be.
func (w *wrapper) noteLeft(e ending) {
	if e.left > 0 {
		w.note("%d process(es) were left behind and have been ended", e.left)
	}
	if e.immortal > 0 {
		w.end.Message = sentence(w.end.Message, fmt.Sprintf("%d process(es) could not be killed on %s", e.immortal, w.end.Host))
	}
}

// record turns the end of the workload into the outcome of the rank.
func (w *wrapper) record(e ending, limit time.Duration) {
	end := &w.end
	switch {
	case e.timedOut:
		end.Outcome, end.ExitCode, end.QuietSeconds = evidence.OutcomeTimedOut, ExitTimeout, e.quiet.Seconds()
		end.Message = sentence(end.Message, fmt.Sprintf("ended at its time limit of %v", limit))
	case e.wasReleased():
		end.Outcome, end.ExitCode = evidence.OutcomeReleased, 0
		w.noteReleased(e)
	case e.stopped != nil:
		end.Outcome, end.ExitCode, end.Signal = evidence.OutcomeStopped, signalExit(e.stopped), signame.Of(e.stopped)
		end.Message = sentence(end.Message, "stopped by "+signame.Of(e.stopped))
	case !e.ended:
		end.Outcome, end.ExitCode = evidence.OutcomeUnknown, ExitTimeout
	case e.status.Signaled():
		end.Outcome, end.ExitCode = evidence.OutcomeSignaled, signalExit(e.status.Signal())
		end.Signal = signame.Of(e.status.Signal())
	case e.released:
		// Whether that is a finding of the server or how it ends when it is told to, only
		// its author knows: it is no word on what was measured.
		end.Outcome, end.ExitCode = evidence.OutcomeUnknown, e.status.ExitStatus()
	default:
		end.Outcome, end.ExitCode = evidence.OutcomeExited, e.status.ExitStatus()
	}
	if e.released && end.Outcome != evidence.OutcomeReleased {
		end.Message = sentence(end.Message, "it ended so when it was told to, for whom it served had ended")
	}
	if lost := w.pulse.stoppedFor(time.Now()); lost > 0 {
		end.Message = sentence(end.Message, fmt.Sprintf("was stopped for %s while it ran, as by a scheduler that suspends a job; what was measured meanwhile means little",
			phrase.Seconds(lost.Seconds())))
	}
	w.noteLeft(e)
}

// signalExit is the exit code that stands for a signal, as in shells.
func signalExit(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 128 + int(stopSignal)
}

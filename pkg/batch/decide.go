package batch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
)

// The bounds of patience with a scheduler. Each is counted on one clock, that of
// the process that watches.
const (
	// historyLag is how long the accounting may take to have the end of a job that
	// the queue saw end. It is final within a second where it works.
	historyLag = 5 * time.Second
	// goneAfter is how long the queue must have answered without the job, and the
	// accounting without its end, before the job counts as gone.
	goneAfter = 15 * time.Second
	// silentAfter is how long nobody may have answered before markers that are
	// complete are enough.
	silentAfter = 20 * time.Second
	// drainAfter is how long nodes may take to be cleaned before markers that are
	// complete are enough.
	drainAfter = 15 * time.Second
	// oddAfter bounds the wait on a word that is not known.
	oddAfter = 10 * time.Minute
	// stoppedAfter takes the place of silentAfter and drainAfter where a rank was told
	// to stop: the scheduler alone can say why.
	stoppedAfter = 10 * time.Minute
)

// source is one way of asking a scheduler, and what came of it.
type source struct {
	name   string // "squeue", "sacct" …
	asked  bool
	absent bool  // there is no such thing here
	err    error // it could not be asked
	Answer
}

// markers counts what the ranks of the newest start left.
type markers struct {
	ranks, began, ended int
	stopped             bool // a rank was told to stop; looked at when all have ended and nobody says why
}

func (m markers) complete() bool { return m.ended >= m.ranks }

// view is all that is known about a job at one moment.
type view struct {
	queue, history source
	markers        markers
	restarts       int           // how often the job was started again, whoever knows of it
	steps          bool          // of the workload's own, which no marker tells of
	grace          time.Duration // for markers that appear late

	// How long it has been so, without interruption.
	endedFor    time.Duration // the scheduler says that the job ended
	missingFor  time.Duration // the queue answers and does not list the job
	completeFor time.Duration // every rank has left its end
	silentFor   time.Duration // nobody could be asked
	oddFor      time.Duration // the word is not known
}

// needsHistory says whether what the queue says is not enough: the job left it, or
// ended otherwise than clean and with every marker in place, or only the accounting
// knows of its steps or its earlier starts.
func (v view) needsHistory() bool {
	switch {
	case v.queue.err != nil, !v.queue.Known:
		return true
	case v.queue.Phase == evidence.PhaseEnded:
		return !v.plain() || v.steps || v.queue.Restarts > 0
	}
	return v.drains()
}

// drains says that the nodes are being cleaned for so long that what is known now may
// have to do.
func (v view) drains() bool {
	return v.queue.Draining && v.markers.complete() && v.completeFor >= drainAfter
}

// alone says that the markers, complete for so long, are enough without the
// scheduler's word, for which it was waited for d.
func (v view) alone(d time.Duration) bool {
	if v.markers.stopped {
		d = stoppedAfter
	}
	return v.markers.complete() && v.completeFor >= d
}

// plain says that the queue saw the job end clean and every rank left its end.
func (v view) plain() bool { return v.queue.Clean && v.markers.complete() }

// decide says what is to be concluded from a view. ok is false when nothing can be
// said now.
func decide(v view) (o evidence.Observation, ok bool) {
	switch {
	case v.queue.Known && v.queue.Phase != evidence.PhaseEnded:
		return v.live()
	case v.queue.Known:
		return v.over(v.queue), true
	case v.queue.err != nil:
		return v.unasked()
	}
	return v.missing()
}

// live: the queue lists the job and it has not ended.
func (v view) live() (evidence.Observation, bool) {
	o := v.observation(v.queue)
	switch {
	case v.drains() && v.history.tellsOf(v.queue) && !v.history.Part:
		return v.over(v.queue), true
	case v.queue.Draining && v.alone(drainAfter):
		o.Phase = evidence.PhaseEnded
		o.Detail = "every rank has left its end; the scheduler is still cleaning the nodes"
	case v.queue.Phase == evidence.PhaseRunning && !v.queue.Draining && v.completeFor >= drainAfter && o.Detail == "":
		o.Detail = "every rank has left its end, and the job goes on"
	case v.queue.Phase == evidence.PhaseUnknown && v.oddFor >= oddAfter:
		o.Phase = evidence.PhaseGone
		o.Detail = fmt.Sprintf("%s says %s of the job, which is no state that is known, for %s", v.queue.name, v.queue.Word, phrase.Seconds(v.oddFor.Seconds()))
	}
	return o, true
}

// over: a source says that the job has ended. The accounting may know more, and
// markers may still appear.
func (v view) over(from source) evidence.Observation {
	knows := v.history.Known || v.steps || !v.plain()
	awaitHistory := v.needsHistory() && knows && v.history.asked && !v.history.absent && !v.history.tellsOf(from) && v.endedFor < historyLag
	awaitMarkers := from.Started && !v.markers.complete() && v.endedFor < v.grace
	o := v.observation(v.merged(from))
	if awaitHistory || awaitMarkers {
		o.Phase = evidence.PhaseEnding
		return o
	}
	switch {
	case !from.Script || v.markers.began > 0:
	case !from.Started:
		o.NotLaunched = fmt.Sprintf("it ended as %s before it was given nodes", o.Word)
	default:
		o.NotLaunched = fmt.Sprintf("the batch script ended as %s before any rank began", o.Word)
	}
	return o
}

// merged puts together what the queue and the accounting say of the end of a job.
// The accounting has the exit codes of the steps, so it wins where it speaks of
// the same start.
func (v view) merged(from source) source {
	h := v.history
	switch {
	case from.name == h.name, !h.ended():
		return from
	case !h.tellsOf(from): // all it has are earlier starts
		if h.Restarts == from.Restarts-1 {
			from.Earlier = h.asEarlier()
		}
		return from
	case from.Bad && !h.Bad: // a verdict may only get worse by it
		from.Detail = strings.TrimPrefix(fmt.Sprintf("%s; %s says %s", from.Detail, h.name, h.Word), "; ")
		return from
	}
	h.name = v.queue.name + ", " + h.name
	if from.Nodes != "" { // the accounting knows only the first node for some seconds
		h.Nodes = from.Nodes
	}
	return h
}

// tellsOf says whether a source has the end of the start that another one speaks of.
func (s source) tellsOf(from source) bool { return s.ended() && s.Restarts >= from.Restarts }

// unasked: the queue could not be asked.
func (v view) unasked() (evidence.Observation, bool) {
	switch {
	case v.history.ended() && !v.history.Again && v.history.Restarts >= v.restarts:
		return v.over(v.history), true
	case v.alone(silentAfter) && v.silentFor >= silentAfter:
		return v.without("markers", evidence.PhaseEnded,
			fmt.Sprintf("every rank has left its end; %s could not be asked: %v", v.queue.name, v.queue.err)), true
	}
	return evidence.Observation{}, false
}

// missing: the queue answers and does not list the job.
func (v view) missing() (evidence.Observation, bool) {
	names := v.queue.name
	if !v.history.absent {
		names += ", " + v.history.name
	}
	switch {
	case v.history.ended() && v.history.Restarts >= v.restarts:
		return v.over(v.history), true
	case v.markers.complete() && (v.history.absent || v.missingFor >= historyLag):
		return v.without("markers", evidence.PhaseEnded, "every rank has left its end; "+v.unknown()), true
	case v.missingFor >= max(goneAfter, v.grace):
		return v.without(names, evidence.PhaseGone, v.unknown()), true
	}
	return v.without(names, evidence.PhaseEnding, v.unknown()), true
}

// without is what is said when no source tells of the end of the newest start.
func (v view) without(source string, phase evidence.Phase, detail string) evidence.Observation {
	o := evidence.Observation{Source: source, Phase: phase, Detail: detail, Restarts: max(v.restarts, v.history.Restarts)}
	switch h := v.history; {
	case h.Restarts == o.Restarts:
		o.Earlier = h.Earlier
	case h.ended() && h.Restarts == o.Restarts-1:
		o.Earlier = h.asEarlier()
	}
	return o
}

// asEarlier is how all starts that a source knows of ended, when there is a newer one.
func (a Answer) asEarlier() []evidence.Earlier {
	return append(slices.Clip(a.Earlier), evidence.Earlier{Word: a.Word, Nodes: a.Nodes})
}

// unknown says who does not know how the job ended.
func (v view) unknown() string {
	text := v.queue.name + " lists no such job any more"
	if v.queue.Detail != "" {
		text = v.queue.name + " says that " + v.queue.Detail
	}
	switch h := v.history; {
	case h.absent:
		return text + ", and there is no accounting"
	case h.err != nil:
		return fmt.Sprintf("%s, and %s could not be asked: %v", text, h.name, h.err)
	case h.Known:
		return fmt.Sprintf("%s, and %s has it as %s", text, h.name, h.Word)
	}
	return text + ", and " + v.history.name + " does not know it"
}

// observation is what a source says, as evidence.
func (v view) observation(s source) evidence.Observation {
	return evidence.Observation{
		Source: s.name, Phase: s.Phase, Word: s.Word, Bad: s.Bad, Detail: s.Detail,
		Restarts: s.Restarts, Earlier: s.Earlier, Nodes: s.Nodes, Away: s.Away,
	}
}

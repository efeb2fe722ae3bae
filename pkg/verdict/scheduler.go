package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
)

// lookAtScheduler sorts what the target said of the job.
func (f *facts) lookAtScheduler() {
	o := f.e.Scheduler
	if o == nil {
		return
	}
	starts := 0
	for _, e := range o.Earlier {
		if e.Rank != nil {
			f.notes = append(f.notes, rankRestarted(schedulerName(o), *e.Rank, e))
			continue
		}
		starts++
		f.notes = append(f.notes, restarted(schedulerName(o), starts, e))
	}
	if n := o.Restarts - starts; n > 0 { // without accounting
		f.notes = append(f.notes, Reason{CodeRestarted, schedulerName(o), fmt.Sprintf("the scheduler started the job again (%d times in all); how %s ended is not known", o.Restarts, phrase.Count(n, "start"))})
	}
	if f.gone() {
		f.notes = append(f.notes, Reason{CodeSchedUnknown, schedulerName(o), cmp.Or(o.Detail, "the target has no such job any more") + ", so how the job ended is not known"})
		return
	}
	if o.Word == "" {
		return
	}
	said := schedulerName(o) + " said " + o.Word
	if o.Detail != "" && !f.saidOfRanks(o.Detail) {
		said += ": " + o.Detail
	}
	switch {
	case f.e.Launch.State == evidence.LaunchRefused && o.Bad && f.cancelled():
		return // it was told to stop because it was not launched, which is said
	case f.cancelledElsewhere():
		f.scheduler = append(f.scheduler, Reason{CodeCancelled, schedulerName(o), said})
	case o.Bad:
		f.scheduler = append(f.scheduler, Reason{CodeSchedState, schedulerName(o), said})
	case o.Phase == evidence.PhaseUnknown:
		f.notes = append(f.notes, Reason{CodeSchedUnknown, schedulerName(o), said + ", which is no state that is known"})
	}
}

// saidOfRanks reports whether a rank, or the job that was not launched, has the
// target's own words already.
func (f *facts) saidOfRanks(detail string) bool {
	if f.notLaunched() && strings.Contains(f.e.Scheduler.NotLaunched, detail) {
		return true
	}
	return slices.ContainsFunc(f.faults, func(ft fault) bool { return strings.Contains(ft.reason.Message, detail) })
}

// schedulerSays is what the target said of a job that is over.
func schedulerSays(o *evidence.Observation) string {
	if o.Word == "" {
		return cmp.Or(o.Detail, "the job is over")
	}
	return schedulerName(o) + " said " + o.Word
}

// restarted says how an earlier start of the job ended.
func restarted(source string, n int, e evidence.Earlier) Reason {
	where := ""
	if e.Nodes != "" {
		where = " on " + e.Nodes
	}
	return Reason{CodeRestarted, source, fmt.Sprintf("start %d of the job ended%s as %s, and the scheduler started it again", n, where, e.Word)}
}

// rankRestarted says how an earlier start of one rank ended.
func rankRestarted(source string, rank int, e evidence.Earlier) Reason {
	name := rankName(evidence.Rank{Rank: rank, Node: e.Nodes})
	return Reason{CodeRestarted, source, fmt.Sprintf("a start of %s ended as %s, and the scheduler started it again; only the newest start is judged", name, e.Word)}
}

func schedulerName(o *evidence.Observation) string {
	if o.Source == "" {
		return "the scheduler"
	}
	return o.Source
}

// over reports whether nothing of the job runs any more: the target saw its end,
// or has no such job.
func (f *facts) over() bool {
	return f.e.Scheduler != nil && f.e.Scheduler.Phase.Over()
}

// gone reports whether the target has no such job any more and cannot say how it
// ended.
func (f *facts) gone() bool {
	return f.e.Scheduler != nil && f.e.Scheduler.Phase == evidence.PhaseGone
}

// notLaunched reports whether the target says that the job could not be started
// on its nodes, and no rank says otherwise.
func (f *facts) notLaunched() bool {
	return f.over() && f.e.Scheduler.NotLaunched != "" && !f.began
}

// cancelledElsewhere reports whether the target says that a person ended the
// job, when this run has no request of its own.
func (f *facts) cancelledElsewhere() bool {
	return f.e.Cancel == nil && f.e.Launch.State != evidence.LaunchRefused && f.over() && f.cancelled()
}

// cancelled reports whether the target's word is that the job was cancelled.
func (f *facts) cancelled() bool {
	first, _, _ := strings.Cut(strings.ToUpper(f.e.Scheduler.Word), " ")
	return strings.TrimSuffix(first, "+") == "CANCELLED"
}

// neverSubmitted reports whether the target has no such job, or said no.
func (f *facts) neverSubmitted() bool {
	switch f.e.Launch.State {
	case evidence.LaunchRefused, evidence.LaunchDropped:
		return true
	case evidence.LaunchPlanned:
		return f.e.Cancel != nil
	case evidence.LaunchUnknown, evidence.LaunchIntent, evidence.LaunchSubmitted:
	}
	return false
}

package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/phrase"
	"assay/pkg/threshold"
)

// facts is the evidence on one job, sorted into what the rules ask for. Nothing
// in it depends on the order in which evidence was found.
type facts struct {
	x Expectation
	// declared are the names that the card declares, those of gates too which do not
	// count in a baseline.
	declared []string
	e        evidence.Evidence
	world    int
	ranks    []evidence.Rank // by rank, world of them
	began    bool            // a rank that is expected began

	faults     []fault  // ranks that did not end clean, the most telling first
	stale      []Reason // markers that do not count
	unreadable []Reason // of ranks that ended, so that they are no faults
	scheduler  []Reason // a bad state, else nothing
	notes      []Reason // what never decides: unknown words, post-scripts, ranks nobody expected
	asides     []Reason // what decides nothing even where warnings do

	measurements []metric.Measurement
	judged       []metric.Measurement // what thresholds are compared with
	alone        map[string]bool      // the metrics by which each rank is judged by itself
	violations   []threshold.Violation
	relaxed      []threshold.NotEvaluated
	problems     []Reason // readings that are none, disagreements, bad results files
	results      []Reason // the declared results file is missing or useless
}

func newFacts(x Expectation, e evidence.Evidence) *facts {
	f := lookAt(x, e)
	if !x.SkipMetrics {
		f.measure()
	}
	return f
}

// lookAt gathers the facts, except for what was measured.
func lookAt(x Expectation, e evidence.Evidence) *facts {
	f := &facts{x: x, e: e, world: x.WorldSize, declared: x.Declared()}
	if x.Baseline {
		f.ungate()
	}
	if f.world <= 0 {
		f.world = max(e.WorldSize, 0)
	}
	f.began = slices.ContainsFunc(e.Ranks, func(r evidence.Rank) bool { return r.Rank < f.world && left(r) })
	f.lineUp()
	f.look()
	if x.Unwrapped {
		f.notes = append(f.notes, Reason{CodeEvidenceThin, e.Job, "the ranks ran without the wrapper: the evidence is what the target says of them and their logs alone"})
	}
	return f
}

// ungate drops what would be judged: a baseline measures.
func (f *facts) ungate() {
	f.x.Thresholds = nil
	f.x.Metrics = slices.Clone(f.x.Metrics)
	for i := range f.x.Metrics {
		f.x.Metrics[i].Required = false
	}
}

// lineUp makes ranks one entry a rank. A rank without evidence is unknown; of
// two entries for one rank the worse counts.
func (f *facts) lineUp() {
	f.ranks = make([]evidence.Rank, f.world)
	found := make([]bool, f.world)
	for i := range f.ranks {
		f.ranks[i].Rank = i
	}
	var twice, unexpected []int
	for _, r := range f.e.Ranks {
		switch {
		case r.Rank < 0 || r.Rank >= f.world:
			unexpected = append(unexpected, r.Rank)
			continue
		case found[r.Rank]:
			twice = append(twice, r.Rank)
			r = f.worse(f.ranks[r.Rank], r)
		}
		f.ranks[r.Rank], found[r.Rank] = r, true
	}
	slices.Sort(twice)
	slices.Sort(unexpected)
	for _, n := range slices.Compact(twice) {
		f.notes = append(f.notes, Reason{CodeEvidenceStale, fmt.Sprintf("rank %d", n), fmt.Sprintf("rank %d has evidence twice; the worse counts", n)})
	}
	for _, n := range slices.Compact(unexpected) {
		f.notes = append(f.notes, Reason{CodeEvidenceStale, fmt.Sprintf("rank %d", n), fmt.Sprintf("there is evidence of rank %d, and the job has ranks 0 to %d; it does not count", n, f.world-1)})
	}
}

// worse chooses between two entries for one rank, by what they hold alone.
func (f *facts) worse(a, b evidence.Rank) evidence.Rank {
	fa, fb := f.fault(a), f.fault(b)
	switch {
	case (fa == nil) != (fb == nil):
		if fb != nil {
			return b
		}
		return a
	case fmt.Sprintf("%+v", a) < fmt.Sprintf("%+v", b):
		return a
	}
	return b
}

// look sorts ranks and the scheduler's word.
func (f *facts) look() {
	gone := f.recordsAreGone()
	if gone {
		f.unreadable = append(f.unreadable, Reason{CodeEvidenceUnreadable, f.e.Job, fmt.Sprintf(
			"no rank left a record, although %s saw the job run (%s)", schedulerName(f.e.Scheduler), f.e.Scheduler.Word)})
	}
	for i := range f.ranks {
		r := &f.ranks[i]
		if r.State == evidence.RankRunning && f.over() {
			r.State = evidence.RankLost
		}
		if ft := f.fault(*r); ft != nil && !gone {
			f.faults = append(f.faults, *ft)
		}
		name := rankName(*r)
		if r.Stale != "" {
			f.stale = append(f.stale, Reason{CodeEvidenceStale, name, fmt.Sprintf("%s left a marker that does not count: %s", name, r.Stale)})
		}
		if r.Unreadable != "" && r.State == evidence.RankEnded {
			f.unreadable = append(f.unreadable, Reason{CodeEvidenceUnreadable, name, fmt.Sprintf("%s left a file that cannot be read: %s", name, r.Unreadable)})
		}
		if r.Lost != "" {
			f.unreadable = append(f.unreadable, Reason{CodeEvidenceUnreadable, name, fmt.Sprintf("%s could not keep all of its evidence: %s", name, r.Lost)})
		}
		if r.Outcome == evidence.OutcomeExited && r.Message != "" {
			f.notes = append(f.notes, Reason{CodeRankNote, name, fmt.Sprintf("%s: %s", name, r.Message)})
		}
		f.steps(*r)
	}
	f.rootFirst()
	slices.SortStableFunc(f.faults, func(a, b fault) int {
		return cmp.Or(cmp.Compare(a.follows, b.follows), cmp.Compare(a.class, b.class), cmp.Compare(a.quiet, b.quiet), cmp.Compare(a.elapsed, b.elapsed), cmp.Compare(a.rank, b.rank))
	})
	f.lookAtScheduler()
}

// rootFirst marks the ranks that were not launched because of rank 0, where that is to
// blame itself: the cause is named before what follows of it.
func (f *facts) rootFirst() {
	blamed := slices.ContainsFunc(f.faults, func(ft fault) bool { return ft.rank == 0 && ft.blamed() })
	for i := range f.faults {
		if code := f.faults[i].reason.Code; blamed && (code == CodeRootEnded || code == CodeRootNotReady) {
			f.faults[i].follows = 1
		}
	}
}

// recordsAreGone reports whether the target saw the job run to an end that is not
// bad, and no rank left anything. That ranks which ran never started would be
// concluded from absence alone: more likely their records cannot be seen here.
func (f *facts) recordsAreGone() bool {
	o := f.e.Scheduler
	if !f.over() || f.gone() || o.Bad || o.Word == "" || f.e.Cancel != nil || f.neverSubmitted() || f.cancelledElsewhere() {
		return false
	}
	return len(f.ranks) > 0 && !slices.ContainsFunc(f.ranks, func(r evidence.Rank) bool {
		return r.State != evidence.RankNotStarted || r.Unreadable != "" || r.Stale != ""
	})
}

// steps notes pre- and post-scripts that failed and did not end the rank.
func (f *facts) steps(r evidence.Rank) {
	for _, s := range r.Steps {
		if s.ExitCode == 0 || s.Kind == "pre" && r.Outcome == evidence.OutcomeRefused {
			continue
		}
		code := CodePostScript
		if s.Kind == "pre" {
			code = CodePreScript
		}
		name := rankName(r)
		f.notes = append(f.notes, Reason{code, name, fmt.Sprintf("%s: %s-script %s exited %d", name, s.Kind, s.Path, s.ExitCode)})
	}
}

// waiting says what the job is waited for, when it has not ended.
func (f *facts) waiting() (Reason, bool) {
	began, running, unheard := 0, 0, 0
	for _, r := range f.ranks {
		switch r.State {
		case evidence.RankRunning:
			began++
			running++
		case evidence.RankEnded, evidence.RankLost:
			began++
		default:
			unheard++
		}
	}
	wait := func(format string, args ...any) (Reason, bool) {
		return Reason{CodeLaunchPending, f.e.Job, fmt.Sprintf(format, args...)}, true
	}
	switch {
	case f.e.Scheduler != nil && f.e.Scheduler.Phase == evidence.PhaseEnding && running+unheard > 0:
		return wait("%s, and the records of %d of %s are awaited", schedulerSays(f.e.Scheduler), running+unheard, phrase.Count(f.world, "rank"))
	case running > 0:
		return wait("%d of %s not ended", running+unheard, phrase.Count(f.world, "rank"))
	case unheard == 0 && f.unexplained():
		return wait("every rank has left its end, one was told to stop, and %s has not said why", schedulerName(f.e.Scheduler))
	case unheard == 0 || f.over() || f.neverSubmitted():
		return Reason{}, false
	case began > 0:
		return wait("%d of %s not begun", unheard, phrase.Count(f.world, "rank"))
	case f.e.Launch.State == evidence.LaunchPlanned:
		return wait("the job has not been submitted yet")
	case f.e.Launch.State == evidence.LaunchIntent:
		return wait("the job was about to be submitted, and the target has not answered yet")
	}
	return wait("0 of %s begun", phrase.Count(f.world, "rank"))
}

// unexplained reports whether a rank was told to stop, by nobody of this run, and the
// target, which says that the job goes on, has yet to tell why.
func (f *facts) unexplained() bool {
	o := f.e.Scheduler
	if o == nil || o.Phase.Over() || o.Phase == evidence.PhaseUnknown || f.e.Cancel != nil || f.neverSubmitted() {
		return false
	}
	return slices.ContainsFunc(f.ranks, func(r evidence.Rank) bool {
		return r.State == evidence.RankEnded && r.Outcome == evidence.OutcomeStopped
	})
}

// soFar names the ranks that went bad in a job that has not ended.
func (f *facts) soFar() []Reason {
	var out []Reason
	for _, ft := range f.heard() {
		out = append(out, ft.reason)
	}
	return append(append(out, f.scheduler...), f.notes...)
}

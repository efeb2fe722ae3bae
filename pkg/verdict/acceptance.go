package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/phrase"
	"assay/pkg/threshold"
)

// The exit codes of the acceptance contract that are no errors.
const (
	exitFail = 1 // the hardware was measured and fell short
	exitSkip = 2 // it does not apply here, when a line of the output says so too
)

// ending is what one rank says by the way it ended.
type ending int

const (
	endedError ending = iota // nothing was judged
	endedFail
	endedSkip
	endedPass
)

// unit is a job under the acceptance contract: a node, a link or a collective, judged
// as one.
type unit struct {
	*facts
	endings []ending // by rank
	refused []Reason // why ranks were not judged, or fell short: the most telling first
	skips   []Reason
	follows []Reason // of a client that was not launched because its server skipped
}

// acceptance judges by the acceptance contract: hardware is judged only on what was
// measured about it. The first rule that decides is the verdict.
func acceptance(f *facts) Verdict {
	u := &unit{facts: f, endings: make([]ending, len(f.ranks))}
	for i, r := range f.ranks {
		if r.State == evidence.RankEnded {
			u.endings[i] = endedPass
		}
	}
	for _, ft := range f.faults { // in their order
		end, reason := u.ending(f.ranks[ft.rank], ft.reason)
		switch {
		case end == endedSkip:
			u.skips = append(u.skips, reason)
		case u.leftBySkip(f.ranks[ft.rank]):
			end = endedSkip
			u.follows = append(u.follows, reason)
		default:
			u.refused = append(u.refused, reason)
		}
		u.endings[ft.rank] = end
	}
	f.skipsUnsaid()
	for _, rule := range []func(*unit) (Verdict, bool){
		notJudged, fellShort, nothingSaid, notDecidable, outOfBounds, skippedByOne, notApplicable,
	} {
		if v, ok := rule(u); ok {
			return v
		}
	}
	return Verdict{Word: Pass, Rule: RuleAccepted, Warnings: u.rest(), NotEvaluated: f.relaxed}
}

// ending tells what the end of a rank that is no clean one says. fault is how the
// rank ended in plain words.
func (u *unit) ending(r evidence.Rank, fault Reason) (ending, Reason) {
	said := ""
	if r.Said != "" {
		said = "; it said last: " + strconv.Quote(r.Said)
	}
	name := rankName(r)
	switch {
	case r.State != evidence.RankEnded || r.Outcome != evidence.OutcomeExited:
		return endedError, fault
	case r.ExitCode == exitFail:
		return endedFail, Reason{CodeRankExit, name, fmt.Sprintf("%s found the hardware short (exit code %d)%s", name, exitFail, said)}
	case r.ExitCode == exitSkip && r.Skip != "":
		return endedSkip, Reason{CodeSkipDeclared, name, fmt.Sprintf("%s does not apply here (exit code %d): %s", name, exitSkip, r.Skip)}
	case r.ExitCode == exitSkip:
		return endedError, Reason{CodeSkipUndeclared, name, fmt.Sprintf(
			"%s exited %d without a line that declares a skip, such as NAME_SKIP: why; a program that crashes may exit %[2]d too, so nothing was judged%s", name, exitSkip, said)}
	}
	fault.Message += said
	return endedError, fault
}

// skipsUnsaid notes the ranks that printed the line of a skip and did not end as one.
func (f *facts) skipsUnsaid() {
	for _, r := range f.ranks {
		if r.State == evidence.RankEnded && r.Outcome == evidence.OutcomeExited && r.ExitCode == 0 && r.Skip != "" {
			name := rankName(r)
			f.notes = append(f.notes, Reason{CodeSkipDeclared, name, fmt.Sprintf("%s exited 0 although it printed %s; a skip is exit code %d", name, strconv.Quote(r.Skip), exitSkip)})
		}
	}
}

func (u *unit) any(e ending) bool { return slices.Contains(u.endings, e) }

// notJudged: something other than the hardware decided how it ended.
func notJudged(u *unit) (Verdict, bool) {
	launch := u.launchReasons()
	states := u.unexplainedStates()
	unseen := u.unseen()
	if len(launch) == 0 && !u.any(endedError) && len(states) == 0 && len(unseen) == 0 {
		return Verdict{}, false
	}
	return Verdict{
		Word: Error, Rule: RuleNotJudged, Reasons: join(launch, u.refused, u.scheduler, unseen, u.stale),
		Warnings: join(u.skips, u.follows, u.measuredShort(), u.unreadableBut(unseen), u.results, u.problems, u.notes),
		Short:    u.foundShort(),
	}, true
}

// foundShort says that a rank which came to its end found the hardware short, whatever
// became of the others. What was printed by one that did not may be a figure of the
// meantime.
func (u *unit) foundShort() bool {
	return u.any(endedFail) || slices.ContainsFunc(u.short(), func(v threshold.Violation) bool {
		return v.Rank != nil && *v.Rank < len(u.endings) && u.endings[*v.Rank] == endedPass
	})
}

// unexplainedStates is the bad word of the target, unless it only repeats that a rank
// exited with a code other than 0.
func (u *unit) unexplainedStates() []Reason {
	if len(u.scheduler) == 0 || !u.any(endedFail) && !u.any(endedSkip) {
		return u.scheduler
	}
	word, _, _ := strings.Cut(u.e.Scheduler.Word, " ")
	switch word {
	case "FAILED", "FailedIndexes", "MaxFailedIndexesExceeded", "BackoffLimitExceeded", "PodFailurePolicy":
		return nil
	}
	return u.scheduler
}

// unseen is set when the records of all ranks are gone, so that no rank is at fault.
func (u *unit) unseen() []Reason {
	if u.recordsAreGone() {
		return u.unreadable
	}
	return nil
}

// unreadableBut is what cannot be read and is no reason already.
func (u *unit) unreadableBut(reasons []Reason) []Reason {
	if len(reasons) > 0 {
		return nil
	}
	return u.unreadable
}

// fellShort: a rank says that the hardware was measured and fell short.
func fellShort(u *unit) (Verdict, bool) {
	if !u.any(endedFail) {
		return Verdict{}, false
	}
	v := Verdict{Word: Fail, Rule: RuleFellShort, Reasons: u.refused, Warnings: join(u.skips, u.stale, u.rest()), NotEvaluated: u.relaxed}
	if !u.said() {
		v.Warnings = append([]Reason{{CodeNothingMeasured, "", "nothing was measured: that the hardware is short rests on the exit code alone, and a script that fails, or a Python program that crashes, exits 1 too"}}, v.Warnings...)
	}
	if u.said() {
		v.Violations = u.violations
		v.Reasons = join(v.Reasons, reasonsOf(u.violations))
	}
	return v, true
}

// nothingSaid: what printed nothing measured nothing, however it ended.
func nothingSaid(u *unit) (Verdict, bool) {
	if u.any(endedSkip) || !u.gated() || !u.x.SkipMetrics && u.said() {
		return Verdict{}, false
	}
	var who []string
	for _, r := range u.ranks {
		who = append(who, rankName(r))
	}
	reason := Reason{CodeNothingMeasured, "", fmt.Sprintf("%s ended well without a key=value line, so nothing was measured that %s could be judged by", listNames(who), u.gates())}
	if u.x.SkipMetrics {
		reason.Message = fmt.Sprintf("measuring is switched off (context.skip_perf_collection), and %s cannot be judged without", u.gates())
	}
	return Verdict{Word: Error, Rule: RuleNothingSaid, Reasons: join([]Reason{reason}, u.unreadable), Warnings: join(u.results, u.problems, u.notes, u.stale)}, true
}

// gated reports whether there is anything to be judged by but exit codes.
func (u *unit) gated() bool { return len(u.gateNames()) > 0 }

// gateNames lists the metrics that have to be there.
func (u *unit) gateNames() []string {
	var names []string
	for _, t := range u.x.Thresholds {
		names = append(names, t.Metric)
	}
	for _, s := range u.x.Metrics {
		if s.Required {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (u *unit) gates() string { return listNames(u.gateNames()) }

// said reports whether any rank reported anything: a number, n/a, a word, or a line
// that is no reading.
func (u *unit) said() bool {
	printed := func(p metric.Problem) bool {
		return p.Source == metric.SourceKeyValue || p.Source == metric.SourcePerformance
	}
	return slices.ContainsFunc(u.ranks, func(r evidence.Rank) bool {
		return left(r) && (len(r.Readings) > 0 || slices.ContainsFunc(r.Problems, printed))
	})
}

// notDecidable: what is missing may be among what cannot be read.
func notDecidable(u *unit) (Verdict, bool) {
	if u.any(endedSkip) || len(u.violations) == 0 || len(u.unreadable) == 0 || len(u.measuredShort()) > 0 {
		return Verdict{}, false
	}
	return Verdict{
		Word: Error, Rule: RuleNotDecidable, Reasons: join(u.unreadable, reasonsOf(u.violations)),
		Warnings: join(u.results, u.problems, u.notes, u.stale),
	}, true
}

// outOfBounds: thresholds decide. Of a job that does not apply to a part of its ranks
// only what was measured counts.
func outOfBounds(u *unit) (Verdict, bool) {
	v := Verdict{Word: Fail, Rule: RuleOutOfBounds, NotEvaluated: u.relaxed, Violations: u.violations}
	if u.any(endedSkip) {
		v.Violations = u.short()
		v.NotEvaluated = nil
	}
	if len(v.Violations) == 0 {
		return Verdict{}, false
	}
	v.Reasons = reasonsOf(v.Violations)
	v.Warnings = join(u.skips, u.follows, u.stale, u.rest())
	return v, true
}

// short lists the violations by a value that was measured in full: not by one that
// lacks a rank. What each rank is judged by alone lacks none.
func (u *unit) short() []threshold.Violation {
	lacking := map[string]bool{}
	for _, v := range u.violations {
		if v.Cause == threshold.CauseEvidence && !u.alone[v.Subject] {
			lacking[v.Subject] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(u.violations), func(v threshold.Violation) bool {
		return v.Cause != threshold.CauseMeasurement || lacking[v.Subject]
	})
}

func (u *unit) measuredShort() []Reason { return reasonsOf(u.short()) }

// skippedByOne: of a collective every rank has to pass, or every rank to skip.
func skippedByOne(u *unit) (Verdict, bool) {
	if !u.any(endedSkip) || !u.any(endedPass) || u.pair() {
		return Verdict{}, false
	}
	mixed := Reason{CodeSkipDeclared, "", fmt.Sprintf("%d of %s skipped and the others did not: it applies to all of them or to none", len(u.skips), phrase.Count(u.world, "rank"))}
	return Verdict{Word: Error, Rule: RuleSkippedByOne, Reasons: join(u.skips, []Reason{mixed}), Warnings: join(u.stale, u.rest())}, true
}

// notApplicable: it does not apply to this hardware.
func notApplicable(u *unit) (Verdict, bool) {
	if !u.any(endedSkip) {
		return Verdict{}, false
	}
	return Verdict{Word: Skip, Rule: RuleNotApplicable, Reasons: u.skips, Warnings: join(u.follows, u.stale, u.rest())}, true
}

package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
)

// benchmark judges by the benchmark contract: a measurement is the strongest
// evidence that work was done. The first rule that decides is the verdict.
func benchmark(f *facts) Verdict {
	for _, rule := range []func(*facts) (Verdict, bool){
		notLaunched, violated, allRanks, measured, rankFailed, schedulerFailed, unreadable, notCollected, inapplicable,
	} {
		if v, ok := rule(f); ok {
			if v.Word == Fail || v.Word == Pass || v.Word == Skip {
				v.NotEvaluated = f.relaxed
			}
			return v
		}
	}
	return notMeasured(f)
}

// notLaunched: nothing measured, and never launched or cancelled by a person.
func notLaunched(f *facts) (Verdict, bool) {
	if f.numbers() > 0 {
		return Verdict{}, false
	}
	first := f.launchReasons()
	refused := func(ft fault) bool { return ft.class == classRefused }
	if len(first) == 0 && !slices.ContainsFunc(f.faults, refused) {
		return Verdict{}, false
	}
	return Verdict{
		Word: Error, Rule: RuleNotLaunched,
		Reasons:  join(first, f.bad(), f.stale),
		Warnings: join(f.problems, f.notes, f.unreadable),
	}, true
}

// launchReasons says why the job as a whole was not launched, or who ended it.
func (f *facts) launchReasons() []Reason {
	l := f.e.Launch
	cancelled := func() []Reason {
		return []Reason{{CodeCancelled, f.e.Job, fmt.Sprintf("the run was cancelled by %s before the job had ended", f.e.Cancel.By)}}
	}
	switch {
	case l.State == evidence.LaunchRefused:
		code, why := l.Code, l.Detail
		if code == "" {
			code = CodeLaunchRefused
		}
		if why == "" {
			why = "it does not say why"
		}
		if code == CodeLaunchUnknown {
			return []Reason{{code, f.e.Job, "it is not known whether the job was submitted: " + why}}
		}
		if code != CodeLaunchRefused {
			return []Reason{{code, f.e.Job, "the job was not launched: " + why}}
		}
		return []Reason{{code, f.e.Job, "the target refused the job: " + why}}
	case f.notLaunched():
		return []Reason{{cmp.Or(f.e.Scheduler.NotLaunchedCode, CodeLaunchRefused), f.e.Job, "the job could not be started on its nodes: " + f.e.Scheduler.NotLaunched}}
	case l.State == evidence.LaunchDropped && l.Detail != "":
		return []Reason{{cmp.Or(l.Code, CodeCancelled), f.e.Job, l.Detail}}
	case l.State == evidence.LaunchDropped:
		return []Reason{{CodeCancelled, f.e.Job, "the run was cancelled before the job was submitted"}}
	case f.neverSubmitted():
		return []Reason{{CodeCancelled, f.e.Job, fmt.Sprintf("the run was cancelled by %s before the job was submitted", f.e.Cancel.By)}}
	case slices.ContainsFunc(f.faults, func(ft fault) bool { return ft.class == classCancelled }):
		return cancelled()
	case f.cancelledElsewhere():
		return []Reason{{CodeCancelled, f.e.Job, "the job was cancelled by somebody outside this run"}}
	}
	return nil
}

// violated: a value violates a threshold, or one that has to be there is absent
// while others were measured.
func violated(f *facts) (Verdict, bool) {
	if len(f.measurements) == 0 || len(f.violations) == 0 {
		return Verdict{}, false
	}
	v := Verdict{Word: Fail, Rule: RuleViolated, Reasons: reasonsOf(f.violations), Violations: f.violations}
	if f.x.RanksPolicy == "all" {
		v.Reasons = join(v.Reasons, f.bad())
		v.Warnings = f.remarks()
		return v, true
	}
	v.Warnings = join(f.bad(), f.remarks())
	return v, true
}

// allRanks: measured, and every rank has to be good, and one is not.
func allRanks(f *facts) (Verdict, bool) {
	bad := f.bad()
	if f.numbers() == 0 || f.x.RanksPolicy != "all" || len(bad) == 0 {
		return Verdict{}, false
	}
	return Verdict{Word: Fail, Rule: RuleAllRanks, Reasons: bad, Warnings: f.remarks()}, true
}

// measured: whatever else is known becomes a warning that names it.
func measured(f *facts) (Verdict, bool) {
	if f.numbers() == 0 {
		return Verdict{}, false
	}
	return Verdict{Word: Pass, Rule: RuleMeasured, Warnings: join(f.bad(), f.remarks())}, true
}

// rankFailed: nothing measured, and a rank is to blame.
func rankFailed(f *facts) (Verdict, bool) {
	if !slices.ContainsFunc(f.faults, fault.blamed) {
		return Verdict{}, false
	}
	return Verdict{Word: Fail, Rule: RuleRankFailed, Reasons: join(f.bad(), f.stale), Warnings: f.rest()}, true
}

// schedulerFailed: nothing measured, no rank to blame, and the target names a
// state that stands for a failure.
func schedulerFailed(f *facts) (Verdict, bool) {
	if len(f.scheduler) == 0 {
		return Verdict{}, false
	}
	return Verdict{Word: Fail, Rule: RuleScheduler, Reasons: join(f.scheduler, f.faultReasons(), f.stale), Warnings: f.rest()}, true
}

// unreadable: nothing measured, nobody to blame, and what may have said more
// cannot be read.
func unreadable(f *facts) (Verdict, bool) {
	reasons := join(f.faultReasons(), f.unreadable)
	if len(reasons) == 0 {
		return Verdict{}, false
	}
	return Verdict{Word: Error, Rule: RuleUnreadable, Reasons: join(reasons, f.stale), Warnings: join(f.results, f.problems, f.notes)}, true
}

// notCollected: the manifest switched measuring off, so nothing was judged.
func notCollected(f *facts) (Verdict, bool) {
	if !f.x.SkipMetrics {
		return Verdict{}, false
	}
	return Verdict{
		Word: Skip, Rule: RuleNotCollected, Warnings: f.remarks(),
		Reasons: []Reason{{CodeNothingMeasured, "", fmt.Sprintf("%s ended clean, and measuring is switched off (context.skip_perf_collection), so nothing was judged", phrase.Count(f.world, "rank"))}},
	}, true
}

// inapplicable: all that was reported is that it cannot be measured here.
func inapplicable(f *facts) (Verdict, bool) {
	if len(f.measurements) == 0 {
		return Verdict{}, false
	}
	var names []string
	for _, m := range f.measurements {
		names = append(names, m.Name)
	}
	return Verdict{
		Word: Skip, Rule: RuleInapplicable, Warnings: f.remarks(),
		Reasons: []Reason{{CodeNothingMeasured, "", fmt.Sprintf("all that was reported is n/a: %s cannot be measured here", listNames(names))}},
	}, true
}

// notMeasured: nothing measured, all ranks clean.
func notMeasured(f *facts) Verdict {
	return Verdict{
		Word: NoMetric, Rule: RuleNotMeasured, Warnings: join(f.notes, f.stale),
		Reasons: join(f.results, f.problems, []Reason{f.nothingMeasured()}),
	}
}

// bad lists the ranks that did not end clean, then the target's bad state.
func (f *facts) bad() []Reason { return join(f.faultReasons(), f.scheduler) }

func (f *facts) faultReasons() []Reason {
	var out []Reason
	for _, ft := range f.faults {
		out = append(out, ft.reason)
	}
	return out
}

// remarks lists what is worth a warning beside bad ranks, when there is a
// measurement.
func (f *facts) remarks() []Reason {
	var refused []Reason
	if f.e.Launch.State == evidence.LaunchRefused {
		refused = f.launchReasons()
	}
	return join(refused, f.stale, f.rest())
}

// rest lists what is worth a warning whatever decided.
func (f *facts) rest() []Reason { return join(f.unreadable, f.results, f.problems, f.notes) }

func join(lists ...[]Reason) []Reason { return slices.Concat(lists...) }

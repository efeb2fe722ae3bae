package verdict

import (
	"fmt"
	"slices"

	"assay/pkg/evidence"
)

// The rules that decide a verdict, as Verdict.Rule names them.
const (
	RulePending      = "pending"                 // not ended
	RuleAttempts     = "attempts"                // several attempts, put together
	RuleContract     = "contract"                // a contract that is not known
	RuleNoRanks      = "no ranks"                // nobody was expected to report
	RuleNotLaunched  = "benchmark 1"             // nothing measured, never launched or cancelled
	RuleViolated     = "benchmark 2"             // a threshold is violated
	RuleAllRanks     = "benchmark 3"             // measured, but a rank is bad and all have to be good
	RuleMeasured     = "benchmark 4"             // measured
	RuleStrict       = "benchmark 4, strict"     // measured, and there are warnings
	RuleRankFailed   = "benchmark 5"             // nothing measured, a rank is to blame
	RuleScheduler    = "benchmark 6"             // nothing measured, the target names a bad state
	RuleUnreadable   = "benchmark unreadable"    // nothing measured, and evidence cannot be read
	RuleNotMeasured  = "benchmark 7"             // nothing measured, all ranks clean
	RuleInapplicable = "benchmark n/a"           // only n/a was reported
	RuleNotCollected = "benchmark not collected" // measuring was switched off

	RuleNotJudged      = "acceptance 1"         // something other than the hardware decided how it ended
	RuleFellShort      = "acceptance 2"         // a rank exited 1
	RuleNothingSaid    = "acceptance 3"         // all exited 0 and nothing was printed that a threshold could be applied to
	RuleNotDecidable   = "acceptance 4"         // what is missing may be in what cannot be read
	RuleOutOfBounds    = "acceptance 5"         // a threshold is violated
	RuleSkippedByOne   = "acceptance 6"         // some ranks of a collective skipped
	RuleNotApplicable  = "acceptance 7"         // it does not apply to this hardware
	RuleAccepted       = "acceptance 8"         // every rank exited 0 and no threshold is violated
	RuleAcceptedStrict = "acceptance 8, strict" // the same, and there are warnings
)

// The contracts, as a card declares them. No contract is the benchmark contract.
const (
	ContractBenchmark  = "benchmark"
	ContractAcceptance = "acceptance"
)

// contract turns the facts on a job that has ended into a verdict.
type contract func(*facts) Verdict

// contracts maps the name of a contract, as a card declares it, to its rules.
func contracts() map[string]contract {
	return map[string]contract{
		"":                 benchmark,
		ContractBenchmark:  benchmark,
		ContractAcceptance: acceptance,
	}
}

// Judge gives the verdict on one job. It depends on its arguments alone and not
// on the order of ranks.
func Judge(x Expectation, e evidence.Evidence) Verdict {
	f := newFacts(x, e)
	if f.world == 0 {
		return Verdict{Word: Error, Rule: RuleNoRanks, Reasons: []Reason{{CodeEvidenceUnreadable, "", "the job has no ranks, so nothing can have been measured"}}}
	}
	if waiting, ok := f.waiting(); ok {
		return Verdict{Word: Pending, Rule: RulePending, Reasons: []Reason{waiting}, Warnings: f.soFar(), Measurements: f.measurements}
	}
	rules, ok := contracts()[x.Contract]
	if !ok {
		return Verdict{Word: Error, Rule: RuleContract, Measurements: f.measurements, Reasons: []Reason{{
			CodeContract, x.Contract, fmt.Sprintf("contract %q cannot be judged by this version of assay", x.Contract),
		}}}
	}
	v := rules(f)
	v.Measurements = f.measurements
	if v.Word == Pass && x.Strict {
		v.strict()
	}
	v.Warnings = append(v.Warnings, f.asides...)
	return v
}

// strict makes a FAIL of a PASS that has warnings. That a line reads like a skip is a
// hint, which never decides.
func (v *Verdict) strict() {
	hint := func(r Reason) bool { return r.Code == CodeSkipDeclared }
	against := slices.DeleteFunc(slices.Clone(v.Warnings), hint)
	if len(against) == 0 {
		return
	}
	v.Word, v.Rule, v.Reasons = Fail, strictRule(v.Rule), append(v.Reasons, against...)
	v.Warnings = slices.DeleteFunc(v.Warnings, func(r Reason) bool { return !hint(r) })
	if len(v.Warnings) == 0 {
		v.Warnings = nil
	}
}

func strictRule(rule string) string {
	if rule == RuleAccepted {
		return RuleAcceptedStrict
	}
	return RuleStrict
}

// RollUp puts the verdicts on jobs together: PENDING while any job has not
// ended, else the first of FAIL, ERROR, NO_METRIC, PASS and SKIP that any job
// has. A word that is none of these counts as ERROR, and so does an empty list:
// a run in which nothing was judged is never PASS.
func RollUp(words []Word) Word {
	seen := map[Word]bool{}
	for _, w := range words {
		switch w {
		case Pass, Fail, NoMetric, Skip, Pending:
			seen[w] = true
		default:
			seen[Error] = true
		}
	}
	for _, w := range []Word{Pending, Fail, Error, NoMetric, Pass, Skip} {
		if seen[w] {
			return w
		}
	}
	return Error
}

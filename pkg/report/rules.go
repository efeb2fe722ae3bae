package report

import "assay/pkg/verdict"

// ruleMeaning says in words what the row of the truth table asks for.
func ruleMeaning(rule string) string {
	return map[string]string{
		verdict.RulePending:        "the job has not ended",
		verdict.RuleAttempts:       "the attempts at the job together do not come to a verdict",
		verdict.RuleContract:       "the contract is not known",
		verdict.RuleNoRanks:        "the job has no ranks",
		verdict.RuleNotLaunched:    "nothing was measured, and the job was never launched or was cancelled",
		verdict.RuleViolated:       "a measured value violates a threshold, or a metric with a threshold is absent",
		verdict.RuleAllRanks:       "something was measured, but all ranks have to be good and one is not",
		verdict.RuleMeasured:       "something was measured, and nothing speaks against it",
		verdict.RuleStrict:         "something was measured, but there are warnings and --strict makes them count",
		verdict.RuleRankFailed:     "nothing was measured, and a rank failed, was lost or never began",
		verdict.RuleScheduler:      "nothing was measured, no rank is to blame, and the target names a bad state",
		verdict.RuleUnreadable:     "nothing was measured, and evidence cannot be read",
		verdict.RuleNotMeasured:    "nothing was measured, and every rank ended clean",
		verdict.RuleInapplicable:   "the workload reported only that its metrics are not applicable here",
		verdict.RuleNotJudged:      "something other than the hardware decided how it ended, so it was not judged",
		verdict.RuleFellShort:      "a rank says that the hardware was measured and fell short",
		verdict.RuleNothingSaid:    "every rank exited 0, and nothing was printed that a threshold could be applied to",
		verdict.RuleNotDecidable:   "a metric is missing, and it may be in what cannot be read",
		verdict.RuleOutOfBounds:    "a measured value violates a threshold, or a metric with a threshold is absent or no number",
		verdict.RuleSkippedByOne:   "some ranks skipped and others passed",
		verdict.RuleNotApplicable:  "the workload declares that it does not apply to this hardware",
		verdict.RuleAccepted:       "every rank exited 0, and no threshold is violated",
		verdict.RuleAcceptedStrict: "every rank exited 0, but there are warnings and --strict makes them count",
		verdict.RuleNotCollected:   "the manifest switches measuring off",
	}[rule]
}

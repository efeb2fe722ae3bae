package report

import (
	"fmt"
	"slices"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

// attemptsShown bounds the attempts that are listed one by one.
const attemptsShown = 6

// attempts says how a job came to its verdict, where there were several attempts: one
// line each, or of many how many had which verdict and those that did not pass.
func attempts(j Job) []string {
	if len(j.History) < 2 {
		return nil
	}
	count := map[verdict.Word]int{}
	var lines []string
	for _, a := range j.History {
		count[a.Verdict]++
		if len(j.History) <= attemptsShown || a.Verdict != verdict.Pass && len(lines) < attemptsShown {
			lines = append(lines, attemptLine(a))
		}
	}
	if len(j.History) <= attemptsShown && count[verdict.Pass] < len(j.History) {
		return lines
	}
	if count[verdict.Pass] == len(j.History) {
		lines = nil
	}
	var parts []string
	for _, w := range []verdict.Word{verdict.Fail, verdict.Error, verdict.NoMetric, verdict.Pass, verdict.Skip, verdict.Pending} {
		if count[w] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[w], w))
		}
	}
	return append([]string{phrase.Count(len(j.History), "attempt") + ": " + strings.Join(parts, ", ")}, lines...)
}

func attemptLine(a Attempt) string {
	line := fmt.Sprintf("attempt %d", a.Attempt)
	if a.Trigger != verdict.TriggerFirst {
		line += " (" + string(a.Trigger) + ")"
	}
	line += ": " + a.Verdict.String()
	if a.Verdict != verdict.Pass && len(a.Reasons) > 0 {
		line += ", " + a.Reasons[0].Message
	}
	return line
}

// marks says what a reader of a verdict has to know beside it.
func marks(j Job) string {
	var words []string
	if j.Baseline {
		words = append(words, "baseline")
	}
	if j.Optional {
		words = append(words, "optional")
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// caveats are sentences on a run as a whole that belong beside its verdict.
func caveats(run Run) []string {
	var out []string
	baselines, optional := 0, 0
	for _, j := range run.Jobs {
		if j.Baseline {
			baselines++
		}
		if j.Optional && j.Verdict != verdict.Pass && j.Verdict != verdict.Skip {
			optional++
		}
	}
	switch {
	case run.Baseline:
		out = append(out, "a baseline: nothing was gated, so this is no acceptance")
	case baselines > 0:
		which := "these were"
		if baselines == 1 {
			which = "it was"
		}
		out = append(out, fmt.Sprintf("%s of a baseline: %s not gated", phrase.Count(baselines, "job"), which))
	}
	if optional > 0 {
		verb := "do"
		if optional == 1 {
			verb = "does"
		}
		out = append(out, fmt.Sprintf("%s did not pass and %s not decide", phrase.Count(optional, "optional job"), verb))
	}
	if run.Target == "local" && slices.ContainsFunc(run.Pairs, func(p Pairs) bool { return len(p.Findings) > 0 }) {
		out = append(out, "the nodes are names for parts of one machine: what sets them apart may be its noise")
	}
	return append(out, intrusions(run)...)
}

// intrusions say which other runs used some of the nodes.
func intrusions(run Run) []string {
	var out []string
	if len(run.SharedBy) > 0 {
		out = append(out, "other runs were started on some of its nodes meanwhile ("+strings.Join(run.SharedBy, ", ")+")")
	}
	if len(run.Forced) > 0 {
		out = append(out, "forced: other runs used some of the nodes at the same time ("+strings.Join(run.Forced, ", ")+")")
	}
	return out
}

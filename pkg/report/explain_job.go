package report

import (
	"fmt"
	"slices"

	"assay/pkg/verdict"
)

// circumstances are what a verdict is worth: what the job was judged by, whether it
// decides anything, and what else went on.
func circumstances(run Run, job Job) []string {
	var out []string
	if job.Baseline {
		out = append(out, "a baseline: nothing was gated, so this is no acceptance")
	}
	if job.Optional {
		out = append(out, "optional: it does not decide the verdict on the run")
	}
	if g := job.Gates; g != nil {
		line := "thresholds: " + g.File
		if g.Hardware != "" {
			line += ", hardware " + g.Hardware
		}
		if g.Digest != "" {
			line += " (" + g.Digest + ")"
		}
		out = append(out, line)
	}
	return append(out, intrusions(run)...)
}

// attemptLines are the attempts at a job and how its verdict was made of them; none where
// there was only one.
func attemptLines(job Job) []string {
	lines := attempts(job)
	if why := decided(job); why != "" {
		lines = append(lines, why)
	}
	return lines
}

// decided says which of several attempts decides, and why.
func decided(job Job) string {
	if len(job.History) < 2 {
		return ""
	}
	if job.Rule == verdict.RuleAttempts || job.Verdict == verdict.Pending {
		if len(job.Reasons) == 0 {
			return ""
		}
		return "together: " + job.Verdict.String() + ", since " + job.Reasons[0].Message
	}
	i := slices.IndexFunc(job.History, func(a Attempt) bool { return a.Directory == job.Directory })
	if i < 0 {
		return ""
	}
	at := job.History[i]
	switch {
	case at.Verdict == verdict.Fail:
		return fmt.Sprintf("attempt %d decides: a FAIL does, whatever comes before or after it", at.Attempt)
	case at.Verdict == verdict.Pass && passed(job.History) > 1:
		return fmt.Sprintf("together: PASS, since it passed %d times and never failed", passed(job.History))
	}
	return fmt.Sprintf("attempt %d decides, as the last: none of them failed", at.Attempt)
}

func passed(list []Attempt) int {
	n := 0
	for _, a := range list {
		if a.Verdict == verdict.Pass {
			n++
		}
	}
	return n
}

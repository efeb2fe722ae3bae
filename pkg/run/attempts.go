package run

import (
	"fmt"
	"math"
	"slices"

	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// judged is an attempt that was submitted, by the newest start of it, with the verdict
// on it alone.
type judged struct {
	attempt plan.Attempt
	job     report.Job
}

// starts lists the attempts at a job that were made, or are to be made, each by the
// newest start of it. An error is about the newest.
func starts(r *rundir.Run, e rundir.Entry) ([]plan.Attempt, error) {
	last, err := r.LastAttempt(e.ID)
	if err != nil {
		return nil, err
	}
	var out []plan.Attempt
	for n := 1; n <= max(last, 1); n++ {
		dir := r.AttemptDir(e.ID, n)
		a, err := rundir.ReadAttempt(dir)
		if err != nil {
			return out, fmt.Errorf("job %s: %w", e.ID, err)
		}
		a.Dir = dir // it may have been moved or be mounted elsewhere since
		if a.SubmittedAs != 0 && len(out) > 0 {
			out[len(out)-1] = a // the scheduler started the one before again
			continue
		}
		out = append(out, a)
	}
	return out, nil
}

// judgeAttempts judges the attempts at a job. kept says that final verdicts which are
// on disk will do.
func judgeAttempts(r *rundir.Run, e rundir.Entry, kept bool) []judged {
	attempts, err := starts(r, e)
	var out []judged
	for _, a := range attempts {
		out = append(out, judged{a, judgeStart(r, e, a, kept)})
	}
	if err != nil {
		n, _ := r.LastAttempt(e.ID) // 0 when that cannot be read either
		out = append(out, judged{plan.Attempt{Number: n}, damaged(r, e, n, err)})
	}
	return out
}

func judgeStart(r *rundir.Run, e rundir.Entry, a plan.Attempt, kept bool) report.Job {
	if kept {
		if old, err := readJobVerdict(r, a.Dir); err == nil && old != nil {
			return *old
		}
	}
	j, err := judgeAttempt(r, a)
	if err != nil {
		return damaged(r, e, a.Number, err)
	}
	return j
}

// trials are the attempts as a policy sees them.
func trials(attempts []judged) []verdict.Trial {
	out := make([]verdict.Trial, len(attempts))
	for i, t := range attempts {
		out[i] = verdict.Trial{
			Attempt: t.attempt.Number, Trigger: t.attempt.Trigger, Word: t.job.Verdict, ElapsedSeconds: t.job.ElapsedSeconds,
			Ended: slices.ContainsFunc(t.job.Reasons, func(r verdict.Reason) bool {
				return r.Code == verdict.CodeCancelled || r.Code == verdict.CodeNotRun
			}),
		}
	}
	return out
}

// policyOf is how often a job is run, by its attempts.
func policyOf(attempts []judged) verdict.Policy {
	if len(attempts) == 0 {
		return verdict.Policy{}
	}
	return attempts[0].attempt.Job.Policy
}

// fold makes the verdict on a job of those on its attempts.
func fold(r *rundir.Run, e rundir.Entry, attempts []judged) report.Job {
	policy := policyOf(attempts)
	all := trials(attempts)
	by, stopped := stoppedBy(r, e)
	s := policy.Settle(all, stopped)
	if s.Decides < 0 {
		return damaged(r, e, 0, fmt.Errorf("job %s has no attempt", e.ID))
	}
	j := attempts[s.Decides].job
	if len(attempts) > 1 {
		j.History = history(attempts)
	}
	if s.Word == j.Verdict {
		return j
	}
	lead := verdict.Reason{Subject: e.ID}
	switch {
	case s.Contradicts:
		lead.Code, lead.Message = verdict.CodeContradiction, fmt.Sprintf("it passed %s, and then declared that it does not apply here", howOften(s.Passes))
	case s.Word == verdict.Pending:
		lead.Code, lead.Message = verdict.CodeLaunchPending, "another attempt is due: "+toCome(policy, s, all)
	default:
		lead.Code, lead.Message = verdict.CodeCancelled, fmt.Sprintf("the run was cancelled by %s while another attempt was due: %s", by, toCome(policy, s, all))
	}
	j.Verdict = s.Word
	j.Reasons = append([]verdict.Reason{lead}, j.Reasons...)
	return j
}

// toCome says what is missing.
func toCome(p verdict.Policy, s verdict.Settled, all []verdict.Trial) string {
	last := all[len(all)-1]
	switch {
	case last.Word == verdict.Error:
		return fmt.Sprintf("attempt %d could not be judged, and is made again", last.Attempt)
	case s.Passes < p.Repeats:
		return fmt.Sprintf("it passed %s of %d", howOften(s.Passes), p.Repeats)
	}
	return fmt.Sprintf("it passed for %s of %s", phrase.Seconds(s.ElapsedSeconds), phrase.Seconds(float64(p.DurationSeconds)))
}

func howOften(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// stoppedBy says who ended the run before a job had its verdict.
func stoppedBy(r *rundir.Run, e rundir.Entry) (by string, stopped bool) {
	c, err := r.ReadCancel()
	if err != nil || c == nil || !slices.Contains(c.Jobs, e.ID) {
		return "", false
	}
	return c.By, true
}

func history(attempts []judged) []report.Attempt {
	out := make([]report.Attempt, len(attempts))
	for i, t := range attempts {
		out[i] = report.Attempt{
			Attempt: t.job.Attempts, Trigger: t.attempt.Trigger, Verdict: t.job.Verdict, Directory: t.job.Directory,
			ElapsedSeconds: t.job.ElapsedSeconds, Reasons: t.job.Reasons, Measurements: t.job.Measurements,
		}
	}
	return out
}

// next is the attempt that follows others, for a reason.
func next(r *rundir.Run, attempts []judged, trigger verdict.Trigger) (plan.Attempt, error) {
	a := attempts[len(attempts)-1].attempt.Submitted()
	n, err := r.LastAttempt(a.Job.ID)
	if err != nil {
		return a, err
	}
	a.Number, a.Trigger = n+1, trigger
	a.Dir = r.AttemptDir(a.Job.ID, a.Number)
	a.DurationSeconds = a.Job.Asked(int(math.Ceil(a.Job.Policy.Remaining(trials(attempts)))))
	return a, nil
}

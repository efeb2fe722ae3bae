package run

import (
	"errors"
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
	// broken says that its files could not be read. The verdict is then what had been
	// found before, or that; it is never written down.
	broken bool
}

// judgeAttempts judges the attempts at a job that were made, or are to be made. kept
// says that final verdicts which are on disk will do.
func judgeAttempts(r *rundir.Run, e rundir.Entry, kept bool) []judged {
	numbers, err := r.Attempts(e.ID)
	if err != nil || len(numbers) == 0 {
		if err == nil {
			err = fmt.Errorf("%s has no attempt of it", r.Dir)
		}
		return []judged{broken(r, e, 1, err)}
	}
	var out []judged
	for _, n := range numbers {
		t := judgeNumber(r, e, n, kept)
		if t.attempt.SubmittedAs != 0 && len(out) > 0 {
			out[len(out)-1] = t // the scheduler started the one before again
			continue
		}
		out = append(out, t)
	}
	return out
}

// judgeNumber judges one attempt directory.
func judgeNumber(r *rundir.Run, e rundir.Entry, n int, kept bool) judged {
	dir := r.AttemptDir(e.ID, n)
	a, err := rundir.ReadAttempt(dir)
	if err != nil {
		return broken(r, e, n, err)
	}
	a.Dir = dir // it may have been moved or be mounted elsewhere since
	if kept {
		if old, err := readJobVerdict(r, dir); err == nil && old != nil {
			return judged{attempt: a, job: *old}
		}
	}
	j, err := judgeAttempt(r, a)
	if err != nil {
		t := broken(r, e, n, err)
		t.attempt = a
		return t
	}
	return judged{attempt: a, job: j}
}

// broken is an attempt whose files cannot be read: what had been found of it before
// stands.
func broken(r *rundir.Run, e rundir.Entry, n int, err error) judged {
	t := judged{attempt: plan.Attempt{Number: n, Dir: r.AttemptDir(e.ID, n)}, broken: true}
	if old, rerr := readJobVerdict(r, t.attempt.Dir); rerr == nil && old != nil {
		t.job = *old
		return t
	}
	t.job = damaged(r, e, n, err)
	return t
}

// trials are the attempts as a policy sees them.
func trials(attempts []judged) []verdict.Trial {
	out := make([]verdict.Trial, len(attempts))
	for i, t := range attempts {
		out[i] = verdict.Trial{
			Attempt: t.attempt.Number, Trigger: t.attempt.Trigger, Word: t.job.Verdict, ElapsedSeconds: took(t.job),
			Ended: slices.ContainsFunc(t.job.Reasons, func(r verdict.Reason) bool { return isFinal(r.Code) }),
			Short: t.job.Short,
		}
	}
	return out
}

// isFinal says that an attempt which could not be judged for a reason is not made again:
// a person ended it, or it may still appear.
func isFinal(code string) bool {
	return code == verdict.CodeCancelled || code == verdict.CodeNotRun || code == verdict.CodeLaunchUnknown
}

// took is how long the ranks of an attempt ran, in seconds. Where they report none, as
// those without the wrapper, it is by the times of their begin and end, of which
// Kubernetes counts whole seconds: at least one, so that a duration comes to an end.
func took(j report.Job) float64 {
	if j.ElapsedSeconds > 0 {
		return j.ElapsedSeconds
	}
	return max(1, j.FinishedAt.Sub(j.StartedAt.Time).Seconds())
}

// policyOf is how often a job is run, by its attempts.
func policyOf(attempts []judged) verdict.Policy {
	a, _ := planned(attempts)
	return a.Job.Policy
}

// planned is the newest of the attempts whose job file can be read: they are about the
// same job.
func planned(attempts []judged) (plan.Attempt, bool) {
	for i := len(attempts) - 1; i >= 0; i-- {
		if a := attempts[i].attempt; a.Job.ID != "" {
			return a, true
		}
	}
	return plan.Attempt{}, false
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
		j.History, j.Attempts = history(attempts), attempts[len(attempts)-1].job.Attempts
	}
	if s.Word == verdict.Error && !stopped && resumed(r, e, attempts[len(attempts)-1]) {
		s.Word = verdict.Pending // its nodes are kept for it
	}
	if a, _ := planned(attempts); s.Short > 0 && s.Word == verdict.Pass && a.Job.Expect.Strict {
		s.Word, s.Contradicts = verdict.Error, true
	}
	if s.Word == j.Verdict {
		if s.Short > 0 {
			j.Warnings = append(slices.Clip(j.Warnings), verdict.Reason{Code: verdict.CodeContradiction, Subject: e.ID, Message: foundShort(s)})
		}
		return j
	}
	lead := verdict.Reason{Subject: e.ID}
	if j.Rule = verdict.RuleAttempts; s.Word == verdict.Pending {
		j.Rule = verdict.RulePending
	}
	switch {
	case s.Contradicts && s.Short > 0:
		lead.Code, lead.Message = verdict.CodeContradiction, foundShort(s)+"; `assay run --resume` runs it again"
	case s.Contradicts:
		lead.Code, lead.Message = verdict.CodeContradiction, fmt.Sprintf("it passed %s, and declared another time that it does not apply here; a new run judges it anew", howOften(s.Passes))
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
	case !s.Due:
		return "that it was cancelled is lifted"
	case last.Word == verdict.Error:
		return fmt.Sprintf("attempt %d could not be judged, and is made again", last.Attempt)
	case s.Passes < p.Repeats:
		return fmt.Sprintf("it passed %s of %d", howOften(s.Passes), p.Repeats)
	}
	return fmt.Sprintf("it passed for %s of %s", phrase.Seconds(s.ElapsedSeconds), phrase.Seconds(float64(p.DurationSeconds)))
}

// foundShort says that an attempt found the hardware short, and a later one did not.
func foundShort(s verdict.Settled) string {
	return fmt.Sprintf("attempt %d, which could not be judged, found the hardware short, and a later one did not", s.Short)
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
	a, ok := planned(attempts)
	if !ok {
		return a, errors.New("none of its job files can be read")
	}
	a = a.Submitted()
	n, err := r.LastAttempt(a.Job.ID)
	if err != nil {
		return a, err
	}
	a.Number, a.Trigger = n+1, trigger
	a.Dir = r.AttemptDir(a.Job.ID, a.Number)
	a.DurationSeconds = a.Job.Asked(int(math.Ceil(a.Job.Policy.Remaining(trials(attempts)))))
	return a, nil
}

package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"assay/pkg/collect"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/regular"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// Judge rebuilds the evidence of every job from the run directory and judges it.
// It writes nothing, and gives the same result every time.
func Judge(r *rundir.Run) report.Run {
	jobs := make([]report.Job, 0, len(r.Ledger.Jobs))
	for _, e := range r.Ledger.Jobs {
		jobs = append(jobs, judgeJob(r, e))
	}
	return assemble(r, jobs)
}

// assemble puts the verdicts on the jobs together.
func assemble(r *rundir.Run, jobs []report.Job) report.Run {
	h := report.Header{
		RunID: r.Ledger.RunID, Dir: r.Dir, Target: r.Ledger.Target, StartedAt: r.Ledger.CreatedAt,
		Suite: r.Ledger.Suite, Forced: r.Ledger.Forced,
	}
	h.SharedBy, _ = r.SharedBy() // a remark; the glob is a fixed one
	rep := report.New(h, jobs)
	if rep.Pending() == 0 {
		rep.FinishedAt = report.Time{Time: lastEnd(r, jobs).UTC()}
	}
	rep.Pairs = report.NewPairs(jobs, r.Ledger.Nodes, func(id string) verdict.Expectation { return expectationOf(r, id) })
	return rep
}

// expectationOf is what a job is expected to give; nothing, where its job file cannot
// be read, which its verdict tells.
func expectationOf(r *rundir.Run, id string) verdict.Expectation {
	a, err := rundir.ReadAttempt(r.AttemptDir(id, 1))
	if err != nil {
		return verdict.Expectation{}
	}
	return a.Job.Expect
}

// lastEnd is when the target was seen to say that the last job had ended. Like
// the start of the run it is of the observer's clock; the clocks of the ranks'
// hosts may differ from it and from each other.
func lastEnd(r *rundir.Run, jobs []report.Job) time.Time {
	var last time.Time
	for _, j := range jobs {
		// A job whose observations cannot be read has told so already.
		o, err := rundir.LastObservation(filepath.Join(r.Dir, j.Directory))
		if err == nil && o != nil && o.Phase.Over() && o.At.After(last) {
			last = o.At
		}
	}
	return last
}

// Evidence returns what is known of the newest attempt of a job.
func Evidence(r *rundir.Run, e rundir.Entry) (evidence.Evidence, error) {
	a, dir, err := lastAttempt(r, e)
	if err != nil {
		return evidence.Evidence{}, err
	}
	return evidenceOf(r, a, dir)
}

func evidenceOf(r *rundir.Run, a plan.Attempt, dir string) (evidence.Evidence, error) {
	cancels, err := r.ReadCancels()
	if err != nil {
		return evidence.Evidence{}, err
	}
	for _, c := range cancels { // else the job had its verdict by then
		if c.Covers(a.Job.ID, a.Number) {
			return collect.Evidence(dir, a, &c)
		}
	}
	return collect.Evidence(dir, a, nil)
}

// judgeJob judges a job by all attempts at it. Evidence that cannot be read is a
// verdict on this job, and no reason not to judge the others.
func judgeJob(r *rundir.Run, e rundir.Entry) report.Job {
	return fold(r, e, judgeAttempts(r, e, false))
}

// damaged is the verdict on an attempt whose evidence cannot be read.
func damaged(r *rundir.Run, e rundir.Entry, n int, err error) report.Job {
	v := verdict.Verdict{
		Word: verdict.Error, Rule: verdict.RuleUnreadable,
		Reasons: []verdict.Reason{{Code: verdict.CodeEvidenceUnreadable, Subject: e.ID, Message: "the evidence of the job cannot be read: " + err.Error()}},
	}
	return report.NewJob(report.JobHeader{
		Name: e.Key, Key: e.Key, ID: e.ID, Attempts: n, Directory: r.Rel(r.AttemptDir(e.ID, max(n, 1))), Nodes: e.Nodes,
	}, evidence.Evidence{}, v)
}

// judgeAttempt judges one attempt by what it left.
func judgeAttempt(r *rundir.Run, a plan.Attempt) (report.Job, error) {
	ev, err := evidenceOf(r, a, a.Dir)
	if err != nil {
		return report.Job{}, err
	}
	j := report.NewJob(headerOf(r, a), ev, verdict.Judge(a.Job.Expect, ev))
	old, err := readJobVerdict(r, a.Dir)
	if err != nil {
		return report.Job{}, err
	}
	if old != nil && weaker(j, *old) {
		return *old, nil
	}
	return j, nil
}

func headerOf(r *rundir.Run, a plan.Attempt) report.JobHeader {
	job := a.Job
	h := report.JobHeader{
		Name: job.Model, Key: job.Key, ID: job.ID, Scope: job.Scope, Attempts: a.Number, Directory: r.Rel(a.Dir),
		Test: job.Test, Variant: job.Variant, Round: job.Round, Optional: job.Optional, Baseline: job.Expect.Baseline, Nodes: job.Nodes,
		Expect: job.Expect,
	}
	if g := job.Gates; g != nil {
		h.Gates = &report.Gates{File: g.File, Digest: g.Digest, Hardware: g.Hardware}
	}
	return h
}

// weaker says whether a new verdict rests on less evidence than the old one: a
// verdict, once final, is not replaced because a file has become unreadable.
//
// Neither is it by a request to end the run that came later, or when what the target
// said of its end is lost.
func weaker(now, old report.Job) bool {
	return now.Verdict == verdict.Pending || ended(now) < ended(old) || unreadable(now) > unreadable(old) ||
		cancelled(now) && !cancelled(old) || state(now) == "" && state(old) != ""
}

// state is what the target said last.
func state(j report.Job) string {
	if j.Scheduler == nil {
		return ""
	}
	return j.Scheduler.State
}

func cancelled(j report.Job) bool {
	return slices.ContainsFunc(slices.Concat(j.Reasons, j.Warnings), func(r verdict.Reason) bool { return r.Code == verdict.CodeCancelled })
}

// unreadable counts what of the evidence cannot be read.
func unreadable(j report.Job) int {
	n := 0
	for _, r := range slices.Concat(j.Reasons, j.Warnings) {
		if r.Code == verdict.CodeEvidenceUnreadable {
			n++
		}
	}
	return n
}

func ended(j report.Job) int {
	n := 0
	for _, r := range j.Ranks {
		if r.State == evidence.RankEnded {
			n++
		}
	}
	return n
}

// maxVerdict bounds a verdict.json, in bytes; one rank takes about 200.
const maxVerdict = 256 << 20

// jobVerdict is the content of an attempt's verdict.json: the verdict with the
// identity of the attempt it is about.
type jobVerdict struct {
	RunID          string     `json:"run_id"`
	Nonce          string     `json:"nonce"`
	ManifestDigest string     `json:"manifest_digest"`
	Attempt        int        `json:"attempt"`
	Job            report.Job `json:"job"`
}

func newJobVerdict(r *rundir.Run, attemptDir string, j report.Job) jobVerdict {
	l := r.Ledger
	n, _ := strconv.Atoi(filepath.Base(attemptDir)) // 0 is no attempt
	return jobVerdict{RunID: l.RunID, Nonce: l.Nonce, ManifestDigest: l.ManifestDigest, Attempt: n, Job: j}
}

// readJobVerdict returns the final verdict on an attempt, or nil when there is
// none yet. A file that cannot be parsed, or that is about another attempt, is
// none: it can be made again from the evidence.
func readJobVerdict(r *rundir.Run, attemptDir string) (*report.Job, error) {
	data, err := regular.ReadFile(filepath.Join(attemptDir, rundir.VerdictFile), maxVerdict)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, regular.ErrNotRegular) || errors.Is(err, regular.ErrTooLarge) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var v jobVerdict
	if json.Unmarshal(data, &v) != nil || v.Job.Verdict == verdict.Pending || v.Job.Verdict == verdict.Unknown {
		return nil, nil
	}
	job := v.Job
	want := newJobVerdict(r, attemptDir, job)
	if v.RunID != want.RunID || v.Nonce != want.Nonce || v.ManifestDigest != want.ManifestDigest || v.Attempt != want.Attempt {
		return nil, nil
	}
	return &job, nil
}

// writeAttempt keeps the final verdict on an attempt.
func writeAttempt(r *rundir.Run, t judged) error {
	if t.broken {
		return nil
	}
	return writeJobVerdict(r, t.job)
}

// writeJobVerdict keeps a final verdict beside its evidence. A job that has not
// ended has none, and one whose verdict is there already is left alone.
func writeJobVerdict(r *rundir.Run, j report.Job) error {
	if j.Verdict == verdict.Pending {
		return nil
	}
	dir := filepath.Join(r.Dir, j.Directory)
	data, err := json.MarshalIndent(newJobVerdict(r, dir, j), "", "  ")
	if err != nil {
		return err
	}
	return keep(filepath.Join(dir, rundir.VerdictFile), append(data, '\n'), r.FileMode())
}

// keep makes a file durable unless it has these bytes already.
func keep(path string, data []byte, mode fs.FileMode) error {
	if old, err := regular.ReadFile(path, maxVerdict); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return durable.WriteFile(path, data, mode)
}

package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"assay/pkg/collect"
	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// Judge rebuilds the evidence of every job from the run directory and judges it.
// It writes nothing, and gives the same result every time.
func Judge(r *rundir.Run) (report.Run, error) {
	jobs := make([]report.Job, 0, len(r.Ledger.Jobs))
	for _, e := range r.Ledger.Jobs {
		j, err := judgeJob(r, e)
		if err != nil {
			return report.Run{}, err
		}
		jobs = append(jobs, j)
	}
	return assemble(r, jobs)
}

// assemble puts the verdicts on the jobs together.
func assemble(r *rundir.Run, jobs []report.Job) (report.Run, error) {
	h := report.Header{RunID: r.Ledger.RunID, Dir: r.Dir, Target: r.Ledger.Target, StartedAt: r.Ledger.CreatedAt}
	rep := report.New(h, jobs)
	if pending(rep) > 0 {
		return rep, nil
	}
	var err error
	h.FinishedAt, err = lastEnd(r, jobs)
	return report.New(h, jobs), err
}

// lastEnd is when the target was seen to say that the last job had ended. Like
// the start of the run it is of the observer's clock; the clocks of the ranks'
// hosts may differ from it and from each other.
func lastEnd(r *rundir.Run, jobs []report.Job) (time.Time, error) {
	var last time.Time
	for _, j := range jobs {
		o, err := rundir.LastObservation(filepath.Join(r.Dir, j.Directory))
		if err != nil {
			return last, err
		}
		if o != nil && o.Phase == evidence.PhaseEnded && o.At.After(last) {
			last = o.At
		}
	}
	return last, nil
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
	cancel, err := r.ReadCancel()
	if err != nil {
		return evidence.Evidence{}, err
	}
	return collect.Evidence(dir, a, cancel)
}

func judgeJob(r *rundir.Run, e rundir.Entry) (report.Job, error) {
	a, dir, err := lastAttempt(r, e)
	if err != nil {
		return report.Job{}, err
	}
	ev, err := evidenceOf(r, a, dir)
	if err != nil {
		return report.Job{}, fmt.Errorf("job %s: %w", e.ID, err)
	}
	v := verdict.Judge(a.Job.Expect, ev)
	j := report.NewJob(report.JobHeader{
		Name: a.Job.Model, Key: a.Job.Key, ID: a.Job.ID, Scope: a.Job.Scope, Attempts: a.Number, Directory: r.Rel(dir),
	}, ev, v)
	old, err := readJobVerdict(dir)
	if err != nil {
		return report.Job{}, err
	}
	if old != nil && weaker(j, *old) {
		j = *old
	}
	return j, nil
}

// weaker says whether a new verdict rests on less evidence than the old one: a
// verdict, once final, is not replaced because a file has become unreadable.
func weaker(now, old report.Job) bool {
	return now.Verdict == verdict.Pending || ended(now) < ended(old) || unreadable(now) > unreadable(old)
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

// readJobVerdict returns the final verdict on an attempt, or nil when there is
// none yet.
func readJobVerdict(attemptDir string) (*report.Job, error) {
	path := filepath.Join(attemptDir, rundir.VerdictFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var j report.Job
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &j, nil
}

// writeJobVerdict keeps a final verdict beside its evidence. A job that has not
// ended has none, and one whose verdict is there already is left alone.
func writeJobVerdict(r *rundir.Run, j report.Job) error {
	if j.Verdict == verdict.Pending {
		return nil
	}
	data, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	return keep(filepath.Join(r.Dir, j.Directory, rundir.VerdictFile), append(data, '\n'), r.FileMode())
}

// keep makes a file durable unless it has these bytes already.
func keep(path string, data []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return durable.WriteFile(path, data, mode)
}

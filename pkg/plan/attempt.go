package plan

import (
	"path"
	"strconv"

	"assay/pkg/evidence"
	"assay/pkg/verdict"
)

// AttemptVersion is the version of the format of the job file.
const AttemptVersion = 1

// Attempt is a job as it is handed to a target: with the identity of the run it
// belongs to. It is the content of the job file, job.json.
type Attempt struct {
	Version        int    `json:"version"`
	RunID          string `json:"run_id"`
	Nonce          string `json:"nonce"`
	ManifestDigest string `json:"manifest_digest"`
	Number         int    `json:"attempt"`
	Dir            string `json:"dir"`           // absolute attempt directory
	LogLimit       int64  `json:"log_limit"`     // bytes kept of each stream; 0: all
	KillGraceMS    int    `json:"kill_grace_ms"` // between TERM and KILL, for a target whose own grace is shorter; 0: the default of 10 s
	Job            Job    `json:"job"`

	// Trigger says why the attempt was made.
	Trigger verdict.Trigger `json:"trigger,omitempty"`
	// DurationSeconds is for how long the workload is asked to go on; 0: it is not.
	DurationSeconds int `json:"duration_seconds,omitempty"`

	// RankBinary is the assay that wraps the ranks, an absolute path on every node;
	// empty: the target's own choice.
	RankBinary string `json:"rank_binary,omitempty"`
	// SubmittedAs is the number of the attempt that was submitted, for an attempt
	// that is a restart by the scheduler; 0 for one that was submitted itself.
	SubmittedAs int `json:"submitted_as,omitempty"`
}

// Restart is the attempt that a scheduler began when it started the job again
// for the n-th time. It was not submitted itself. Restart 0 is the attempt.
func (a Attempt) Restart(n int) Attempt {
	if n <= 0 {
		return a
	}
	if a.SubmittedAs == 0 {
		a.SubmittedAs = a.Number
	}
	a.Number = a.SubmittedAs + n
	a.Dir = path.Join(path.Dir(a.Dir), strconv.Itoa(a.Number))
	return a
}

// Identity is what the markers of a rank of this attempt carry.
func (a Attempt) Identity(rank int) evidence.Identity {
	return evidence.Identity{
		RunID: a.RunID, Nonce: a.Nonce, ManifestDigest: a.ManifestDigest,
		Job: a.Job.ID, Attempt: a.Number, Rank: rank, WorldSize: a.Job.WorldSize,
	}
}

// Submitted is the attempt that was submitted: this one, or the one that it is a
// restart of.
func (a Attempt) Submitted() Attempt {
	if a.SubmittedAs == 0 {
		return a
	}
	a.Number, a.SubmittedAs = a.SubmittedAs, 0
	a.Dir = path.Join(path.Dir(a.Dir), strconv.Itoa(a.Number))
	return a
}

// Asked is for how many seconds a workload is asked to go on when it has to pass for
// so many more: within four fifths of its time limit, so that it can end by itself.
func (j Job) Asked(remaining int) int {
	if j.TimeoutSeconds > 0 {
		return min(remaining, within(j.TimeoutSeconds))
	}
	return remaining
}

// within is how many whole seconds lie within four fifths of a time limit.
func within(limit int) int { return limit * 4 / 5 }

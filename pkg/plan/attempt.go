package plan

import "assay/pkg/evidence"

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
}

// Identity is what the markers of a rank of this attempt carry.
func (a Attempt) Identity(rank int) evidence.Identity {
	return evidence.Identity{
		RunID: a.RunID, Nonce: a.Nonce, ManifestDigest: a.ManifestDigest,
		Job: a.Job.ID, Attempt: a.Number, Rank: rank, WorldSize: a.Job.WorldSize,
	}
}

package run

import (
	"path/filepath"

	"assay/pkg/evidence"
	"assay/pkg/report"
	"assay/pkg/rundir"
)

// JudgedEvidence returns what is known of the attempt that decides the verdict on a job,
// which need not be the newest. Where that cannot be read, it is of the newest.
func JudgedEvidence(r *rundir.Run, j report.Job) (evidence.Evidence, error) {
	dir := filepath.Join(r.Dir, j.Directory)
	a, err := rundir.ReadAttempt(dir)
	if err != nil || a.Job.ID != j.ID {
		return Evidence(r, rundir.Entry{ID: j.ID, Key: j.Key})
	}
	return evidenceOf(r, a, dir)
}

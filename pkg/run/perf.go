package run

import (
	"fmt"

	"assay/pkg/manifest"
	"assay/pkg/perfcsv"
	"assay/pkg/report"
	"assay/pkg/rundir"
)

// PerfRows returns the rows of perf.csv that a run gives: at least one for every
// attempt that has ended.
func PerfRows(r *rundir.Run, rep report.Run) ([]perfcsv.Row, error) {
	data, err := r.Manifest()
	if err != nil {
		return nil, err
	}
	m, err := manifest.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s of the run: %w", rundir.ManifestFile, err)
	}
	entries := make(map[string]manifest.Entry, len(m.Models))
	for _, e := range m.Models {
		entries[e.Key] = e
	}
	var rows []perfcsv.Row
	for _, entry := range r.Ledger.Jobs {
		for _, t := range judgeAttempts(r, entry, true) {
			e := entries[t.job.Key]
			f := perfcsv.FactsOf(e.Card, t.attempt.Job) // without its job file a job still has its card
			fillImage(&f, m.Images[t.job.Key])
			f.GitCommit = e.GitCommit
			f.Pipeline, f.BuildNumber = r.Ledger.Pipeline, r.Ledger.BuildNumber
			rows = append(rows, perfcsv.Rows(rep, t.job, f)...)
		}
	}
	return rows, nil
}

func fillImage(f *perfcsv.Facts, image manifest.Image) {
	f.BaseDocker, f.DockerSHA = image.BaseDocker, image.DockerSHA
	f.BuildDuration = perfcsv.Number(image.BuildDuration)
	if image.Dockerfile != "" {
		f.DockerFile = image.Dockerfile
	}
}

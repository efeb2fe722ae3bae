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
	all := make([][]judged, len(r.Ledger.Jobs))
	for i, e := range r.Ledger.Jobs {
		all[i] = judgeAttempts(r, e, true)
	}
	rows, _, err := perfRows(r, rep, all, nil)
	return rows, err
}

// perfRows are the rows of those of all attempts, by job of the ledger, that are not among
// those which are in already; and the names of all.
func perfRows(r *rundir.Run, rep report.Run, all [][]judged, in []string) (rows []perfcsv.Row, names []string, err error) {
	data, err := r.Manifest()
	if err != nil {
		return nil, nil, err
	}
	m, err := manifest.Decode(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s of the run: %w", rundir.ManifestFile, err)
	}
	known := make(map[string]bool, len(in))
	for _, name := range in {
		known[name] = true
	}
	entries := make(map[string]manifest.Entry, len(m.Models))
	for _, e := range m.Models {
		entries[e.Key] = e
	}
	for i, entry := range r.Ledger.Jobs {
		for _, t := range all[i] {
			name := fmt.Sprintf("%s/%d", entry.ID, t.attempt.Number)
			names = append(names, name)
			if known[name] {
				continue
			}
			e := entries[t.job.Key]
			f := perfcsv.FactsOf(e.Card, t.attempt.Job) // without its job file a job still has its card
			fillImage(&f, m.Images[t.job.Key])
			f.GitCommit = e.GitCommit
			f.Pipeline, f.BuildNumber = r.Ledger.Pipeline, r.Ledger.BuildNumber
			rows = append(rows, perfcsv.Rows(rep, t.job, f)...)
		}
	}
	return rows, names, nil
}

func fillImage(f *perfcsv.Facts, image manifest.Image) {
	f.BaseDocker, f.DockerSHA = image.BaseDocker, image.DockerSHA
	f.BuildDuration = perfcsv.Number(image.BuildDuration)
	if image.Dockerfile != "" {
		f.DockerFile = image.Dockerfile
	}
}

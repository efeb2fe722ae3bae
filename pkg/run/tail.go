package run

import (
	"path/filepath"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/logtail"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// Tails returns the last lines of the streams of the rank that failed first, its
// stderr before its stdout; none when no rank failed or nothing was written.
func Tails(r *rundir.Run, j report.Job, e evidence.Evidence, lines int) []report.LogTail {
	rank, failed := verdict.FirstFailing(e)
	if !failed {
		return nil
	}
	var tails []report.LogTail
	for _, stream := range []string{rundir.StderrFile, rundir.StdoutFile} {
		text, more := logtail.Last(filepath.Join(rundir.RankDir(filepath.Join(r.Dir, j.Directory), rank), stream), lines)
		if len(text) > 0 {
			tails = append(tails, report.LogTail{Job: j.ID, Rank: rank, Stream: stream, Text: strings.Join(text, "\n"), Cut: more})
		}
	}
	return tails
}

// reportTails are the tails that the HTML page shows: of every job that did not
// pass.
func reportTails(r *rundir.Run, rep report.Run) ([]report.LogTail, error) {
	const lines = 50
	var tails []report.LogTail
	for _, j := range rep.Jobs {
		if j.Verdict == verdict.Pass {
			continue
		}
		e, err := JudgedEvidence(r, j)
		if err != nil {
			return nil, err
		}
		tails = append(tails, Tails(r, j, e, lines)...)
	}
	return tails, nil
}

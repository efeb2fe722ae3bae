package run

import (
	"fmt"

	"assay/pkg/phrase"
	"assay/pkg/report"
	"assay/pkg/signame"
	"assay/pkg/verdict"
)

// Describe says what a signal did to the jobs of a run.
func (o Outcome) Describe(rep report.Run, id string) string {
	dropped, judged := 0, 0
	for _, j := range rep.Jobs {
		switch {
		case j.Verdict == verdict.Pending:
		case j.StartedAt.IsZero():
			dropped++
		default:
			judged++
		}
	}
	text := fmt.Sprintf("stopped by %s: %s ended", signame.Of(o.Signal), phrase.Count(judged, "job"))
	if dropped > 0 {
		text += fmt.Sprintf(", %s never started", phrase.Count(dropped, "job"))
	}
	if o.Detached {
		return text + fmt.Sprintf(", %s still running; go on with: assay attach %s", phrase.Count(o.Running, "job"), id)
	}
	return text + ", none is running"
}

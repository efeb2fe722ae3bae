package run

import (
	"fmt"

	"assay/pkg/phrase"
	"assay/pkg/report"
	"assay/pkg/signame"
	"assay/pkg/verdict"
)

func count(n int, noun string) string { return phrase.Count(n, noun) }

// Describe says what a signal did to the jobs of a run.
func (o Outcome) Describe(rep report.Run, id string) string {
	dropped, judged := 0, 0
	for _, j := range rep.Jobs {
		switch {
		case j.Verdict == verdict.Pending:
		case len(j.Nodes) == 0:
			dropped++
		default:
			judged++
		}
	}
	text := fmt.Sprintf("stopped by %s: %s ended", signame.Of(o.Signal), count(judged, "job"))
	if dropped > 0 {
		text += fmt.Sprintf(", %s never started", count(dropped, "job"))
	}
	if o.Detached {
		return text + fmt.Sprintf(", %s still running; go on with: assay attach %s", count(o.Running, "job"), id)
	}
	return text + ", none is running"
}

package run

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"assay/pkg/report"
	"assay/pkg/verdict"
)

// SignalName is the name of a signal, such as "SIGINT".
func SignalName(sig os.Signal) string {
	if s, ok := sig.(syscall.Signal); ok {
		if name := unix.SignalName(s); name != "" {
			return name
		}
	}
	return sig.String()
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

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
	text := fmt.Sprintf("stopped by %s: %s ended", SignalName(o.Signal), count(judged, "job"))
	if dropped > 0 {
		text += fmt.Sprintf(", %s never started", count(dropped, "job"))
	}
	if o.Detached {
		return text + fmt.Sprintf(", %s still running; go on with: assay attach %s", count(o.Running, "job"), id)
	}
	return text + ", none is running"
}

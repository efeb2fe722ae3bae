package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/phrase"
)

// placement says where a job runs, and what has to be over before.
func (d *description) placement(j Job) {
	if len(j.Nodes) > 0 {
		d.line("on", strings.Join(j.Nodes, ", "))
	}
	if j.Test == "" {
		return
	}
	test := j.Test
	for _, axis := range slices.Sorted(maps.Keys(j.Variant)) {
		test += ", " + axis + "=" + j.Variant[axis]
	}
	if j.Optional {
		test += " (optional)"
	}
	d.line("test", test)
	order := fmt.Sprintf("stage %d", j.Stage)
	if j.Round > 0 {
		order += fmt.Sprintf(", round %d of its pairs", j.Round)
	}
	if j.StopOnFail {
		order += "; no later test begins when it fails"
	}
	d.line("order", order)
}

// policy says how often a job runs.
func (d *description) policy(j Job) {
	var parts []string
	p := j.Policy
	if p.Repeats > 1 {
		parts = append(parts, "has to pass "+strconv.Itoa(p.Repeats)+" times")
	}
	if p.DurationSeconds > 0 {
		parts = append(parts, "has to pass for "+phrase.Seconds(float64(p.DurationSeconds)))
	}
	if p.Retries > 0 {
		parts = append(parts, "is made again up to "+phrase.Count(p.Retries, "time")+" when it could not be judged")
	}
	if len(parts) > 0 {
		d.line("attempts", strings.Join(parts, "; "))
	}
}

// readiness says what ranks wait for.
func (d *description) readiness(r *Ready) {
	if r == nil {
		return
	}
	what := map[string]string{ReadyStarted: "its workload has started", ReadyFile: "it has made $ASSAY_READY_FILE", ReadyLine: "its output has a line that matches " + strconv.Quote(r.Pattern)}[r.Kind]
	if r.Kind == ReadyTCP {
		what = "something listens on its port MASTER_PORT"
		if r.Port > 0 {
			what = "something listens on its port " + strconv.Itoa(r.Port)
		}
	}
	d.line("waits", fmt.Sprintf("ranks other than 0 wait until %s, for up to %s", what, phrase.Seconds(float64(r.TimeoutSeconds))))
	if r.LingerSeconds > 0 {
		d.line("lingers", fmt.Sprintf("the server may go on for %s after its client has ended", phrase.Seconds(float64(r.LingerSeconds))))
	}
}

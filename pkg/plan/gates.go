package plan

import (
	"fmt"
	"slices"
	"strconv"

	"assay/pkg/manifest"
	"assay/pkg/threshold"
)

// judgedBy are the thresholds that an entry is judged by, none in a baseline. Those that
// nothing can satisfy are refused: they would fail every node, and look like its fault.
func (p *planner) judgedBy(e manifest.Entry, t test) ([]threshold.Threshold, *Gates) {
	if t.baseline {
		return nil, nil
	}
	thresholds, gates := p.gates(e, t)
	values := 0 // of the file
	together := threshold.Together{}
	for _, gate := range thresholds {
		own := slices.Index(e.Thresholds, gate)
		where := "manifest: " + e.Pointer("thresholds", strconv.Itoa(own))
		if own < 0 {
			values++
			where = fmt.Sprintf("%s: hardware %s, test %s, threshold %d", gates.File, gates.Hardware, t.name, values)
		}
		for _, fault := range threshold.Malformed(gate) {
			p.fail(where, fmt.Errorf("the threshold cannot be satisfied: %s", fault.Message))
		}
		if why := together.Add(gate); why != "" {
			p.fail(where, fmt.Errorf("the thresholds on %s cannot be satisfied together: %s", gate.Metric, why))
		}
	}
	return thresholds, gates
}

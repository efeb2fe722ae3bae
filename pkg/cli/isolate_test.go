package cli

import (
	"context"
	"fmt"
	"testing"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// still is a target that does nothing.
type still struct{ queues bool }

func (still) Name() string                                                      { return "still" }
func (still) Render(plan.Attempt) ([]deploy.File, error)                        { return nil, nil }
func (still) Submit(context.Context, plan.Attempt) (h deploy.Handle, err error) { return h, nil }
func (still) Cancel(context.Context, deploy.Handle) error                       { return nil }
func (s still) Queues() bool                                                    { return s.queues }
func (still) Observe(context.Context, []deploy.Handle) ([]evidence.Observation, error) {
	return nil, nil
}

func TestPartsAtTheSameTime(t *testing.T) {
	halves := [][]string{{"a", "b", "c"}, {"d", "e"}}
	for _, tt := range []struct {
		name   string
		ledger rundir.Ledger
		queues bool
		jobs   int
		want   string
	}{
		{"one job at once", rundir.Ledger{Concurrency: 1}, false, 0, "[[[a b c]] [[d e]]]"},
		{"two jobs at once", rundir.Ledger{Concurrency: 2}, false, 0, "[[[a b c] [d e]]]"},
		{"a limit that both keep", rundir.Ledger{Concurrency: 1, MaxNodes: 5}, false, 0, "[[[a b c] [d e]]]"},
		{"a limit that one keeps", rundir.Ledger{Concurrency: 9, MaxNodes: 4}, false, 2, "[[[a b c]] [[d e]]]"},
		{"a queue", rundir.Ledger{Concurrency: 1}, true, 0, "[[[a b c] [d e]]]"},
		{"one by word", rundir.Ledger{Concurrency: 2, MaxNodes: 5}, true, 1, "[[[a b c]] [[d e]]]"},
		{"two by word", rundir.Ledger{Concurrency: 1}, false, 2, "[[[a b c] [d e]]]"},
	} {
		s := isolation{of: &rundir.Run{Ledger: tt.ledger}, target: still{tt.queues}, flags: isolateFlags{jobs: tt.jobs, jobsSet: tt.jobs > 0}}
		if got := fmt.Sprint(s.batches(halves)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

package verdict

import (
	"slices"
	"testing"

	"assay/pkg/metric"
	"assay/pkg/threshold"
)

func TestDeclared(t *testing.T) {
	x := Expectation{
		Metrics:    []metric.Spec{{Name: "tps"}, {Name: "busbwGbps"}},
		Thresholds: []threshold.Threshold{{Metric: "busbwGbps"}, {Metric: "m/performance"}, {Metric: "tps"}},
	}
	if got := x.Declared(); !slices.Equal(got, []string{"tps", "busbwGbps", "m/performance"}) {
		t.Errorf("%q", got)
	}
	if got := x.keyNames(); !slices.Equal(got, []string{"tps", "busbwGbps"}) {
		t.Errorf("key=value names %q", got)
	}
}

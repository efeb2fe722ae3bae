package lint

import (
	"fmt"
	"testing"
)

// A threshold on one row of the results names the row's model and the metric.
func TestThresholdOnARow(t *testing.T) {
	for name, want := range map[string]int{
		"a/tps": 0, "a/b/tps": 0, "a/performance": 0, "performance": 0, "tps": 0, "a/other": 1, "other": 1,
	} {
		text := fmt.Sprintf(`{"built_images": {"a": {}}, "context": {}, "built_models": {"a": {"name": "a", "command": ["true"],
			"multiple_results": "r.csv", "metrics": [{"name": "tps"}], "thresholds": [{"metric": %q, "min": 1}]}}}`, name)
		if res := Bytes("m.json", []byte(text), Options{}); len(res.Findings) != want {
			t.Errorf("%s: %v, want %d findings", name, res.Findings, want)
		}
	}
}

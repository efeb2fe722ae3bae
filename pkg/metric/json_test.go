package metric

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJSON(t *testing.T) {
	var cases []struct {
		Name     string   `json:"name"`
		Text     string   `json:"text"`
		Want     []string `json:"want"`
		Problems []string `json:"problems"`
	}
	load(t, "testdata/json.json", &cases)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			readings, problems := ParseJSON([]byte(c.Text), []string{"a", "b"}, "metrics.json")
			if diff := cmp.Diff(c.Want, describe(readings)); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
			checkProblems(t, c.Problems, problems)
		})
	}
}

func TestJSONMetricsMayBeAMetric(t *testing.T) {
	readings, problems := ParseJSON([]byte(`{"metrics": 3}`), []string{"metrics"}, "m")
	if diff := cmp.Diff([]string{"metrics.json metrics=3"}, describe(readings)); diff != "" || len(problems) > 0 {
		t.Fatal(diff, problems)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"metrics":{"a":1e400,"b":"n/a"}}`, `[`, `{"a":NaN}`, "\ufeff{}", `{"metrics":{"a":1}} x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		readings, _ := ParseJSON(data, []string{"a", "b"}, "m")
		checkReadings(t, readings)
	})
}

package run

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/metric"
	"assay/pkg/report"
	"assay/pkg/verdict"
)

func TestCheckMetric(t *testing.T) {
	g := madeGroup(t)
	g.attempt.Job.Expect.Contract = verdict.ContractAcceptance
	g.Judged.Measurements = []report.Measurement{{Name: "tokens", Model: "m", Source: metric.SourceResults}}
	g.Judged.History = []report.Attempt{{Measurements: []report.Measurement{{Name: "early"}, {Name: "p99", Model: "m", Source: metric.SourceMetricsJSON}}}}
	const has = "; it has: busbwGBs, latencyUs, tokens, early, m/p99"
	for name, want := range map[string]string{
		"busbwGBs": "", "latencyUs": "", "tokens": "", "performance": "", "m/performance": "", "early": "", "m/p99": "",
		"busbwGbs": "--metric busbwGbs: job g declares no such metric and did not measure it; did you mean busbwGBs?" + has,
		"nosuch":   "--metric nosuch: job g declares no such metric and did not measure it" + has,
		"p99":      "--metric p99: job g declares no such metric and did not measure it" + has,
	} {
		got := ""
		if err := g.CheckMetric(name); err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	g.Judged.Measurements, g.Judged.History, g.attempt.Job.Expect.Thresholds = nil, nil, nil
	if err := g.CheckMetric("performance"); err == nil || err.Error() != "--metric performance: job g declares no such metric and did not measure it, nor any other" {
		t.Error(err)
	}
	g.attempt.Job.Expect.Contract = verdict.ContractBenchmark
	if err := g.CheckMetric("performance"); err != nil {
		t.Errorf("a benchmark may print it: %v", err)
	}
	for i := range 20 {
		g.Judged.Measurements = append(g.Judged.Measurements, report.Measurement{Name: fmt.Sprintf("v%02d", i)})
	}
	want := "--metric x: job g declares no such metric and did not measure it; it has: v00, v01, v02, v03, v04, v05, v06, v07, v08, v09, v10, v11 and 8 more"
	if err := g.CheckMetric("x"); err == nil || err.Error() != want {
		t.Error(err)
	}
}

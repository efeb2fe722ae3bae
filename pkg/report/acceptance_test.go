package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

// acceptedRun is a run of one job with a word, a violation and a threshold that was
// not evaluated.
func acceptedRun() Run {
	value, rank := 12.5, 2
	e := evidence.Evidence{Job: "probe", Attempt: 1, Ranks: []evidence.Rank{ended(0, "node-a", 1, 3)}}
	e.Ranks[0].Said = "bad \x1b[31mblock\xff"
	return New(Header{RunID: "r1", Dir: "runs/r1", Target: "local", StartedAt: at(0)}, []Job{NewJob(JobHeader{Name: "probe", Key: "probe", ID: "probe", Scope: "node", Attempts: 1}, e, verdict.Verdict{
		Word: verdict.Fail, Rule: verdict.RuleFellShort,
		Reasons: []verdict.Reason{{Code: verdict.CodeThreshold, Subject: "linkGbps", Message: "linkGbps is 12.5 Gbit/s, below the minimum of 100"}},
		Measurements: []metric.Measurement{
			{Name: "stage", Text: "done\xff", Label: true, Source: metric.SourceKeyValue},
			{Name: "mode", Text: "fast", Label: true, Source: metric.SourceKeyValue},
			{Name: "linkGbps", Value: 12.5, Text: "12.50", Unit: "Gbit/s", Source: metric.SourceKeyValue},
			{Name: "wordy", Value: math.NaN(), Label: true, Source: metric.SourceKeyValue},
		},
		Violations: []threshold.Violation{
			{Code: verdict.CodeThreshold, Subject: "linkGbps", Message: "linkGbps is low", Cause: threshold.CauseMeasurement, Metric: "linkGbps", Value: &value, Text: "12.50\xff", Bound: "min 100", Unit: "Gbit/s", Rank: &rank, Node: "node3\xff"},
			{Code: verdict.CodeMetricAbsent, Subject: "eccErrors", Message: "eccErrors was not reported", Cause: threshold.CauseEvidence, Metric: "eccErrors", Bound: "equal 0", Note: "none is tolerated"},
		},
		NotEvaluated: []threshold.NotEvaluated{{Metric: "powerW", Bound: "max 700", Message: "powerW was reported as n/a, and would have to be at most 700", Unit: "W"}},
	})})
}

func TestAcceptedRunFollowsTheSchema(t *testing.T) {
	run := acceptedRun()
	followsSchema(t, run)
	text, err := Encode(run)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(text)
	if err != nil || len(back.Jobs[0].Violations) != 2 || *back.Jobs[0].Violations[0].Value != 12.5 || back.Jobs[0].Violations[1].Value != nil || len(back.Jobs[0].NotEvaluated) != 1 {
		t.Errorf("%+v, %v", back.Jobs, err)
	}
	if v := back.Jobs[0].Violations; v[0].Rank == nil || *v[0].Rank != 2 || v[0].Node != "node3\ufffd" || v[1].Rank != nil || bytes.Count(text, []byte(`"rank": 2`)) != 1 {
		t.Errorf("%s", text)
	}
	for _, m := range back.Jobs[0].Measurements {
		if m.Label != (m.Value == nil) {
			t.Errorf("%+v", m)
		}
	}
}

// A threshold that was not evaluated is told wherever the verdict is, and words come
// after numbers where only a few fit.
func TestNotEvaluatedIsTold(t *testing.T) {
	run := acceptedRun()
	var table, why bytes.Buffer
	if err := Text(&table, run, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Explain(&why, run, run.Jobs[0], evidence.Evidence{Ranks: []evidence.Rank{{Said: "bad block"}}}, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not evaluated: powerW was reported as n/a, and would have to be at most 700\n", "linkGbps 12.50 Gbit/s, stage \"done\ufffd\", +2 more"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is not in\n%s", want, table.String())
		}
	}
	for _, want := range []string{"not evaluated:\n  powerW was reported as n/a", "mode \"fast\" (from key_value)", "said last: \"bad block\""} {
		if !strings.Contains(why.String(), want) {
			t.Errorf("%q is not in\n%s", want, why.String())
		}
	}
}

package report

import (
	"bytes"
	"strings"
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
	"assay/pkg/verdict"

	"github.com/google/go-cmp/cmp"
)

// What a verdict is worth is said where it is explained.
func TestExplainCircumstances(t *testing.T) {
	run := Run{RunID: "r", Target: "local", Forced: []string{"/runs/other"}, SharedBy: []string{"late"}}
	job := Job{
		Name: "net", Verdict: verdict.Pass, Baseline: true, Optional: true, Gates: &Gates{File: "t.yaml", Digest: "sha256:1", Hardware: "mi300x"},
	}
	text := string(render(t, func(b *bytes.Buffer) error {
		return Explain(b, run, job, evidence.Evidence{Attempt: 1}, nil, Options{})
	}))
	want := []string{
		"run r on local, attempt 1, scope ",
		"a baseline: nothing was gated, so this is no acceptance",
		"optional: it does not decide the verdict on the run",
		"thresholds: t.yaml, hardware mi300x (sha256:1)",
		"other runs were started on some of its nodes meanwhile (late)",
		"forced: other runs used some of the nodes at the same time (/runs/other)",
		"",
	}
	lines := strings.Split(text, "\n")
	if len(lines) < len(want)+1 {
		t.Fatal(text)
	}
	if d := cmp.Diff(want, lines[1:len(want)+1]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if strings.Contains(text, "attempts:") {
		t.Errorf("attempts of a job with one:\n%s", text)
	}
}

func TestExplainAttempts(t *testing.T) {
	attempt := func(n int, w verdict.Word) Attempt {
		a := Attempt{Attempt: n, Verdict: w, Directory: "jobs/net/" + string(rune('0'+n))}
		if n > 1 {
			a.Trigger = verdict.TriggerRetry
		}
		if w != verdict.Pass {
			a.Reasons = []verdict.Reason{{Message: "it broke"}}
		}
		return a
	}
	together := Job{
		Verdict: verdict.Error, Rule: verdict.RuleAttempts, Reasons: []verdict.Reason{{Message: "it passed once, and then declared that it does not apply here"}},
		History: []Attempt{attempt(1, verdict.Pass), attempt(2, verdict.Skip)}, Directory: "jobs/net/2",
	}
	for name, tt := range map[string]struct {
		job  Job
		want []string
	}{
		"one": {Job{History: []Attempt{attempt(1, verdict.Pass)}}, nil},
		"together": {together, []string{
			"attempt 1: PASS", "attempt 2 (retry): SKIP, it broke", "together: ERROR, since it passed once, and then declared that it does not apply here",
		}},
		"an early FAIL": {Job{Verdict: verdict.Fail, History: []Attempt{attempt(1, verdict.Fail), attempt(2, verdict.Pass)}, Directory: "jobs/net/1"}, []string{
			"attempt 1: FAIL, it broke", "attempt 2 (retry): PASS", "attempt 1 decides: a FAIL does, whatever comes before or after it",
		}},
		"the last": {Job{Verdict: verdict.Pass, History: []Attempt{attempt(1, verdict.Error), attempt(2, verdict.Pass)}, Directory: "jobs/net/2"}, []string{
			"attempt 1: ERROR, it broke", "attempt 2 (retry): PASS", "attempt 2 decides, as the last: none of them failed",
		}},
		"all pass": {Job{Verdict: verdict.Pass, History: []Attempt{attempt(1, verdict.Pass), attempt(2, verdict.Pass)}, Directory: "jobs/net/2"}, []string{
			"2 attempts: 2 PASS", "together: PASS, since it passed 2 times and never failed",
		}},
		"pending": {Job{Verdict: verdict.Pending, Reasons: []verdict.Reason{{Message: "another attempt is due"}}, History: []Attempt{attempt(1, verdict.Error), attempt(2, verdict.Error)}}, []string{
			"attempt 1: ERROR, it broke", "attempt 2 (retry): ERROR, it broke", "together: PENDING, since another attempt is due",
		}},
	} {
		if d := cmp.Diff(tt.want, attemptLines(tt.job)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	text := string(render(t, func(b *bytes.Buffer) error { return Explain(b, Run{}, together, evidence.Evidence{}, nil, Options{}) }))
	if !strings.Contains(text, "\nattempts:\n  attempt 1: PASS\n") {
		t.Errorf("the explanation has no attempts:\n%s", text)
	}
}

// Of few measurements those that the job was judged by come first, then those that the
// card names, and words last.
func TestGatedMeasurementsFirst(t *testing.T) {
	least := 1.0
	x := verdict.Expectation{
		Metrics:    []metric.Spec{{Name: "declared"}, {Name: "needed", Required: true}, {Name: "word"}},
		Thresholds: []threshold.Threshold{{Metric: "bounded", Min: &least}, {Metric: "performance", Min: &least}},
	}
	v := verdict.Verdict{Word: verdict.Pass, Measurements: []metric.Measurement{
		{Name: "word", Label: true, Text: "w"},
		{Name: "extra", Value: 1},
		{Name: "declared", Value: 2},
		{Name: "needed", Value: 3},
		{Name: "bounded", Value: 4},
		{Name: "tokens", Model: "m", Value: 5, Source: metric.SourceResults},
	}}
	j := NewJob(JobHeader{Expect: x}, evidence.Evidence{}, v)
	if got := measurements(j.Measurements, 5); got != `needed 3, bounded 4, m/tokens 5, declared 2, extra 1, +1 more` {
		t.Error(got)
	}
	if got := measurements(j.Measurements, 0); !strings.HasPrefix(got, `word "w", extra 1`) {
		t.Errorf("all are in their own order: %s", got)
	}
	if m := j.Measurements; m[1].Declared || m[2].Gated || !m[2].Declared || !m[3].Gated || !m[4].Declared {
		t.Errorf("%+v", m)
	}
	page := string(render(t, func(b *bytes.Buffer) error { return HTML(b, Run{Jobs: []Job{j}}, nil) }))
	if !strings.Contains(page, "<td>needed 3<br>bounded 4<br>m/tokens 5<br>declared 2<br>…</td>") {
		t.Errorf("the page has another order:\n%s", page)
	}
	followsSchema(t, New(Header{RunID: "r"}, []Job{NewJob(JobHeader{Name: "n", Key: "k", ID: "k", Directory: "d", Attempts: 1, Expect: verdict.Expectation{Thresholds: x.Thresholds}}, evidence.Evidence{}, v)}))
}

func TestCaveatsAgreeInNumber(t *testing.T) {
	for want, jobs := range map[string][]Job{
		"1 optional job did not pass and does not decide": {{Optional: true, Verdict: verdict.Fail}},
		"2 optional jobs did not pass and do not decide":  {{Optional: true, Verdict: verdict.Fail}, {Optional: true, Verdict: verdict.Error}},
		"1 job of a baseline: it was not gated":           {{Baseline: true}, {}},
		"2 jobs of a baseline: these were not gated":      {{Baseline: true}, {Baseline: true}, {}},
	} {
		if d := cmp.Diff([]string{want}, caveats(Run{Jobs: jobs})); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

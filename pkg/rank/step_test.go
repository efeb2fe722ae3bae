package rank_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/metric"
	"assay/pkg/plan"
)

func script(path string) plan.Script { return plan.Script{Path: path} }

// What pre- and post-scripts print is no measurement, whenever they print it.
func TestStepsMeasureNothing(t *testing.T) {
	const service = `(while :; do echo 'performance: 999 tps'; echo 'busGbps=999' >&2; sleep 0.005; done) & sleep 0.05`
	for name, tt := range map[string]struct{ pre, post string }{
		"pre":             {"echo 'performance: 999 tps'; echo 'busGbps=999' >&2", "true"},
		"pre, unended":    {"printf 'performance: 999 tps'", "true"},
		"post":            {"true", "echo 'performance: 999 tps'; echo 'busGbps=999' >&2"},
		"service":         {service, "true"},
		"service of post": {"true", service},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "echo workload; sleep 0.1; exit 3")
			f.file("pre.sh", tt.pre, 0o644)
			f.file("post.sh", tt.post, 0o644)
			f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "busGbps"}}
			f.attempt.Job.PreScripts, f.attempt.Job.PostScripts = []plan.Script{script("pre.sh")}, []plan.Script{script("post.sh")}
			if exit, end := f.run(); exit != 3 || end.Metrics {
				t.Errorf("exit %d, readings %+v", exit, f.metrics().Readings)
			}
		})
	}
}

// A reading of the workload is named by its line in the log.
func TestPlaceOfAReadingAfterSteps(t *testing.T) {
	f := newFixture(t, "echo; echo 'performance: 1 x'; printf 'performance: 2 y'")
	f.file("pre.sh", "printf 'one\ntwo'", 0o644)
	f.file("post.sh", "echo post", 0o644)
	f.attempt.Job.PreScripts, f.attempt.Job.PostScripts = []plan.Script{script("pre.sh")}, []plan.Script{script("post.sh")}
	f.run()
	want := []reading{{"x", "1", metric.SourcePerformance, "stdout:6"}, {"y", "2", metric.SourcePerformance, "stdout:7"}}
	if d := cmp.Diff(want, readings(f.metrics())); d != "" {
		t.Errorf("(-want +got):\n%s\n%s", d, f.read("stdout"))
	}
	if r := f.metrics().Readings; len(r) != 2 || r[0].Unended || !r[1].Unended {
		t.Errorf("what has no line end is not told from what has: %+v", r)
	}
	if got := f.read("stdout"); got != "[assay: pre-script pre.sh]\none\ntwo\n[assay: workload]\n\nperformance: 1 x\nperformance: 2 y\n[assay: post-script post.sh]\npost\n" {
		t.Errorf("stdout is %q", got)
	}
}

// Files that a pre-script leaves are no results, unless the workload adds to them;
// what a post-script makes of the workload's output is.
func TestFilesOfSteps(t *testing.T) {
	const csv = `printf 'model,performance,metric\nm,1,x\n' > `
	for name, tt := range map[string]struct {
		pre, workload, post string
		want                string // the results that are kept, "" for none
		metrics             int
	}{
		"pre-script, results":       {csv + `"$MAD_OUTPUT_CSV"`, "true", "true", "", 0},
		"pre-script, work":          {csv + "r.csv", "true", "true", "", 0},
		"touched":                   {csv + "r.csv", "touch r.csv", "true", "", 0},
		"added to":                  {csv + "r.csv", "echo m,2,x >> r.csv", "true", "model,performance,metric\nm,2,x\n", 0},
		"added to in results":       {csv + `"$MAD_OUTPUT_CSV"`, `echo m,2,x >> "$MAD_OUTPUT_CSV"`, "true", "model,performance,metric\nm,2,x\n", 0},
		"a header":                  {"echo model,performance,metric > r.csv", "echo m,2,x >> r.csv", "true", "model,performance,metric\nm,2,x\n", 0},
		"post-script":               {"true", "echo 2 > log", `(echo model,performance,metric; echo m,$(cat log),x) > r.csv`, "model,performance,metric\nm,2,x\n", 0},
		"metrics.json":              {`echo '{"a": 1}' > metrics.json; cp metrics.json "$ASSAY_RESULTS_DIR"`, "touch metrics.json", "true", "", 0},
		"metrics.json of both":      {`echo '{"a": 1}' > metrics.json`, `echo '{"a": 2}' > metrics.json`, "true", "", 1},
		"metrics.json, other place": {`echo '{"a": 1}' > "$ASSAY_RESULTS_DIR/metrics.json"`, `echo '{"a": 2}' > metrics.json`, "true", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, tt.workload)
			f.file("pre.sh", tt.pre, 0o644)
			f.file("post.sh", tt.post, 0o644)
			f.attempt.Job.Expect.MultipleResults = "r.csv"
			f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "a"}}
			f.attempt.Job.PreScripts, f.attempt.Job.PostScripts = []plan.Script{script("pre.sh")}, []plan.Script{script("post.sh")}
			_, end := f.run()
			kept := ""
			if end.Results.File != "" {
				kept = f.read("results/" + end.Results.File)
			}
			if kept != tt.want {
				t.Errorf("kept %q, want %q; %+v", kept, tt.want, end.Results)
			}
			if end.Metrics != (tt.metrics > 0) || (end.Metrics && f.metrics().Readings[0].Value != 2) {
				t.Errorf("metrics %v", end.Metrics)
			}
		})
	}
}

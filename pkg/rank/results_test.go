package rank_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

const goodCSV = "model,performance,metric\nm,1,x\n"

func TestResultsAreFound(t *testing.T) {
	tests := []struct {
		name, declared, script string
		path                   func(f *fixture) string
	}{
		{"working directory", "r.csv", `printf %s "$CSV" > r.csv`, func(f *fixture) string { return f.dir() + "/work/r.csv" }},
		{"MAD_OUTPUT_CSV", "r.csv", `printf %s "$CSV" > "$MAD_OUTPUT_CSV"`, func(f *fixture) string { return f.dir() + "/results/r.csv" }},
		{"with directories", "a/b/r.csv", `mkdir -p a/b; printf %s "$CSV" > a/b/r.csv`, func(f *fixture) string { return f.dir() + "/work/a/b/r.csv" }},
		{"directories, MAD_OUTPUT_CSV", "a/b/r.csv", `printf %s "$CSV" > "$MAD_OUTPUT_CSV"`, func(f *fixture) string { return f.dir() + "/results/r.csv" }},
		{"parent directory", "r.csv", `printf %s "$CSV" > ../r.csv`, func(f *fixture) string { return f.dir() + "/r.csv" }},
		{"directory of the program", "r.csv", `printf %s "$CSV" > "$MODEL_DIR/r.csv"`, func(f *fixture) string { return f.model + "/r.csv" }},
		{"declared with ..", "../r.csv", `printf %s "$CSV" > ../r.csv`, func(f *fixture) string { return f.dir() + "/r.csv" }},
		{"results directory first", "r.csv", `printf %s "$CSV" > "$MAD_OUTPUT_CSV"; echo other > r.csv`, func(f *fixture) string { return f.dir() + "/results/r.csv" }},
		{"by a link", "r.csv", `printf %s "$CSV" > real; ln -s real r.csv`, func(f *fixture) string { return f.dir() + "/work/r.csv" }},
		{"link in the results directory", "r.csv", `printf %s "$CSV" > real; ln -s "$PWD/real" "$MAD_OUTPUT_CSV"`, func(f *fixture) string { return f.dir() + "/results/r.csv" }},
		{"a leftover that was rewritten", "old.csv", `printf %s "$CSV" > "$MODEL_DIR/old.csv"`, func(f *fixture) string { return f.model + "/old.csv" }},
		{"after a failure", "r.csv", `printf %s "$CSV" > r.csv; exit 1`, func(f *fixture) string { return f.dir() + "/work/r.csv" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.script)
			f.file("old.csv", "model,performance,metric\nm,0,leftover\n", 0o644)
			f.attempt.Job.Env = map[string]string{"CSV": goodCSV, "MODEL_DIR": f.model}
			f.attempt.Job.Expect.MultipleResults = tt.declared
			_, end := f.run()
			r := end.Results
			if r == nil || r.File == "" || r.Path != tt.path(f) {
				t.Fatalf("results %+v, want path %s", r, tt.path(f))
			}
			info, err := os.Lstat(filepath.Join(f.dir(), "results", r.File))
			if err != nil || !info.Mode().IsRegular() {
				t.Errorf("the copy is no regular file: %v", err)
			}
			if got := f.read("results/" + r.File); got != goodCSV {
				t.Errorf("the copy has %q", got)
			}
		})
	}
}

func TestAbsoluteResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abs.csv")
	f := newFixture(t, `printf %s "$CSV" > "$OUT"`)
	f.attempt.Job.Env = map[string]string{"CSV": goodCSV, "OUT": path}
	f.attempt.Job.Expect.MultipleResults = path
	if _, end := f.run(); end.Results.Path != path || f.read("results/abs.csv") != goodCSV {
		t.Errorf("results %+v", end.Results)
	}
	g := newFixture(t, "true")
	g.attempt.Job.Expect.MultipleResults = path
	_, end := g.run()
	if end.Results.File != "" || cmp.Diff([]string{path}, end.Results.Stale) != "" {
		t.Errorf("a leftover was taken: %+v", end.Results)
	}
}

func TestResultsAreNotFound(t *testing.T) {
	tests := []struct {
		name, script string
		rank         int
		stale        int
		nearby       []evidence.Nearby
	}{
		{"leftover in the directory of the program", "true", 0, 1, nil},
		{"not rank 0, so not the shared directory", `printf %s "$CSV" > "$MODEL_DIR/r.csv"`, 1, 0, nil},
		{"misnamed", `printf %s "$CSV" > rr.csv`, 0, 1, []evidence.Nearby{{Path: "rr.csv", Columns: []string{"model", "performance", "metric"}}}},
		{"misnamed in a directory", `mkdir -p a/b; printf '\xef\xbb\xbfPerformance , "Metric",x\r\n' > a/b/c.CSV`, 0, 1, []evidence.Nearby{{Path: "a/b/c.CSV", Columns: []string{"Performance", "Metric", "x"}}}},
		{"misnamed in the results directory", `printf %s "$CSV" > "$ASSAY_RESULTS_DIR/q.csv"`, 0, 1, []evidence.Nearby{{Path: "q.csv", Columns: []string{"model", "performance", "metric"}}}},
		{"another old file is not near", "cat old.csv", 0, 1, nil},
		{"an old file that changed is near", "cat old.csv; echo x >> old.csv", 0, 1, []evidence.Nearby{{Path: "old.csv", Columns: []string{"model", "performance", "metric"}}}},
		{"other shapes", `echo a,b > x.csv; echo performance > y.csv; : > z.csv; mkdir d.csv; mkfifo f.csv; mkfifo "$ASSAY_RESULTS_DIR/r.csv"`, 0, 1, nil},
		{"perf.csv of all runs", `echo model,n_gpus,pipeline,performance,metric,relative_change,docker_sha,build_number > p.csv`, 0, 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.script)
			f.file("r.csv", goodCSV, 0o644)
			f.file("old.csv", goodCSV, 0o644)
			f.attempt.Job.Env = map[string]string{"CSV": goodCSV, "MODEL_DIR": f.model}
			f.attempt.Job.WorldSize, f.call.Rank = 2, tt.rank
			f.attempt.Job.Expect.MultipleResults = "r.csv"
			_, end := f.run()
			r := end.Results
			if r == nil || r.File != "" || len(r.Stale) != tt.stale || len(r.Tried) < 2 || r.Declared != "r.csv" {
				t.Fatalf("results %+v, want none and %d stale", r, tt.stale)
			}
			if d := cmp.Diff(tt.nearby, r.Nearby); d != "" {
				t.Errorf("nearby (-want +got):\n%s", d)
			}
		})
	}
}

func TestNearbyIsBounded(t *testing.T) {
	f := newFixture(t, `for i in $(seq 30); do printf %s "$CSV" > r$i.csv; done`)
	f.attempt.Job.Env = map[string]string{"CSV": goodCSV}
	f.attempt.Job.Expect.MultipleResults = "r.csv"
	if _, end := f.run(); len(end.Results.Nearby) != 10 {
		t.Errorf("%d files are named, want 10", len(end.Results.Nearby))
	}
}

// Without a declaration nothing is taken, and what looks like results is named
// when nothing else was measured.
func TestNoResultsDeclared(t *testing.T) {
	for script, want := range map[string]int{
		`printf %s "$CSV" > r.csv`:                          1,
		`printf %s "$CSV" > r.csv; echo "performance: 1 x"`: 0,
		`true`: 0,
	} {
		f := newFixture(t, script)
		f.file("old.csv", goodCSV, 0o644)
		f.attempt.Job.Env = map[string]string{"CSV": goodCSV}
		_, end := f.run()
		switch r := end.Results; {
		case want == 0 && r != nil:
			t.Errorf("%s: results %+v", script, r)
		case want == 1 && (r == nil || r.Declared != "" || r.File != "" || len(r.Nearby) != 1 || r.Nearby[0].Path != "r.csv"):
			t.Errorf("%s: results %+v", script, r)
		}
	}
}

// reading is what tests compare of a metric.Reading.
type reading struct {
	Name, Text string
	Source     metric.Source
	Place      string
}

func readings(m evidence.Metrics) []reading {
	var out []reading
	for _, r := range m.Readings {
		out = append(out, reading{r.Name, r.Text, r.Source, r.Place})
	}
	return out
}

func TestMetrics(t *testing.T) {
	f := newFixture(t, `echo noise; echo 'performance: 12.5 img_per_s'; echo 'lr=0.1' ; echo 'busGbps=99' >&2; echo 'performance: 13 img_per_s'
		printf 'head -c 100000 /dev/zero' | bash | tr '\0' 'x'; echo; echo 'latencyUs=7'
		echo '{"gated": 5, "undeclared": 6}' > metrics.json; printf 'last=1'`)
	f.file("metrics.json", `{"gated": 1}`, 0o644)
	f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "busGbps"}, {Name: "latencyUs"}, {Name: "last"}}
	f.attempt.Job.Expect.Thresholds = []threshold.Threshold{{Metric: "gated"}}
	_, end := f.run()
	if !end.Metrics {
		t.Fatal("the end marker does not name metrics.json")
	}
	got := readings(f.metrics())
	want := []reading{
		{"img_per_s", "13", metric.SourcePerformance, "stdout:4"},
		{"latencyUs", "7", metric.SourceKeyValue, "stdout:6"},
		{"last", "1", metric.SourceKeyValue, "stdout:7"},
		{"busGbps", "99", metric.SourceKeyValue, "stderr:1"},
		{"gated", "5", metric.SourceMetricsJSON, "work/metrics.json"},
	}
	less := cmp.Transformer("sort", func(in []reading) map[string]reading {
		m := map[string]reading{}
		for _, r := range in {
			m[r.Name] = r
		}
		return m
	})
	if d := cmp.Diff(want, got, less); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestMetricsOfAFailure(t *testing.T) {
	f := newFixture(t, `echo 'performance: 1 x'; kill -9 $$`)
	exit, end := f.run()
	if exit != 137 || !end.Metrics || len(f.metrics().Readings) != 1 {
		t.Errorf("exit %d, metrics %v", exit, end.Metrics)
	}
}

func TestMetricsJSONInTheResultsDirectory(t *testing.T) {
	f := newFixture(t, `echo '{"metrics": {"a": 1}}' > "$ASSAY_RESULTS_DIR/metrics.json"`)
	f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "a"}}
	f.run()
	want := []reading{{"a", "1", metric.SourceMetricsJSON, "results/metrics.json"}}
	if d := cmp.Diff(want, readings(f.metrics())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSkippedMetrics(t *testing.T) {
	f := newFixture(t, `echo 'performance: 1 x'; echo '{"a": 1}' > metrics.json`)
	f.attempt.Job.SkipMetrics = true
	f.attempt.Job.Expect.Metrics = []metric.Spec{{Name: "a"}}
	if _, end := f.run(); end.Metrics {
		t.Error("readings were kept")
	}
}

// metrics.json is there for those who look on while the workload runs.
func TestLiveMetrics(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo 'performance: 1 x'; i=0; while [ ! -s "$ASSAY_RESULTS_DIR/../metrics.json" ] && [ $i -lt 300 ]; do sleep 0.05; i=$((i+1)); done
		cp "$ASSAY_RESULTS_DIR/../metrics.json" seen; echo 'performance: 2 x'`)
	f.run()
	if seen := f.read("work/seen"); !strings.Contains(seen, `"value": 1`) {
		t.Errorf("while it ran metrics.json was %s", seen)
	}
	if got := f.metrics().Readings; len(got) != 1 || got[0].Value != 2 {
		t.Errorf("at the end it is %+v", got)
	}
}

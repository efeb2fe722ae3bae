package perfcsv

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"assay/pkg/card"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/verdict"
	"assay/schemas"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// schemaFile is what the tests need of schemas/perf_csv.schema.json.
type schemaFile struct {
	Columns    []string `json:"x-columns"`
	Required   []string `json:"required"`
	Properties map[string]struct {
		Type        any      `json:"type"`
		Description string   `json:"description"`
		Enum        []string `json:"enum"`
		Format      string   `json:"format"`
		Minimum     *int     `json:"minimum"`
		MinLength   int      `json:"minLength"`
		Source      string   `json:"x-manifest-source"`
	} `json:"properties"`
}

func readSchema(t *testing.T) schemaFile {
	t.Helper()
	text, err := schemas.Read("perf_csv")
	if err != nil {
		t.Fatal(err)
	}
	var s schemaFile
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestColumnsAreThoseOfTheSchema(t *testing.T) {
	s := readSchema(t)
	if diff := cmp.Diff(s.Columns, Columns()); diff != "" {
		t.Errorf("x-columns and Row differ (-schema +struct):\n%s", diff)
	}
	if diff := cmp.Diff(s.Columns, s.Required); diff != "" {
		t.Errorf("x-columns and required differ:\n%s", diff)
	}
	if len(s.Properties) != len(s.Columns) {
		t.Errorf("%d properties, %d columns", len(s.Properties), len(s.Columns))
	}
	for _, name := range s.Columns {
		if s.Properties[name].Description == "" {
			t.Errorf("column %s has no description", name)
		}
	}
}

func TestTheFirstColumnsAreMadengines(t *testing.T) {
	const want = "model,n_gpus,nnodes,gpus_per_node,training_precision,pipeline,args,tags,docker_file,base_docker," +
		"docker_sha,docker_image,git_commit,machine_name,deployment_type,launcher,gpu_architecture,performance,metric," +
		"relative_change,status,build_duration,test_duration,dataname,data_provider_type,data_size," +
		"data_download_duration,build_number,additional_docker_run_options"
	if got := strings.Join(Columns()[:madengineColumns], ","); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestManifestSources walks every x-manifest-source, which must name a field
// that the manifest's schema declares.
func TestManifestSources(t *testing.T) {
	text, err := schemas.Read("manifest")
	if err != nil {
		t.Fatal(err)
	}
	var manifest any
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	walked := 0
	for name, p := range readSchema(t).Properties {
		if p.Source == "" {
			continue
		}
		walked++
		field, ok := resolvePointer(manifest, p.Source).(map[string]any)
		if !ok || field["description"] == nil {
			t.Errorf("column %s: %s does not lead to a described field of the manifest", name, p.Source)
		}
	}
	if walked < 15 {
		t.Errorf("only %d columns restate a manifest field", walked)
	}
}

func resolvePointer(doc any, pointer string) any {
	for _, step := range strings.Split(pointer, "/")[1:] {
		object, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return doc
}

// TestCellsMatchTheSchema holds the checks of Validate to the schema's types.
func TestCellsMatchTheSchema(t *testing.T) {
	for name, p := range readSchema(t).Properties {
		kinds := []any{p.Type}
		if list, ok := p.Type.([]any); ok {
			kinds = list
		}
		allows := map[any]bool{}
		for _, k := range kinds {
			allows[k] = true
		}
		free := allows["string"] && p.Enum == nil && p.Format == ""
		for text, want := range map[string]bool{
			"8":   allows["integer"] || allows["number"] || free,
			"0.5": allows["number"] || free,
			"abc": free,
		} {
			if got := cellProblem(name, text) == ""; got != want {
				t.Errorf("column %s, cell %q: accepted %v, the schema says %v", name, text, got, want)
			}
		}
		for _, word := range p.Enum {
			if problem := cellProblem(name, word); problem != "" {
				t.Errorf("column %s: %s %s", name, word, problem)
			}
		}
		if empty, got := allows["null"] || free && p.MinLength == 0, cellProblem(name, "") == ""; got != empty {
			t.Errorf("column %s, empty cell: accepted %v, the schema says %v", name, got, empty)
		}
		if allows["integer"] || allows["number"] {
			least := -1_000_000
			if p.Minimum != nil {
				least = *p.Minimum
				if cellProblem(name, strconv.Itoa(least-1)) == "" {
					t.Errorf("column %s accepts %d", name, least-1)
				}
			}
			if problem := cellProblem(name, strconv.Itoa(least)); problem != "" {
				t.Errorf("column %s: %d %s", name, least, problem)
			}
		}
	}
}

func TestNumberOf(t *testing.T) {
	for _, c := range []struct {
		v    float64
		text string
		want Number
	}{
		{1.5, "1.50", "1.50"},
		{1500, "1.5e3", "1.5e3"},
		{1e6, "", "1000000"},
		{0.1, "0.10000001", "0.1"},
		{16, "0x10", "16"},
		{1000, "1_000", "1000"},
		{math.NaN(), "nan", ""},
		{math.Inf(1), "inf", ""},
		{1e-9, "", "1e-09"},
		{-2, " -2", "-2"},
		{5, "5.", "5."},
	} {
		if got := NumberOf(c.v, c.text); got != c.want {
			t.Errorf("NumberOf(%v, %q) = %q, want %q", c.v, c.text, got, c.want)
		}
	}
}

func TestNumbersReadBackExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		got, ok := NumberOf(v, "").Float()
		if finite := !math.IsNaN(v) && !math.IsInf(v, 0); ok != finite || finite && got != v {
			t.Fatalf("%v became %q, read as %v, %v", v, NumberOf(v, ""), got, ok)
		}
	})
}

func value(v float64) *float64 { return &v }

func TestRows(t *testing.T) {
	run := report.Run{RunID: "r1", Target: "local"}
	job := report.Job{
		Name: "bert", Scope: "job", Nodes: []string{"a", "b"}, Attempts: 2, ElapsedSeconds: 1.25,
		Reasons: []verdict.Reason{{Message: "first"}, {Message: "second"}},
	}
	measured := []report.Measurement{
		{Name: "tokens/s", Value: value(12.5), Text: "12.50"},
		{Name: "latency", Value: value(3), Model: "small"},
		{Name: "power", NotApplicable: true},
	}
	type cells struct{ Model, Metric, Performance, Status, Verdict, Reason string }
	for _, c := range []struct {
		name string
		word verdict.Word
		m    []report.Measurement
		want []cells
	}{
		{"pass", verdict.Pass, measured, []cells{
			{"bert", "tokens/s", "12.50", "SUCCESS", "PASS", "first"},
			{"bert_small", "latency", "3", "SUCCESS", "PASS", "first"},
			{"bert", "power", "", "SKIPPED", "PASS", "first"},
		}},
		{"a failed job is no success, number or not", verdict.Fail, measured[:1], []cells{{"bert", "tokens/s", "12.50", "FAILURE", "FAIL", "first"}}},
		{"n/a excuses no failure", verdict.Fail, measured[2:], []cells{{"bert", "power", "", "FAILURE", "FAIL", "first"}}},
		{"n/a excuses no error", verdict.Error, measured[2:], []cells{{"bert", "power", "", "FAILURE", "ERROR", "first"}}},
		{"n/a beside nothing measured", verdict.NoMetric, measured[2:], []cells{{"bert", "power", "", "FAILURE", "NO_METRIC", "first"}}},
		{"only n/a", verdict.Skip, measured[2:], []cells{{"bert", "power", "", "SKIPPED", "SKIP", "first"}}},
		{"nothing measured", verdict.NoMetric, nil, []cells{{"bert", "", "", "FAILURE", "NO_METRIC", "first"}}},
		{"error", verdict.Error, nil, []cells{{"bert", "", "", "FAILURE", "ERROR", "first"}}},
		{"skip", verdict.Skip, nil, []cells{{"bert", "", "", "SKIPPED", "SKIP", "first"}}},
		{"a pass without a number is no success", verdict.Pass, nil, []cells{{"bert", "", "", "SKIPPED", "PASS", "first"}}},
		{"pending", verdict.Pending, measured, nil},
		{"unknown", verdict.Unknown, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			job.Verdict, job.Measurements = c.word, c.m
			var got []cells
			for _, r := range Rows(run, job, Facts{NNodes: 2}) {
				got = append(got, cells{r.Model, r.Metric, string(r.Performance), r.Status, r.Verdict, r.Reason})
				if r.RunID != "r1" || r.Attempt != 2 || r.Nodes != "a b" || r.MachineName != "a" || r.TestDuration != "1.25" || r.NNodes != 2 {
					t.Errorf("row %+v", r)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactsOf(t *testing.T) {
	var c card.Card
	text := `{"name": "m", "n_gpus": "-1", "tags": ["a", "b"], "args": ["--x", "two words"], "data": "d", "training_precision": "fp16"}`
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	f := FactsOf(c, plan.Job{NNodes: 2, GPUsPerNode: 8, Launcher: "torchrun", Image: "img"})
	want := Facts{
		NGPUs: "-1", NNodes: 2, GPUsPerNode: 8, TrainingPrecision: "fp16", Args: "--x 'two words'",
		Tags: []string{"a", "b"}, DockerImage: "img", Launcher: "torchrun", DataName: "d",
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	row := Rows(report.Run{}, report.Job{Verdict: verdict.Fail}, f)[0]
	if row.Tags != "a,b" {
		t.Errorf("tags %q", row.Tags)
	}
}

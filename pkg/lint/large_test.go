package lint_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"assay/pkg/lint"
)

// largeManifest has n entries of about 960 bytes, image included.
func largeManifest(n int) []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"built_images\": {\n")
	for i := range n {
		fmt.Fprintf(&b, "    \"bench-%05d\": {\"model\": \"bench_%05d\", \"docker_image\": null, \"dockerfile\": \"\", \"base_docker\": \"\", \"local_image\": true, \"registry_image\": null, \"registry\": null, \"gpu_vendor\": \"AMD\", \"build_duration\": 0}%s\n", i, i, comma(i, n))
	}
	b.WriteString("  },\n  \"built_models\": {\n")
	for i := range n {
		fmt.Fprintf(&b, `    "bench-%05d": {
      "name": "bench_%05d",
      "url": "",
      "dockerfile": "",
      "scripts": "scripts/bench/run.sh",
      "n_gpus": "-1",
      "owner": "bench@example.com",
      "training_precision": "fp16",
      "multiple_results": "perf_bench_%05d.csv",
      "tags": ["pyt", "inference", "nightly"],
      "timeout": 3600,
      "args": "--model bench-%05d --batch 32 --repeat 5",
      "additional_docker_run_options": "--shm-size 64G --ulimit memlock=-1",
      "env_vars": {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "8"},
      "distributed": {"launcher": "torchrun", "nnodes": 1, "nproc_per_node": 8},
      "metrics": [{"name": "busBandwidthGBs", "unit": "GB/s", "better": "higher"}],
      "thresholds": [{"metric": "busBandwidthGBs", "min": 100}]
    }%s
`, i, i, i, i, comma(i, n))
	}
	b.WriteString("  },\n  \"context\": {\"docker_env_vars\": {}, \"gpu_vendor\": \"AMD\", \"guest_os\": \"UBUNTU\"},\n  \"deployment_config\": {\"target\": \"local\"}\n}\n")
	return b.Bytes()
}

func comma(i, n int) string {
	if i == n-1 {
		return ""
	}
	return ","
}

func TestLargeManifestIsClean(t *testing.T) {
	r := lint.Bytes("build_manifest.json", largeManifest(300), lint.Options{})
	for _, f := range r.Findings {
		t.Errorf("%s:%d:%d %s %s", f.File, f.Line, f.Column, f.Code, f.Message)
	}
}

func BenchmarkLargeManifest(b *testing.B) {
	data := largeManifest(10_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if r := lint.Bytes("build_manifest.json", data, lint.Options{}); len(r.Findings) > 0 {
			b.Fatal(r.Findings[0])
		}
	}
}

// TestFindingsAreBounded: a thousand errors and as many warnings are listed, and
// that there are more is one finding each, at the end.
func TestFindingsAreBounded(t *testing.T) {
	const n = 5000
	repeat := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	members := func(value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"m%d": %s,`, i, value)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, c := range map[string]struct {
		data             string
		errors, warnings int
	}{
		"models":     {`{"built_images": {}, "context": {}, "built_models": {` + members("{}") + `}}`, 1001, 0},
		"images":     {`{"built_images": {` + members("{}") + `}, "context": {}, "built_models": {}}`, 1, 1001},
		"cards":      {`[` + repeat(`{"namee": "a"}`) + `]`, 1001, 0},
		"numbers":    {`[` + repeat(`1`) + `]`, 1001, 0},
		"names":      {`[` + repeat(`{"name": "a", "scripts": "a"}`) + `]`, 0, 1001},
		"thresholds": {`{"name": "a", "scripts": "a", "thresholds": [` + repeat(`{"metric": "a"}`) + `]}`, 1001, 0},
		"misses":     {`{"name": "a", "scripts": "a", "metrics": [` + repeat(`{"name": "a", "untis": 1}`) + `]}`, 0, 1001},
		"tests":      {`{"tests": [` + repeat(`{"name": "a", "distributed": {"launcher": "?"}}`) + `]}`, 1001, 0},
	} {
		r := lint.Bytes("x.json", []byte(c.data), lint.Options{})
		count := map[lint.Severity]int{}
		for _, f := range r.Findings {
			count[f.Severity]++
		}
		if count[lint.Error] != c.errors || c.warnings > 0 && count[lint.Warning] != c.warnings {
			t.Errorf("%s: %v", name, count)
		}
		if last := r.Findings[len(r.Findings)-1]; last.Code != lint.More || last.Line < 1 {
			t.Errorf("%s: the last is %+v", name, last)
		}
	}
}

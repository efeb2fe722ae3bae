package lint_test

import (
	"bytes"
	"fmt"
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

package build_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/build"
)

// TestContextIsRemarkedOn: what has no effect is said, once, and what somebody
// keeps for himself is left alone.
func TestContextIsRemarkedOn(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/models.json", `[{"name": "a", "scripts": "s.sh"}]`)
	write(t, root+"/s.sh", "")
	for text, want := range map[string][]string{
		`{"gpu_vendor": "AMD", "slurm": {"nodes": 1}, "mine": 1, "vllm": {"x": 1}}`: nil,
		`{"_slrum": {}}`:      nil,
		`{"slrum": {}}`:       {"slrum has no meaning; did you mean slurm?"},
		`{"distribted": {}}`:  {"distribted has no meaning; did you mean distributed?"},
		`{"gpu_vender": "x"}`: {"gpu_vender has no meaning; did you mean gpu_vendor?"},
		`{"partiton": "x"}`:   {"partiton has no meaning; did you mean slurm.partition?"},
		`{"partition": "x"}`:  {"partition has no meaning; did you mean slurm.partition?"},
		`{"time": "1"}`:       {"time has no meaning; did you mean slurm.time?"},
		`{"launcher": "srun"}`: {
			"launcher has no meaning; did you mean distributed.launcher?",
		},
		`{"slurm": {"partiton": "x"}}`: {
			`/deployment_config/slurm/partiton: the key "partiton" is not known and has no effect; did you mean "partition"?`,
		},
		`{"deployment_config": {"slrum": {}}}`: {
			`/deployment_config/slrum: the key "slrum" is not known and has no effect; did you mean "slurm"?`,
		},
		`{"context": {"gpu_vender": "x"}}`: {
			`/context/gpu_vender: the key "gpu_vender" is not known and has no effect; did you mean "gpu_vendor"?`,
		},
		`{"built_models": {}, "summary": 5}`: {
			"built_models is not used: build writes the manifest's own",
			"summary is not used: build writes the manifest's own",
		},
	} {
		additional, err := build.ParseContext(text, "")
		if err != nil {
			t.Fatal(err)
		}
		res, err := build.Manifest(context.Background(), build.Options{
			Cards: find(t, root), Root: root, Output: filepath.Join(root, "m.json"), Context: additional,
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range res.Warnings {
			got = append(got, strings.TrimPrefix(w, "additional context: "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
		if strings.Contains(string(res.JSON), `"summary": 5`) {
			t.Errorf("%s landed", text)
		}
	}
}

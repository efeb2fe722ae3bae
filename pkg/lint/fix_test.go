package lint_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/exitcode"
	"assay/pkg/lint"
)

func TestFixed(t *testing.T) {
	for _, c := range []struct{ name, file, data, want string }{
		{
			"beside others, in the middle", "m.json",
			"{\n  \"slurm\": {\n    \"nodes\": 2\n  },\n  \"built_models\": {},\n  \"deployment_config\": {\n    \"target\": \"slurm\" \n  },\n  \"distributed\": {\"nnodes\": 2},\n  \"context\": {}\n}\n",
			"{\n  \"built_models\": {},\n  \"deployment_config\": {\n    \"target\": \"slurm\",\n    \"slurm\": {\n      \"nodes\": 2\n    },\n    \"distributed\": {\"nnodes\": 2} \n  },\n  \"context\": {}\n}\n",
		},
		{
			"no deployment_config yet", "m.json",
			"{\n\t\"built_models\": {},\n\t\"slurm\": {\n\t\t\"nodes\": 2\n\t},\n\t\"k8s\": {}\n}",
			"{\n\t\"built_models\": {},\n\t\"deployment_config\": {\n\t\t\"slurm\": {\n\t\t\t\"nodes\": 2\n\t\t},\n\t\t\"k8s\": {}\n\t}\n}",
		},
		{
			"pbs", "m.json",
			`{"built_models":{},"pbs":{"queue":"gpu"}}`,
			`{"built_models":{},"deployment_config": {"pbs":{"queue":"gpu"}}}`,
		},
		{
			"one line", "m.json",
			`{"slurm":{"nodes":2},"built_models":{},"deployment_config":{}}`,
			`{"built_models":{},"deployment_config":{"slurm":{"nodes":2}}}`,
		},
		{
			"null in its place", "m.json",
			`{"built_models":{},"deployment_config":{"slurm":null, "debug": true},"slurm":{"nodes":2}}`,
			`{"built_models":{},"deployment_config":{"slurm":{"nodes":2}, "debug": true}}`,
		},
		{
			"deployment_config is null", "m.json",
			`{"built_models":{},"deployment_config":null,"slurm":{"nodes":2}}`,
			`{"built_models":{},"deployment_config":{"slurm":{"nodes":2}}}`,
		},
		{
			"CRLF and a byte order mark", "m.json",
			"\ufeff{\r\n  \"built_models\": {},\r\n  \"slurm\": {\r\n    \"nodes\": 2\r\n  }\r\n}\r\n",
			"\ufeff{\r\n  \"built_models\": {},\r\n  \"deployment_config\": {\r\n    \"slurm\": {\r\n      \"nodes\": 2\r\n    }\r\n  }\r\n}\r\n",
		},
		{
			"an ignored block stays", "m.json",
			`{"built_models":{},"deployment_config":{"slurm":{"nodes":3}},"slurm":{"nodes":2}}`,
			`{"built_models":{},"deployment_config":{"slurm":{"nodes":3}},"slurm":{"nodes":2}}`,
		},
		{"nothing to do", "m.json", `{"built_models": {  } }`, `{"built_models": {  } }`},
		{"a card", "c.json", `{"name": "x", "slurm": {"nodes": 2}}`, `{"name": "x", "slurm": {"nodes": 2}}`},
		{
			"YAML with comments", "m.yaml",
			"# mine\nbuilt_models: {}\nslurm:\n  nodes: 2 # two\ndeployment_config:\n  target: slurm\n",
			"# mine\nbuilt_models: {}\ndeployment_config:\n  target: slurm\n  slurm:\n    nodes: 2 # two\n",
		},
		{
			"YAML without deployment_config", "m.yaml",
			"built_models: {}\nslurm: {nodes: 2}\n",
			"built_models: {}\ndeployment_config:\n  slurm: {nodes: 2}\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := lint.Fixed(c.file, []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			again, err := lint.Fixed(c.file, got)
			if err != nil || string(again) != string(got) {
				t.Errorf("fixed twice: %v\n%s", err, again)
			}
		})
	}
}

// TestFixedMovesAndNothingElse makes manifests of many layouts and compares the
// content before and after.
func TestFixedMovesAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := []string{`"built_images": {}`, `"built_models": {"a,}": {"name": "\"}{,"}}`, `"context": {"x": [1, {"y": "\\"}]}`}
		moved := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"slurm", "pbs", "k8s", "distributed"}), 1, 4, rapid.ID[string]).Draw(t, "blocks")
		for _, m := range moved {
			members = append(members, `"`+m+`": `+rapid.SampledFrom([]string{`{}`, `{"nodes": 2}`, "{\n    \"a\": [\n 1]\n  }"}).Draw(t, "block"))
		}
		if config := rapid.SampledFrom([]string{"", "null", "{}", `{"target": "slurm"}`, `{"slurm": null}`, "{\n    \"debug\": true\n  }"}).Draw(t, "config"); config != "" {
			members = append(members, `"deployment_config": `+config)
		}
		members = rapid.Permutation(members).Draw(t, "order")
		layout := rapid.SampledFrom([][3]string{{"{", ", ", "}"}, {"{", ",", "}"}, {"{\n  ", ",\n  ", "\n}\n"}, {"{\r\n\t", ",\r\n\t", "\r\n}"}, {"{ ", "\n , ", " }"}}).Draw(t, "layout")
		data := layout[0] + strings.Join(members, layout[1]) + layout[2]
		out, err := lint.Fixed("m.json", []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		var before, after map[string]any
		if err := json.Unmarshal([]byte(data), &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &after); err != nil {
			t.Fatalf("%v\n%s\n=>\n%s", err, data, out)
		}
		config, _ := before["deployment_config"].(map[string]any)
		if config == nil {
			config = map[string]any{}
		}
		for _, m := range moved {
			config[m] = before[m]
			delete(before, m)
		}
		before["deployment_config"] = config
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("(-want +got)\n%s\n%s\n=>\n%s", diff, data, out)
		}
		if r := lint.Bytes("m.json", out, lint.Options{}); strings.Contains(render(r, ""), "DUPLICATE_KEY") {
			t.Fatalf("a key twice:\n%s", out)
		}
	})
}

func TestFixRefuses(t *testing.T) {
	for data, want := range map[string]string{
		`{"built_models": {}, "slurm": {},}`:                                    "m.json:1:33: a comma before } is not JSON; nothing can be fixed before the file can be parsed",
		`{"built_models": {}, "slurm": {}, "slurm": {}}`:                        "which one is meant must be settled first",
		`{"built_models": {}, "slurm": {"nodes": 2}, "deployment_config": "x"}`: "m.json: deployment_config is not an object, so nothing can be moved under it",
	} {
		_, err := lint.Fixed("m.json", []byte(data))
		if err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%s: %v (exit %d)", data, err, exitcode.Of(err))
		}
	}
}

func TestFixWritesAndShowsADiff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "build_manifest.json")
	before := "{\n  \"built_images\": {},\n  \"built_models\": {},\n  \"context\": {},\n  \"slurm\": {\n    \"nodes\": 2\n  },\n  \"deployment_config\": {\n    \"target\": \"slurm\"\n  }\n}\n"
	if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	diff, changed, err := lint.Fix(path)
	if err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	patched(t, before, diff, string(after))
	if diff, changed, err := lint.Fix(path); err != nil || changed || diff != "" {
		t.Errorf("a second time: %v, %v\n%s", changed, err, diff)
	}
	if _, _, err := lint.Fix(filepath.Dir(path)); exitcode.Of(err) != exitcode.Invalid {
		t.Errorf("a directory: %v", err)
	}
}

// patched checks a unified diff with the tool that defines what one is.
func patched(t *testing.T, before, diff, after string) {
	t.Helper()
	tool, err := exec.LookPath("patch")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("patch is not installed")
		}
		t.Skip("patch is not installed")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "-F0", "-s", path)
	cmd.Stdin = strings.NewReader(diff)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, diff)
	}
	if got, _ := os.ReadFile(path); string(got) != after {
		t.Errorf("the diff does not make the change:\n%s\n%s", diff, cmp.Diff(after, string(got)))
	}
}

package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/card"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
)

func decode(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModelsKeepTheOrderOfTheDocument(t *testing.T) {
	m := decode(t, `{"built_models": {"z": {"name": "last"}, "a": {"name": "first"}, "m": {"name": "mid"}}}`)
	var got []string
	for _, e := range m.Models {
		got = append(got, e.Key+"="+e.Name)
	}
	if diff := cmp.Diff([]string{"z=last", "a=first", "m=mid"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNamesAreMatchedAsTheyAreWritten(t *testing.T) {
	e := decode(t, `{"built_models": {"a": {"name": "a", "Name": "b", "TIMEOUT": 5, "_note": [1], "git_commit": "abc"}}, "Context": 5}`).Models[0]
	if e.Name != "a" || e.Timeout.Set {
		t.Errorf("card %+v", e.Card)
	}
	if e.GitCommit != "abc" {
		t.Errorf("commit %q", e.GitCommit)
	}
}

func TestNullsAreAbsent(t *testing.T) {
	m := decode(t, "\xef\xbb\xbf"+`{"built_images": {"a": null, "b": {"docker_image": null}}, "built_models": {"a": {"name": "a",
		"args": null, "tags": null, "timeout": null, "env_vars": null, "slurm": null, "distributed": null, "n_gpus": null,
		"command": null, "metrics": null, "multiple_results": null}},
		"context": {"docker_env_vars": null, "pre_scripts": null, "tools": null, "docker_gpus": null, "skip_perf_collection": null},
		"deployment_config": {"slurm": null, "k8s": null, "env_vars": null, "target": null, "pbs": null},
		"credentials_required": null, "summary": null, "suite": null}`)
	if d := m.Deployment; d.Slurm != nil || d.K8s != nil || d.PBS != nil || m.Summary != nil || m.Suite != nil {
		t.Errorf("null blocks were taken for present: %+v", m)
	}
	if got := m.Deployment.TargetName(); got != "local" {
		t.Errorf("target = %q, want local", got)
	}
}

func TestTopLevelBlocksMoveUnderTheDeployment(t *testing.T) {
	m := decode(t, `{"built_models": {}, "slurm": {"nodes": 2}, "distributed": {"nnodes": "4", "primus": {"x": 1}},
		"kubernetes": {"namespace": "top"}, "pbs": {"queue": "gpu"}, "deployment_config": {"slurm": {"nodes": 3}}}`)
	d := m.Deployment
	if d.PBS == nil || d.PBS.Queue != "gpu" || d.Pointer("pbs", "queue") != "/pbs/queue" {
		t.Errorf("pbs %+v", d.PBS)
	}
	if d.Slurm.Nodes.Value != 3 || d.Distributed.NNodes.Value != 4 || d.K8s.Namespace != "top" {
		t.Errorf("slurm %+v, distributed %+v, k8s %+v", d.Slurm, d.Distributed, d.K8s)
	}
	if string(d.Distributed.Blocks["primus"]) != `{"x": 1}` {
		t.Errorf("launcher blocks = %s", d.Distributed.Blocks)
	}
	got := []string{d.Pointer("slurm", "nodes"), d.Pointer("distributed", "nnodes"), d.Pointer("k8s", "namespace"), d.Pointer("env_file")}
	want := []string{"/deployment_config/slurm/nodes", "/distributed/nnodes", "/kubernetes/namespace", "/deployment_config/env_file"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestK8sAliases(t *testing.T) {
	const top, own = `"k8s": {"namespace": "k"}, "kubernetes": {"namespace": "kubernetes"}`, `"kubernetes": {"namespace": "own"}`
	for text, want := range map[string][2]string{
		`{` + top + `}`: {"k", "/k8s/namespace"},
		`{` + top + `, "deployment_config": {` + own + `}}`:                             {"own", "/deployment_config/kubernetes/namespace"},
		`{` + top + `, "deployment_config": {` + own + `, "k8s": {"namespace": "dc"}}}`: {"dc", "/deployment_config/k8s/namespace"},
	} {
		d := decode(t, text).Deployment
		if got := [2]string{d.K8s.Namespace, d.Pointer("k8s", "namespace")}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestFlagsAndWords(t *testing.T) {
	for text, want := range map[string]card.Flag{
		`true`: {Value: true, Set: true}, `"True"`: {Value: true, Set: true}, `1`: {Value: true, Set: true},
		`false`: {Set: true}, `"no"`: {Set: true}, `null`: {}, `""`: {},
	} {
		if got := decode(t, `{"deployment_config": {"debug": `+text+`}}`).Deployment.Debug; got != want {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]card.Words{
		`"a b"`: {"a b"}, `["a", 2, true]`: {"a", "2", "true"}, `3`: {"3"}, `""`: nil, `null`: nil, `[]`: nil,
	} {
		if diff := cmp.Diff(want, decode(t, `{"context": {"docker_gpus": `+text+`}}`).Context.DockerGPUs); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestPointersOfEntries(t *testing.T) {
	e := decode(t, `{"built_models": {"a/b~c": {}}}`).Models[0]
	if got, want := e.Pointer("slurm", "nodes"), "/built_models/a~1b~0c/slurm/nodes"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTargetName(t *testing.T) {
	for block, want := range map[string]string{
		`{}`: "local", `{"target": "docker"}`: "local", `{"target": "kubernetes"}`: "k8s", `{"target": "pbs"}`: "pbs",
		`{"pbs": {}}`: "pbs", `{"target": "lunar"}`: "lunar", `{"slurm": {}}`: "slurm", `{"kubernetes": {}}`: "k8s", `{"slurm": {}, "target": "local"}`: "local",
	} {
		if got := decode(t, `{"deployment_config": `+block+`}`).Deployment.TargetName(); got != want {
			t.Errorf("%s: target %q, want %q", block, got, want)
		}
	}
}

func TestScriptsToolsAndWords(t *testing.T) {
	c := decode(t, `{"context": {"pre_scripts": ["a.sh", {"path": "b.sh", "args": "-v x"}], "tools": ["rpd", {"name": "rocprof"}],
		"docker_gpus": "0-7", "skip_perf_collection": "true"}}`).Context
	want := []manifest.Script{{Path: "a.sh"}, {Path: "b.sh", Args: card.Args{Text: "-v x"}}}
	if diff := cmp.Diff(want, c.PreScripts); diff != "" {
		t.Error(diff)
	}
	if c.Tools[0].Name != "rpd" || c.Tools[1].Name != "rocprof" || c.DockerGPUs[0] != "0-7" || !c.SkipPerfCollection.Value {
		t.Errorf("%+v", c)
	}
}

func TestErrorsNameThePointer(t *testing.T) {
	for text, want := range map[string]string{
		`{"built_models": {"b/x": {"env_vars": {"A": null}}}}`:       `/built_models/b~1x/env_vars/A: null is no value`,
		`{"built_models": {"b": {"timeout": {}}}}`:                   `/built_models/b/timeout: {} is not an integer`,
		`{"built_models": {"b": {"name": 5}}}`:                       `/built_models/b/name: a number is not allowed here`,
		`{"built_models": {"b": {"slurm": {"nodes": "x"}}}}`:         `/built_models/b/slurm/nodes: "x" is not an integer`,
		`{"context": {"docker_env_vars": {"A": []}}}`:                `/context/docker_env_vars/A: a string, number or boolean`,
		`{"context": {"pre_scripts": [5]}}`:                          `/context/pre_scripts/0: a script is an object with a path`,
		`{"built_models": {"b": 5}}`:                                 `/built_models/b: a number is not allowed here`,
		`{"built_models": []}`:                                       `/built_models: `,
		`{"built_models": {"b": {}, "b": {}}}`:                       `(/built_models/b): not valid JSON: duplicate`,
		`{"deployment_config": {"distributed": {"nnodes": []}}}`:     `/deployment_config/distributed/nnodes: `,
		`{"deployment_config": {"slurm": {"exclusive": "perhaps"}}}`: `/deployment_config/slurm/exclusive: "perhaps" is neither`,
		`{"context": {"gpu_vendor": true}}`:                          `/context/gpu_vendor: a boolean is not allowed here`,
		`{"context": {"gpu_vendor": {}}}`:                            `/context/gpu_vendor: an object is not allowed here`,
		`{"context": "x"}`:                                           `/context: a string is not allowed here`,
		`{"context": {"docker_env_vars": []}}`:                       `/context/docker_env_vars: a list is not allowed here`,
		`{"deployment_config": {"docker_gpus": {}}}`:                 `/deployment_config/docker_gpus: a string, number or boolean is expected`,
		`[]`: `at the top: a list is not allowed here`,
		``:   `line 1, column 1 (at the top): not valid JSON: `,
		`{"context": {"tools": [{"name": "a"}, 5]}}`:                 `/context/tools/1: a tool is an object`,
		`{"context": {"tools": [{"name": []}]}}`:                     `/context/tools/0/name: a list is not allowed here`,
		`{"context": {"post_scripts": [{"path": "x", "args": {}}]}}`: `/context/post_scripts/0/args: `,

		"{\n \"a\": NaN\n}": `line 2, column 7 (/a): not valid JSON: `,
		"{\"a\": \"\xff\"}": `not valid JSON: invalid UTF-8`,
		`{"a": 1,}`:         `line 1, column 8 (at the top): not valid JSON: `,
	} {
		_, err := manifest.Decode([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant …%s…", text, err, want)
		}
		if code := exitcode.Of(err); code != exitcode.Invalid {
			t.Errorf("%s: code %v", text, code)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"built_models": {"a": {"env_vars": {"A": 1}}}, "context": {"tools": [{}]}, "deployment_config": {"k8s": {}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Decode(data)
		if (m == nil) == (err == nil) {
			t.Errorf("manifest %v and error %v", m, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"built_images": {}, "context": {}, "built_models": {`)
	for i := range 10000 {
		if i > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, `"model-%d": {"name": "model-%d", "scripts": "scripts/run.sh", "args": "--batch 8", "n_gpus": "8", "tags": ["a", "b"],
			"env_vars": {"A": "1", "B": 2}, "owner": "%s", "metrics": [{"name": "x", "unit": "GBs"}]}`, i, i, strings.Repeat("o", 600))
	}
	text.WriteString("}}")
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"assay/pkg/card"
	"assay/pkg/manifest"
	"assay/pkg/plan"
)

// A script of slurm_multi starts its own steps: one rank wraps it, however many
// nodes it has.
func TestOneRankWrapsTheScriptOfSlurmMulti(t *testing.T) {
	m := manifestOf([]string{"a"}, func(_ int, e *manifest.Entry) {
		e.Command, e.Scripts = nil, "run.slurm"
		e.Distributed = &card.Distributed{Launcher: "slurm_multi", NNodes: card.Int{Value: 4, Set: true}, NProcPerNode: card.Int{Value: 8, Set: true}}
	})
	m.Deployment.Target = "slurm"
	jobs, _, err := plan.Jobs(m, plan.Options{ManifestDir: "/m", Bare: true})
	if err != nil {
		t.Fatal(err)
	}
	j := jobs[0]
	if j.WorldSize != 1 || j.Expect.WorldSize != 1 || j.RanksPerNode != 1 || j.NNodes != 4 || j.NProcPerNode != 8 {
		t.Errorf("%+v", j)
	}
	if text := plan.Describe(j); !strings.Contains(text, "1 (on the first of 4 nodes)") {
		t.Errorf("%s", text)
	}
}

func TestLauncherThatNeedsMoreNodes(t *testing.T) {
	for nnodes, told := range map[int]bool{1: true, 2: true, 3: false} {
		m := manifestOf([]string{"a"}, func(_ int, e *manifest.Entry) {
			e.Distributed = &card.Distributed{Launcher: "sglang-disagg", NNodes: card.Int{Value: nnodes, Set: true}}
		})
		jobs, warnings, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(warnings, "\n"), "needs at least 3 nodes") != told {
			t.Errorf("%d nodes: %q", nnodes, warnings)
		}
		if _, set := jobs[0].LauncherEnv["SGLANG_DISAGG_MODE"]; set == told {
			t.Errorf("%d nodes: %v", nnodes, jobs[0].LauncherEnv)
		}
	}
}

func TestBlocksOfLaunchers(t *testing.T) {
	for _, c := range []struct {
		launcher, block, text string
		want                  map[string]string
		fails, warns          string
	}{
		{"sglang-disagg", "sglang_disagg", `{"prefill_nodes": "2", "decode_nodes": 1}`, map[string]string{"SGLANG_DISAGG_PREFILL_NODES": "2", "SGLANG_DISAGG_DECODE_NODES": "1"}, "", ""},
		{"sglang-disagg", "sglang_disagg", `{"prefill_nodes": 2, "decode_nodes": 3}`, nil, "/deployment_config/distributed/sglang_disagg: 1 proxy, 2 prefill and 3 decode nodes do not make 4", ""},
		{"sglang-disagg", "sglang_disagg", `{"prefill_nodes": 2}`, map[string]string{"SGLANG_DISAGG_PREFILL_NODES": "1"}, "", "count together only"},
		{"sglang-disagg", "sglang_disagg", `null`, map[string]string{"SGLANG_DISAGG_PREFILL_NODES": "1"}, "", ""},
		{"sglang-disagg", "sglang_disagg", `[]`, nil, "/deployment_config/distributed/sglang_disagg: ", ""},
		{"primus", "primus", `{"config_path": "my cfg.yaml", "cli_extra": "--x 'y z'", "backend": "megatron", "more": 1}`, map[string]string{"PRIMUS_CONFIG_PATH": "my cfg.yaml", "PRIMUS_CLI_EXTRA": "--x 'y z'", "BACKEND": "megatron"}, "", ""},
		{"vllm", "sglang_disagg", `{"prefill_nodes": 9, "decode_nodes": 9}`, map[string]string{"SGLANG_DISAGG_MODE": ""}, "", ""},
	} {
		m := manifestOf([]string{"a"}, nil)
		m.Deployment.Distributed = &manifest.Distributed{
			Distributed: card.Distributed{Launcher: c.launcher, NNodes: card.Int{Value: 4, Set: true}},
			Blocks:      map[string]json.RawMessage{c.block: json.RawMessage(c.text)},
		}
		jobs, warnings, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"})
		if (err == nil) != (c.fails == "") || (err != nil && !strings.Contains(err.Error(), c.fails)) {
			t.Errorf("%s: %v; want %q", c.text, err, c.fails)
		}
		if err != nil {
			continue
		}
		if !strings.Contains(strings.Join(warnings, "\n"), c.warns) {
			t.Errorf("%s: %q; want %q", c.text, warnings, c.warns)
		}
		for name, want := range c.want {
			if got := jobs[0].LauncherEnv[name]; got != want {
				t.Errorf("%s: %s is %q, want %q", c.text, name, got, want)
			}
		}
	}
}

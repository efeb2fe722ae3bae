package plan_test

import (
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

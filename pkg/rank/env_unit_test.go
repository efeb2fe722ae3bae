package rank_test

import (
	"path/filepath"
	"testing"

	"assay/pkg/plan"
)

// A workload is told its variant and its duration, which the manifest's own variables
// win over; they do not win over the names of ranks.
func TestAsked(t *testing.T) {
	f := newFixture(t, "")
	f.attempt.Number, f.attempt.DurationSeconds = 3, 90
	f.attempt.Job.Variant = map[string]string{"message-size": "1MiB", "ünits": "µ", "threads": "2"}
	f.attempt.Job.Env = map[string]string{"ASSAY_VARIANT_THREADS": "4", "BURNIN_DURATION_SECONDS": "5", "ASSAY_ATTEMPT": "9", "ASSAY_NODE": "x"}
	f.call.Env = append(f.call.Env, "ASSAY_VARIANT_OTHER=left", "BURNIN_DURATION_SECONDS=77", "ASSAY_VARIANTS=kept")
	f.call.Node = "node7"
	got := environ(t, f)
	for name, want := range map[string]string{
		"ASSAY_DURATION_SECONDS": "90", "BURNIN_DURATION_SECONDS": "5",
		"ASSAY_VARIANT_MESSAGE_SIZE": "1MiB", "BURNIN_VARIANT_MESSAGE_SIZE": "1MiB", "ASSAY_VARIANT__NITS": "µ",
		"ASSAY_VARIANT_THREADS": "4", "BURNIN_VARIANT_THREADS": "2",
		"ASSAY_ATTEMPT": "3", "BURNIN_ATTEMPT": "3", "ASSAY_NODE": "node7", "ASSAY_ROOT_NODE": "node7", "ASSAY_VARIANTS": "kept",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, name := range []string{"ASSAY_VARIANT_OTHER", "ASSAY_PEER_NODE", "BURNIN_ROOT_NODE", "ASSAY_READY_FILE"} {
		if value, set := got[name]; set {
			t.Errorf("%s is set to %q", name, value)
		}
	}
}

// Workloads learn the names of nodes where they are known.
func TestNodes(t *testing.T) {
	for name, tt := range map[string]struct {
		scope string
		rank  int
		nodes []string // of the job
		hosts []string // of the scheduler
		slurm *plan.Slurm
		k8s   *plan.K8s
		want  map[string]string // "": not set
	}{
		"server here": {"pair", 0, []string{"n1", "n2"}, nil, nil, nil, map[string]string{
			"ASSAY_PEER_NODE": "n2", "ASSAY_ROOT_NODE": "self", "BURNIN_PEER_NODE": "n2", "BURNIN_ROOT_NODE": "",
		}},
		"client here": {"pair", 1, []string{"n1", "n2"}, nil, nil, nil, map[string]string{
			"ASSAY_PEER_NODE": "n1", "ASSAY_ROOT_NODE": "n1", "BURNIN_PEER_NODE": "n1",
		}},
		"SLURM has its own order": {"pair", 1, []string{"n2", "n1"}, []string{"n1", "n2"}, &plan.Slurm{}, nil, map[string]string{
			"ASSAY_PEER_NODE": "n1", "BURNIN_PEER_NODE": "n1",
		}},
		"SLURM, not known": {"pair", 1, []string{"n2", "n1"}, nil, &plan.Slurm{}, nil, map[string]string{"ASSAY_PEER_NODE": ""}},
		"group": {"group", 1, []string{"n1", "n2"}, nil, nil, nil, map[string]string{
			"ASSAY_PEER_NODE": "", "ASSAY_ROOT_NODE": "n1", "BURNIN_ROOT_NODE": "n1", "BURNIN_PEER_NODE": "",
		}},
		"pods": {"pair", 0, []string{"n1", "n2"}, []string{"p0", "p1"}, nil, &plan.K8s{}, map[string]string{
			"ASSAY_PEER_NODE": "", "ASSAY_ROOT_NODE": "self",
		}},
		"all on this machine": {"pair", 1, nil, nil, nil, nil, map[string]string{"ASSAY_PEER_NODE": "self", "ASSAY_ROOT_NODE": "self"}},
	} {
		f := newFixture(t, "")
		job := &f.attempt.Job
		job.Scope, job.Nodes, job.NNodes, job.WorldSize, job.Slurm, job.K8s = tt.scope, tt.nodes, 2, 2, tt.slurm, tt.k8s
		f.call.Rank, f.call.Node, f.call.Hosts = tt.rank, "self", tt.hosts
		got := environ(t, f)
		for variable, want := range tt.want {
			if got[variable] != want {
				t.Errorf("%s: %s is %q, want %q", name, variable, got[variable], want)
			}
		}
	}
}

// Rank 0 of a job whose others wait for it learns how to say that it is ready.
func TestReadyFileIsNamed(t *testing.T) {
	f := newFixture(t, "")
	f.attempt.Job.WorldSize, f.attempt.Job.Ready = 2, &plan.Ready{Kind: plan.ReadyFile, TimeoutSeconds: 1}
	if got, want := environ(t, f)["ASSAY_READY_FILE"], filepath.Join(f.dir(), "ready"); got != want {
		t.Errorf("ASSAY_READY_FILE is %q, want %q", got, want)
	}
}

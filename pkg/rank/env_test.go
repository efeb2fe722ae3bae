package rank_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// environ runs a job that prints its environment.
func environ(t *testing.T, f *fixture) map[string]string {
	t.Helper()
	f.attempt.Job.Program.Command = []string{"env", "-0"}
	if exit, end := f.run(); exit != 0 {
		t.Fatalf("exit %d: %s", exit, end.Message)
	}
	env := map[string]string{}
	for _, kv := range strings.Split(strings.TrimSuffix(f.read("stdout"), "\x00"), "\x00") {
		name, value, _ := strings.Cut(kv, "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		env[name] = value
	}
	return env
}

func TestRankEnvironment(t *testing.T) {
	f := newFixture(t, "")
	f.attempt.Job.NNodes, f.attempt.Job.NProcPerNode, f.attempt.Job.RanksPerNode, f.attempt.Job.WorldSize = 2, 4, 2, 4
	f.attempt.Job.Runner = "torchrun --node_rank=${NODE_RANK} --master_addr=${MASTER_ADDR} --master_port=${MASTER_PORT} $HOME"
	f.attempt.Job.Expect.MultipleResults = "out/perf_x.csv"
	f.call.Rank, f.call.MasterAddr, f.call.MasterPort, f.call.Node = 3, "node-a", 1234, "n2"
	f.call.Env = append(f.call.Env, "RANK=77", "OLDPWD=/x", "BURNIN_ROLE=client", "KEPT=yes",
		"ASSAY_DURATION_SECONDS=9", "BURNIN_VARIANT_SIZE=9", "ASSAY_PEER_NODE=x", "ASSAY_ROOT_NODE=x", "BURNIN_ROOT_NODE=x", "ASSAY_READY_FILE=x")
	got := environ(t, f)
	want := map[string]string{
		"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "NODE_RANK": "1", "NNODES": "2", "NPROC_PER_NODE": "4",
		"MASTER_ADDR": "node-a", "MASTER_PORT": "1234",
		"MAD_MULTI_NODE_RUNNER": "torchrun --node_rank=1 --master_addr=node-a --master_port=1234 $HOME",
		"MAD_MODEL_NAME":        "a model", "MAD_NODE_RANK": "1", "MAD_DEPLOYMENT_TYPE": "local", "MAD_COLLECT_METRICS": "false",
		"MAD_OUTPUT_CSV": filepath.Join(f.dir(), "results/perf_x.csv"),
		"ASSAY_RUN_ID":   "r1", "ASSAY_RANK": "3", "ASSAY_NRANKS": "4", "ASSAY_ROLE": "worker", "ASSAY_PEER_HOST": "",
		"ASSAY_ATTEMPT": "1", "ASSAY_NODE": "n2",
		"ASSAY_ROOT_HOST": "node-a", "ASSAY_RESULTS_DIR": filepath.Join(f.dir(), "results"),
		"BURNIN_ATTEMPT": "1", "BURNIN_RESULTS_DIR": filepath.Join(f.dir(), "results"),
		"PWD": filepath.Join(f.dir(), "work"), "KEPT": "yes", "PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRankZero(t *testing.T) {
	f := newFixture(t, "")
	f.attempt.Job.MasterPort, f.call.MasterPort = 4711, 0
	got := environ(t, f)
	for name, want := range map[string]string{
		"MAD_COLLECT_METRICS": "true", "ASSAY_ROLE": "root", "MASTER_PORT": "4711",
		"MAD_OUTPUT_CSV": filepath.Join(f.dir(), "results/results.csv"),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestScopes(t *testing.T) {
	tests := []struct {
		scope string
		rank  int
		want  map[string]string
		not   []string
	}{
		{"pair", 0, map[string]string{"ASSAY_ROLE": "server", "ASSAY_PEER_HOST": "", "BURNIN_ROLE": "server", "BURNIN_PEER_HOST": ""}, []string{"BURNIN_RANK", "BURNIN_NRANKS"}},
		{"pair", 1, map[string]string{"ASSAY_ROLE": "client", "ASSAY_PEER_HOST": "a", "BURNIN_ROLE": "client", "BURNIN_PEER_HOST": "a"}, []string{"BURNIN_RANK"}},
		{"group", 1, map[string]string{"ASSAY_ROLE": "worker", "BURNIN_RANK": "1", "BURNIN_NRANKS": "2", "BURNIN_ROOT_HOST": "a"}, []string{"BURNIN_ROLE"}},
		{"node", 0, map[string]string{"ASSAY_ROLE": "root"}, []string{"BURNIN_ROLE", "BURNIN_RANK"}},
	}
	for _, tt := range tests {
		f := newFixture(t, "")
		f.attempt.Job.Scope, f.attempt.Job.NNodes, f.attempt.Job.WorldSize = tt.scope, 2, 2
		f.call.Rank, f.call.MasterAddr = tt.rank, "a"
		got := environ(t, f)
		for name, want := range tt.want {
			if got[name] != want {
				t.Errorf("%s, rank %d: %s is %q, want %q", tt.scope, tt.rank, name, got[name], want)
			}
		}
		for _, name := range tt.not {
			if _, set := got[name]; set {
				t.Errorf("%s, rank %d: %s is set", tt.scope, tt.rank, name)
			}
		}
	}
}

// The server of a pair learns its client's host only when that is its own.
func TestPeerOfTheServer(t *testing.T) {
	for _, tt := range []struct {
		nodes        int
		master, want string
	}{{2, "a", ""}, {1, "a", "a"}, {2, "127.0.0.1", "127.0.0.1"}, {2, "::1", "::1"}, {2, "localhost", "localhost"}} {
		f := newFixture(t, "")
		f.attempt.Job.Scope, f.attempt.Job.NNodes, f.attempt.Job.WorldSize = "pair", tt.nodes, 2
		f.call.MasterAddr = tt.master
		got := environ(t, f)
		if got["ASSAY_PEER_HOST"] != tt.want || got["BURNIN_PEER_HOST"] != tt.want {
			t.Errorf("%d nodes, %s: the peer is %q and %q, want %q", tt.nodes, tt.master, got["ASSAY_PEER_HOST"], got["BURNIN_PEER_HOST"], tt.want)
		}
	}
}

func TestGPUs(t *testing.T) {
	tests := []struct {
		name        string
		vendor      string
		gpus, ranks int
		rank        int
		env         []string
		manifest    map[string]string
		want        map[string]string // "" means not set
	}{
		{"no GPUs", "NVIDIA", 0, 1, 0, nil, nil, map[string]string{"CUDA_VISIBLE_DEVICES": ""}},
		{"all GPUs", "NVIDIA", -1, 1, 0, nil, nil, map[string]string{"CUDA_VISIBLE_DEVICES": ""}},
		{"one rank", "NVIDIA", 4, 1, 0, nil, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "0,1,2,3", "HIP_VISIBLE_DEVICES": ""}},
		{"AMD", "AMD", 2, 1, 0, nil, nil, map[string]string{"HIP_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES": ""}},
		{"a GPU a rank", "NVIDIA", 4, 4, 2, nil, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "2"}},
		{"two GPUs a rank", "NVIDIA", 4, 2, 1, nil, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "2,3"}},
		{"more ranks than GPUs", "NVIDIA", 2, 4, 3, nil, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "1"}},
		{"granted by the scheduler", "NVIDIA", 2, 1, 0, []string{"CUDA_VISIBLE_DEVICES=5,7"}, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "5,7"}},
		{"granted and shared", "NVIDIA", 2, 2, 1, []string{"CUDA_VISIBLE_DEVICES=5,7"}, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "7"}},
		{"HIP counts within ROCr", "AMD", 8, 2, 1, []string{"ROCR_VISIBLE_DEVICES=4,5"}, nil, map[string]string{"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "4,5"}},
		{"chosen by the manifest", "NVIDIA", 4, 4, 2, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "0"}, map[string]string{"CUDA_VISIBLE_DEVICES": "0"}},
		{"vendor not known", "", 4, 4, 2, nil, nil, map[string]string{"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, "")
			f.attempt.Job.GPUVendor, f.attempt.Job.GPUsPerNode = tt.vendor, tt.gpus
			f.attempt.Job.RanksPerNode, f.attempt.Job.WorldSize = tt.ranks, tt.ranks
			f.attempt.Job.Env = tt.manifest
			f.call.Rank = tt.rank
			f.call.Env = append(f.call.Env, tt.env...)
			got := environ(t, f)
			for name, want := range tt.want {
				if got[name] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
		})
	}
}

func TestEnvFile(t *testing.T) {
	f := newFixture(t, "")
	path := f.file("mad.env", "A=file\nB=file\nC=$C-seen\nSECRET=hunter2\nunset GONE\nHERE=$(pwd)\nRANK=9\n", 0o600)
	f.attempt.Job.EnvFile = &plan.EnvFile{Path: path, Format: "shell", TimeoutSeconds: 30}
	f.attempt.Job.Env = map[string]string{"B": "manifest"}
	f.call.Env = append(f.call.Env, "A=inherited", "B=inherited", "C=inherited", "GONE=1")
	got := environ(t, f)
	for name, want := range map[string]string{
		"A": "file", "B": "manifest", "C": "inherited-seen", "SECRET": "hunter2", "HERE": f.model, "RANK": "0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if _, set := got["GONE"]; set {
		t.Error("GONE is still set")
	}
	if log := f.read(rundir.WrapperLog); strings.Contains(log, "hunter2") || !strings.Contains(log, "SECRET") {
		t.Errorf("the log must name variables and show no value: %q", log)
	}
	if strings.Contains(f.read(rundir.EndFile)+f.read(rundir.BeginFile), "hunter2") {
		t.Error("a marker shows a value")
	}
}

func TestEnvFileFailsOnTheNode(t *testing.T) {
	for name, text := range map[string]string{"status": "SECRET=hunter2\nset -x\nA=$SECRET\nfalse\n", "syntax": "SECRET=hunter2 (\n"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `touch "$MODEL_DIR/ran"`)
			f.attempt.Job.Env = map[string]string{"MODEL_DIR": f.model}
			path := f.file("mad.env", text, 0o600)
			f.attempt.Job.EnvFile = &plan.EnvFile{Path: path, Format: "shell"}
			exit, end := f.run()
			if exit != 4 || end.Outcome != evidence.OutcomeRefused || end.Code != "ENV_FILE" || !strings.Contains(end.Message, path) {
				t.Errorf("exit %d, end %+v", exit, end)
			}
			if strings.Contains(end.Message+f.read(rundir.WrapperLog), "hunter2") {
				t.Errorf("a value is given away: %q", end.Message)
			}
			if _, err := os.Stat(filepath.Join(f.model, "ran")); err == nil {
				t.Error("the workload was started")
			}
		})
	}
}

// A pod has devices of its own, however many ranks its node has.
func TestPodsHaveTheirOwnDevices(t *testing.T) {
	f := newFixture(t, "")
	job := &f.attempt.Job
	job.NNodes, job.NProcPerNode, job.RanksPerNode, job.WorldSize = 1, 4, 4, 4
	job.GPUVendor, job.GPUsPerNode, job.K8s = "NVIDIA", 4, &plan.K8s{GPUs: 1}
	f.call.Rank = 3
	got := environ(t, f)
	if _, set := got["CUDA_VISIBLE_DEVICES"]; set || got["LOCAL_RANK"] != "0" || got["NODE_RANK"] != "0" {
		t.Errorf("CUDA_VISIBLE_DEVICES=%q LOCAL_RANK=%s NODE_RANK=%s", got["CUDA_VISIBLE_DEVICES"], got["LOCAL_RANK"], got["NODE_RANK"])
	}
}

package launcher_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"assay/pkg/launcher"
)

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"": "none", "none": "none", "native": "none", "torchrun": "torchrun", " TorchRun ": "torchrun",
		"megatron": "megatron-lm", "megatron-lm": "megatron-lm", "sglang_disagg": "sglang-disagg", "slurm-multi": "slurm_multi", "mpirun": "mpi",
	} {
		l, err := launcher.Find(name)
		if err != nil || l.Name != want {
			t.Errorf("Find(%q) = %q, %v; want %q", name, l.Name, err, want)
		}
	}
}

func TestFindUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"torchrn":  `unknown launcher "torchrn" — did you mean "torchrun"? (known: none, native, docker, srun, mpi, mpirun, torchrun, torchtitan, deepspeed, megatron-lm, megatron, primus, vllm, sglang, sglang-disagg, sglang_disagg, slurm_multi, slurm-multi)`,
		"sgl-lang": `did you mean "sglang"?`,
		"horovod":  `unknown launcher "horovod" (known: `,
	} {
		_, err := launcher.Find(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): %v; want …%s…", name, err, want)
		}
	}
}

func TestRunnerAndRanks(t *testing.T) {
	const many = "torchrun --nnodes=4 --nproc_per_node=8 --node_rank=${NODE_RANK} --master_addr=${MASTER_ADDR} --master_port=${MASTER_PORT}"
	const one = "torchrun --standalone --nproc_per_node=8"
	for _, c := range []struct {
		name, one, many string
		ranks           int
	}{
		{"none", "", "", 8},
		{"srun", "", "", 8},
		{"mpi", "", "", 8},
		{"torchrun", one, many, 1},
		{"torchtitan", one, many, 1},
		{"deepspeed", "deepspeed --num_gpus=8", many, 1},
		{"megatron-lm", one, many, 1},
		{"primus", one, many, 1},
		{"vllm", "", "", 1},
		{"sglang", "", "", 1},
		{"sglang-disagg", "", "", 1},
		{"slurm_multi", "", "", 1},
	} {
		l, err := launcher.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Runner(1, 8); got != c.one {
			t.Errorf("%s on one node: %q, want %q", c.name, got, c.one)
		}
		if got := l.Runner(4, 8); got != c.many {
			t.Errorf("%s on four nodes: %q, want %q", c.name, got, c.many)
		}
		if got := l.RanksPerNode(8); got != c.ranks {
			t.Errorf("%s: %d ranks a node, want %d", c.name, got, c.ranks)
		}
	}
}

func TestFindNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		if l, err := launcher.Find(name); err == nil && l.Name == "" {
			t.Fatalf("Find(%q) has neither a name nor an error", name)
		}
	})
}

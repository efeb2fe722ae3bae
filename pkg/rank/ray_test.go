package rank_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gpuVariables are all that may tell a program which GPUs to use.
func gpuVariables() []string {
	return []string{
		"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
		"RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES",
	}
}

// everything is what SLURM sets for a job that was granted GPUs 4 and 5, where
// nobody told it whose they are.
func everything() []string {
	return []string{"CUDA_VISIBLE_DEVICES=4,5", "ROCR_VISIBLE_DEVICES=4,5", "GPU_DEVICE_ORDINAL=4,5", "ZE_AFFINITY_MASK=4,5"}
}

func TestGPUsOfRay(t *testing.T) {
	type env = map[string]string
	for _, tt := range []struct {
		name, launcher, vendor string
		gpus                   int
		inherited              []string
		manifest               env
		want                   env
	}{
		{"AMD", "vllm", "AMD", 8, nil, nil, env{"HIP_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}},
		{"NVIDIA", "vllm", "NVIDIA", 2, nil, nil, env{"CUDA_VISIBLE_DEVICES": "0,1"}},
		{"AMD, granted by SLURM", "vllm", "AMD", 2, everything(), nil, env{"HIP_VISIBLE_DEVICES": "4,5"}},
		{"NVIDIA, granted by SLURM", "sglang", "NVIDIA", 2, everything(), nil, env{"CUDA_VISIBLE_DEVICES": "4,5"}},
		{"vendor not known, granted by SLURM", "sglang-disagg", "", 2, everything(), nil, env{"CUDA_VISIBLE_DEVICES": "4,5"}},
		{"vendor not known, ROCr", "vllm", "", 2, []string{"ROCR_VISIBLE_DEVICES=1,2"}, nil, env{"HIP_VISIBLE_DEVICES": "1,2"}},
		{"vendor not known, HIP within ROCr", "vllm", "", 0, []string{"ROCR_VISIBLE_DEVICES=4,6", "HIP_VISIBLE_DEVICES=1"}, nil, env{"HIP_VISIBLE_DEVICES": "6"}},
		{"AMD, all GPUs, granted by SLURM", "vllm", "AMD", -1, everything(), nil, env{"HIP_VISIBLE_DEVICES": "4,5"}},
		{"AMD, granted by CUDA's name", "vllm", "AMD", 2, []string{"CUDA_VISIBLE_DEVICES=4,5"}, nil, env{"HIP_VISIBLE_DEVICES": "4,5"}},
		{"AMD, granted nothing", "vllm", "AMD", 2, []string{"CUDA_VISIBLE_DEVICES=NoDevFiles"}, nil, env{"HIP_VISIBLE_DEVICES": "0,1"}},
		{"AMD, names of devices", "vllm", "AMD", 2, []string{"ROCR_VISIBLE_DEVICES=GPU-a,GPU-b"}, nil, env{"HIP_VISIBLE_DEVICES": "GPU-a,GPU-b"}},
		{"AMD, no GPUs", "vllm", "AMD", 0, everything(), nil, env{"HIP_VISIBLE_DEVICES": "4,5"}},
		{"AMD, both chosen by the manifest", "vllm", "AMD", 2, nil, env{"HIP_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "1"}, env{"HIP_VISIBLE_DEVICES": "3"}},
		{"NVIDIA, both chosen by the manifest", "vllm", "NVIDIA", 2, nil, env{"HIP_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "1"}, env{"CUDA_VISIBLE_DEVICES": "1"}},
		{"what an image sets", "vllm", "AMD", 1, []string{"RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES=1"}, nil, env{"HIP_VISIBLE_DEVICES": "0"}},
		{"what the manifest sets", "vllm", "AMD", 1, nil, env{"RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES": "1"}, env{"HIP_VISIBLE_DEVICES": "0", "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES": "1"}},
		{"no Ray, AMD", "torchrun", "AMD", 2, everything(), nil, env{
			"HIP_VISIBLE_DEVICES": "0,1", "CUDA_VISIBLE_DEVICES": "4,5", "ROCR_VISIBLE_DEVICES": "4,5", "GPU_DEVICE_ORDINAL": "4,5", "ZE_AFFINITY_MASK": "4,5",
		}},
		{"no Ray, AMD, granted by CUDA's name", "torchrun", "AMD", 2, []string{"CUDA_VISIBLE_DEVICES=4,5"}, nil, env{"HIP_VISIBLE_DEVICES": "4,5", "CUDA_VISIBLE_DEVICES": "4,5"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, "")
			f.attempt.Job.Launcher, f.attempt.Job.GPUVendor, f.attempt.Job.GPUsPerNode = tt.launcher, tt.vendor, tt.gpus
			f.attempt.Job.Env = tt.manifest
			f.call.Env = append(f.call.Env, tt.inherited...)
			got, all := env{}, environ(t, f)
			for _, name := range gpuVariables() {
				if value, set := all[name]; set {
					got[name] = value
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

package container_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/container"
)

// TestGranted passes on what a scheduler granted, and never a token.
func TestGranted(t *testing.T) {
	for name, c := range map[string]struct {
		env    []string
		vendor string
		chosen []string
		want   []string
		gpus   container.GPUs
	}{
		"nothing":                  {[]string{"PATH=/bin", "HOME=/h", "SECRET=x"}, "NVIDIA", nil, nil, container.GPUs{Vendor: "NVIDIA"}},
		"variables":                {[]string{"CUDA_VISIBLE_DEVICES=2,3", "SLURM_JOB_ID=7", "SLURM_JWT=token"}, "NVIDIA", nil, []string{"CUDA_VISIBLE_DEVICES=2,3", "SLURM_JOB_ID=7"}, container.GPUs{Vendor: "NVIDIA"}},
		"numbers on the node":      {[]string{"CUDA_VISIBLE_DEVICES=0,1", "SLURM_JOB_GPUS=4", "SLURM_STEP_GPUS=2,3"}, "NVIDIA", []string{"0"}, []string{"SLURM_JOB_GPUS=4", "SLURM_STEP_GPUS=2,3"}, container.GPUs{Vendor: "NVIDIA", Devices: []string{"2", "3"}}},
		"of AMD":                   {[]string{"HIP_VISIBLE_DEVICES=0", "SLURM_STEP_GPUS=6"}, "AMD", nil, []string{"SLURM_STEP_GPUS=6", "ROCR_VISIBLE_DEVICES=6"}, container.GPUs{Vendor: "AMD", Devices: []string{"6"}}},
		"chosen":                   {nil, "AMD", []string{"1", "3"}, []string{"ROCR_VISIBLE_DEVICES=1,3"}, container.GPUs{Vendor: "AMD", Devices: []string{"1", "3"}}},
		"no GPU of a known vendor": {[]string{"SLURM_STEP_GPUS=6", "ROCR_VISIBLE_DEVICES=1"}, "", nil, []string{"SLURM_STEP_GPUS=6", "ROCR_VISIBLE_DEVICES=1"}, container.GPUs{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, gpus := container.Granted(c.env, c.vendor, c.chosen)
			if d := cmp.Diff(c.want, got) + cmp.Diff(c.gpus, gpus); d != "" {
				t.Error(d)
			}
		})
	}
}

package container

import (
	"slices"
	"strings"

	"assay/pkg/environ"
)

// GPUs says which GPUs of a node a container gets. The zero value is none.
type GPUs struct {
	Vendor  string   // "NVIDIA" or "AMD"; empty: none are given
	Devices []string // numbers on the node; none: all
	Groups  []string // that own the devices of AMD, as numbers
}

// args are the options of docker or podman.
func (g GPUs) args(engine string) []string {
	switch {
	case g.Vendor == "NVIDIA" && engine == "podman":
		return g.cdi()
	case g.Vendor == "NVIDIA" && len(g.Devices) == 0:
		return []string{"--gpus", "all"}
	case g.Vendor == "NVIDIA":
		// The value is a row of CSV, so the list of devices has to be quoted.
		return []string{"--gpus", `"device=` + strings.Join(g.Devices, ",") + `"`}
	case g.Vendor == "AMD":
		args := []string{"--device", "/dev/kfd", "--device", "/dev/dri", "--security-opt", "seccomp=unconfined"}
		groups := g.Groups
		if len(groups) == 0 {
			groups = []string{"video", "render"}
		}
		for _, name := range groups {
			args = append(args, "--group-add", name)
		}
		return args
	}
	return nil
}

// cdi names devices of NVIDIA as the Container Device Interface does.
func (g GPUs) cdi() []string {
	devices := g.Devices
	if len(devices) == 0 {
		devices = []string{"all"}
	}
	var args []string
	for _, d := range devices {
		args = append(args, "--device", "nvidia.com/gpu="+d)
	}
	return args
}

// apptainer is the option of apptainer.
func (g GPUs) apptainer() []string {
	switch g.Vendor {
	case "NVIDIA":
		return []string{"--nv"}
	case "AMD":
		return []string{"--rocm"}
	}
	return nil
}

// visible are the variables that single out GPUs for a process.
func visible() []string {
	return []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"}
}

// Granted says what a scheduler granted a rank on its node: the variables that the
// container gets for it, KEY=VALUE, and the GPUs. env is the environment of the rank,
// chosen are the GPUs that the manifest singles out.
//
// SLURM numbers the GPUs in CUDA_VISIBLE_DEVICES within what it lets the step see. A
// container of an engine is outside of that, so there the numbers on the node count.
func Granted(env []string, vendor string, chosen []string) ([]string, GPUs) {
	g := GPUs{Vendor: vendor, Devices: chosen}
	if step := firstOf(env, "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"); step != "" && vendor != "" {
		g.Devices = strings.Split(step, ",")
	}
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case name == "SLURM_JWT", name == "SLURM_EXPORT_ENV":
		case strings.HasPrefix(name, "SLURM_"), name == "SLURMD_NODENAME":
			out = append(out, kv)
		case slices.Contains(visible(), name) && len(g.Devices) == 0:
			out = append(out, kv)
		}
	}
	if vendor == "AMD" && len(g.Devices) > 0 {
		out = append(out, "ROCR_VISIBLE_DEVICES="+strings.Join(g.Devices, ","))
	}
	return out, g
}

func firstOf(env []string, names ...string) string {
	for _, name := range names {
		if v := environ.Get(env, name); v != "" {
			return v
		}
	}
	return ""
}

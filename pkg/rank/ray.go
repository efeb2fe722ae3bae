package rank

import (
	"slices"
	"strconv"
	"strings"

	"assay/pkg/environ"
	"assay/pkg/launcher"
)

// The variables that choose GPUs. A scheduler may set them all, whatever the GPUs
// of a node are.
const (
	cudaDevices  = "CUDA_VISIBLE_DEVICES"
	hipDevices   = "HIP_VISIBLE_DEVICES"
	rocrDevices  = "ROCR_VISIBLE_DEVICES"
	openCL       = "GPU_DEVICE_ORDINAL"
	zeDevices    = "ZE_AFFINITY_MASK"
	rayKeepsHIP  = "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES"
	vendorNvidia = "NVIDIA"
	vendorAMD    = "AMD"
)

// oneLayer leaves a workload that runs on Ray the variable of one vendor: Ray
// refuses to start on AMD where CUDA_VISIBLE_DEVICES disagrees with
// HIP_VISIBLE_DEVICES, and where ROCR_VISIBLE_DEVICES is set without the latter.
func (w *wrapper) oneLayer(v *variables) {
	l, err := launcher.Find(w.attempt.Job.Launcher)
	if err != nil || !l.Ray {
		return
	}
	keep := cudaDevices
	if w.vendorOf(v) == vendorAMD {
		keep = hipDevices
		w.foldIntoHIP(v)
	}
	for _, name := range []string{cudaDevices, hipDevices, rocrDevices, openCL, zeDevices} {
		if name != keep {
			w.drop(v, name)
		}
	}
	if v.values[rayKeepsHIP] == environ.Get(w.options.Env, rayKeepsHIP) {
		v.unset(rayKeepsHIP) // of a container image; it makes Ray ignore what HIP shows
	}
}

// vendorOf is whose GPUs the rank uses: the manifest's word, else what the
// variables tell. HIP obeys CUDA_VISIBLE_DEVICES too, so that one is the guess.
func (w *wrapper) vendorOf(v *variables) string {
	if vendor := strings.ToUpper(w.attempt.Job.GPUVendor); vendor == vendorAMD || vendor == vendorNvidia {
		return vendor
	}
	if v.values[cudaDevices] == "" && (v.values[hipDevices] != "" || v.values[rocrDevices] != "") {
		return vendorAMD
	}
	return vendorNvidia
}

// foldIntoHIP says with HIP_VISIBLE_DEVICES alone what it says together with
// ROCR_VISIBLE_DEVICES, which it counts within. GPUs that a node granted by
// another variable only are taken from there.
func (w *wrapper) foldIntoHIP(v *variables) {
	hip, chosen := v.values[hipDevices]
	rocr := v.values[rocrDevices]
	switch {
	case rocr != "" && chosen:
		v.set(hipDevices, within(rocr, hip))
	case rocr != "":
		v.set(hipDevices, rocr)
	case !chosen:
		if granted := w.granted(v, hipDevices); granted != "" {
			v.set(hipDevices, granted)
		}
	}
}

// within looks up positions in a list of devices. What is no position in it
// stands as it is.
func within(devices, positions string) string {
	list := strings.Split(devices, ",")
	words := strings.Split(positions, ",")
	for i, word := range words {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 0 || n >= len(list) {
			return positions
		}
		words[i] = list[n]
	}
	return strings.Join(words, ",")
}

// drop removes a variable, and tells when it was not just inherited.
func (w *wrapper) drop(v *variables, name string) {
	value, set := v.values[name]
	if set && value != environ.Get(w.options.Env, name) {
		w.note("%s is not passed on: launcher %s runs on Ray, which takes the variable of one vendor only", name, w.attempt.Job.Launcher)
	}
	v.unset(name)
}

// granted is what a scheduler granted by another variable than the one that is
// meant, or "".
func (w *wrapper) granted(v *variables, name string) string {
	if name != hipDevices {
		return ""
	}
	for _, other := range []string{cudaDevices, openCL} {
		if list := v.values[other]; list != "" && !slices.Contains(strings.Split(list, ","), noDevices) {
			return list
		}
	}
	return ""
}

// noDevices is what some versions of SLURM set where they grant no GPU.
const noDevices = "NoDevFiles"

package rank

import (
	"strconv"
	"strings"

	"assay/pkg/environ"
)

// setGPUs says which GPUs the rank may use. What the manifest or the env_file
// chose stands. Ranks that share a node share its devices out evenly: those that
// the scheduler granted, by its own variable, or else the first GPUsPerNode.
// Only the vendor's variable is set, for runtimes that know both refuse two that
// disagree.
func (w *wrapper) setGPUs(v *variables) {
	w.shareOut(v)
	w.oneLayer(v)
}

// shareOut sets the vendor's variable.
func (w *wrapper) shareOut(v *variables) {
	job := w.attempt.Job
	if job.GPUsPerNode <= 0 || job.K8s != nil {
		return // a pod sees no other devices than its own
	}
	var name string
	switch strings.ToUpper(job.GPUVendor) {
	case vendorNvidia:
		name = cudaDevices
	case vendorAMD:
		name = hipDevices
	default:
		return
	}
	inherited := environ.Get(w.options.Env, name)
	if v.values[name] != inherited || w.options.Contained && inherited != "" {
		return // chosen by the env_file or the manifest, or by who started the container
	}
	devices := strings.Split(inherited, ",")
	if inherited == "" {
		devices = w.numbered(v, name)
	}
	v.set(name, strings.Join(share(devices, w.localRank(), job.RanksPerNode), ","))
}

// numbered gives the device numbers 0 … n-1. HIP counts within what ROCr shows,
// and within nothing else that a scheduler may have granted devices by.
func (w *wrapper) numbered(v *variables, name string) []string {
	n := w.attempt.Job.GPUsPerNode
	if rocr := v.values[rocrDevices]; name == hipDevices && rocr != "" {
		n = len(strings.Split(rocr, ","))
	} else if granted := w.granted(v, name); granted != "" {
		return strings.Split(granted, ",")
	}
	devices := make([]string, n)
	for i := range devices {
		devices[i] = strconv.Itoa(i)
	}
	return devices
}

// share is the part of the devices that one of several ranks on a node uses.
// More ranks than devices share a device each.
func share(devices []string, local, ranks int) []string {
	if ranks <= 1 || len(devices) == 0 {
		return devices
	}
	if each := len(devices) / ranks; each > 0 {
		from := min(local*each, len(devices)-each)
		return devices[from : from+each]
	}
	i := local % len(devices)
	return devices[i : i+1]
}

package k8s

import (
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/rundir"
)

// The names of the volumes that are not the manifest's.
const (
	volumeAssay = "assay"
	volumeJob   = "job"
	volumeShm   = "shm"
)

const shmPath = "/dev/shm"

// Where things are in the volume of the ConfigMap. The parts are mounted by
// themselves: a whole volume of a ConfigMap is full of links.
const (
	jobPart   = "job"
	modelPart = "model"
)

// podVolumes are the volumes of a pod, and where the rank sees them.
type podVolumes struct {
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
	results bool // one of them takes what ranks leave

	named map[string]string // of a source: the name of its volume
	at    map[string]bool   // mount paths
}

// volumes are those of assay itself, and those of the manifest.
func (r *renderer) volumes() (*podVolumes, error) {
	v := &podVolumes{named: map[string]string{}, at: map[string]bool{}}
	if !r.k.Unwrapped {
		v.add(corev1.Volume{Name: volumeAssay, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			corev1.VolumeMount{MountPath: pod.Root})
	}
	r.jobVolume(v)
	if r.k.ShmSize != "" {
		size, err := quantity("shm_size", r.k.ShmSize)
		if err != nil {
			return nil, err
		}
		v.shm(&size)
	}
	for _, want := range r.k.Volumes {
		if err := v.given(want); err != nil {
			return nil, err
		}
	}
	if !v.at[shmPath] && !r.k.HostIPC { // which brings that of the node
		v.shm(nil)
	}
	return v, nil
}

// add adds a volume and where it is mounted.
func (v *podVolumes) add(volume corev1.Volume, mounts ...corev1.VolumeMount) {
	v.volumes = append(v.volumes, volume)
	for _, m := range mounts {
		m.Name = volume.Name
		v.at[m.MountPath] = true
		v.mounts = append(v.mounts, m)
	}
}

// jobVolume is the ConfigMap: the job file, and the scripts.
func (r *renderer) jobVolume(v *podVolumes) {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: r.name}}
	var mounts []corev1.VolumeMount
	if !r.k.Unwrapped {
		source.Items = append(source.Items, corev1.KeyToPath{Key: rundir.JobFile, Path: jobPart + "/" + rundir.JobFile})
		mounts = append(mounts, corev1.VolumeMount{MountPath: path.Dir(pod.JobFile), SubPath: jobPart, ReadOnly: true})
	}
	for _, f := range r.shipped.files {
		mode := int32(0o644)
		if f.executable || r.k.Unwrapped && f.path == r.shipped.program {
			mode = 0o755
		}
		source.Items = append(source.Items, corev1.KeyToPath{Key: f.key, Path: modelPart + "/" + f.path, Mode: &mode})
	}
	if len(r.shipped.files) > 0 {
		mounts = append(mounts, corev1.VolumeMount{MountPath: pod.ModelDir, SubPath: modelPart, ReadOnly: true})
	}
	if len(mounts) > 0 {
		v.add(corev1.Volume{Name: volumeJob, VolumeSource: corev1.VolumeSource{ConfigMap: source}}, mounts...)
	}
}

// shm replaces the shared memory of the container, of which runtimes give 64 MiB: the
// collectives and data loaders of every framework need more. Without a size it is
// bounded by the memory of the pod.
func (v *podVolumes) shm(size *resource.Quantity) {
	v.add(corev1.Volume{Name: volumeShm, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size},
	}}, corev1.VolumeMount{MountPath: shmPath})
}

// given adds a volume of the manifest.
func (v *podVolumes) given(want plan.Volume) error {
	if err := v.check(want); err != nil {
		return err
	}
	mount := corev1.VolumeMount{MountPath: path.Clean(want.MountPath), SubPath: want.SubPath, ReadOnly: want.ReadOnly}
	mounts := []corev1.VolumeMount{mount}
	if want.Results {
		v.results = true
		mount.MountPath = pod.ResultsDir
		mounts = append(mounts, mount)
	}
	source := "claim " + want.Claim
	if want.HostPath != "" {
		source = "path " + want.HostPath
	}
	name, have := v.named[source]
	if have {
		for _, m := range mounts {
			m.Name = name
			v.at[m.MountPath] = true
			v.mounts = append(v.mounts, m)
		}
		return nil
	}
	name = "v" + strconv.Itoa(len(v.named))
	v.named[source] = name
	v.add(corev1.Volume{Name: name, VolumeSource: sourceOf(want)}, mounts...)
	return nil
}

func sourceOf(want plan.Volume) corev1.VolumeSource {
	if want.Claim != "" {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: want.Claim}}
	}
	host := &corev1.HostPathVolumeSource{Path: want.HostPath}
	if want.Results {
		host.Type = new(corev1.HostPathDirectoryOrCreate)
	}
	return corev1.VolumeSource{HostPath: host}
}

// check refuses a volume that no pod can have.
func (v *podVolumes) check(want plan.Volume) error {
	at := path.Clean(want.MountPath)
	const field = "volumes"
	switch {
	case !path.IsAbs(want.MountPath) || at == "/" || strings.Contains(at, ":"):
		return refuse(field, "nothing can be mounted at %q: name an absolute path below /, without a colon", want.MountPath)
	case at == pod.Root || strings.HasPrefix(at, pod.Root+"/"):
		return refuse(field, "nothing can be mounted at %s: %s is assay's own", at, pod.Root)
	case v.at[at]:
		return refuse(field, "two volumes are mounted at %s", at)
	case want.HostPath != "" && (!path.IsAbs(want.HostPath) || climbs(want.HostPath)):
		return refuse(field, "the hostPath %q of %s is not an absolute path without '..'", want.HostPath, at)
	case path.IsAbs(want.SubPath) || climbs(want.SubPath):
		return refuse(field, "the subPath %q of %s is not a relative path without '..'", want.SubPath, at)
	case want.Results && want.ReadOnly:
		return refuse(field, "results cannot be copied to %s, which is read-only", at)
	case want.Results && v.results:
		return refuse(field, "results are copied to one volume, and %s is a second one", at)
	}
	return nil
}

// climbs reports whether a path has an element '..'.
func climbs(p string) bool {
	for _, part := range strings.Split(p, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

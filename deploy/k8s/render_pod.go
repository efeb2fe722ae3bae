package k8s

import (
	"hash/fnv"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"assay/pkg/pod"
)

const (
	// defaultKillGrace is what a workload gets between TERM and KILL, in seconds, and
	// killMargin what the wrapper then has to write down how it ended and to copy what
	// it left, before the kubelet kills it.
	defaultKillGrace = 10
	killMargin       = 20

	// deadlineMargin is what is left, in seconds, for images to be pulled and for the
	// wrapper to end what it wraps before the kubelet does.
	deadlineMargin = 1800

	defaultPort = 29500 // where ranks meet

	// With the network of the node, jobs share its ports.
	firstHostPort, hostPorts = 20000, 12000
)

// installRoot is where the init container sees what is pod.Root for the rank: in
// its own image /assay is the binary.
const installRoot = "/install"

// template is the pod of each rank.
func (r *renderer) template() (corev1.PodTemplateSpec, error) {
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		Subdomain:                     r.name,
		EnableServiceLinks:            new(false), // the services of the namespace are none of the workload's business
		AutomountServiceAccountToken:  new(r.k.ServiceAccount != ""),
		ServiceAccountName:            r.k.ServiceAccount,
		PriorityClassName:             r.k.PriorityClass,
		NodeSelector:                  r.k.NodeSelector,
		HostNetwork:                   r.k.HostNetwork,
		HostIPC:                       r.k.HostIPC,
		TerminationGracePeriodSeconds: new(int64(r.killGrace() + killMargin)),
		ActiveDeadlineSeconds:         r.deadline(),
	}
	if r.k.HostNetwork {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	for _, name := range r.k.PullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	var err error
	if spec.Tolerations, err = tolerations(r.k.Tolerations); err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	v, err := r.volumes()
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	c, err := r.container(v)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	spec.Volumes, spec.Containers = v.volumes, []corev1.Container{c}
	if !r.k.Unwrapped {
		spec.InitContainers = []corev1.Container{r.initContainer(c.Resources)}
	}
	spec.Affinity, spec.TopologySpreadConstraints = r.affinity(), r.spread()
	return corev1.PodTemplateSpec{ObjectMeta: r.podMeta(), Spec: spec}, nil
}

// killGrace is the time between TERM and KILL, in seconds.
func (r *renderer) killGrace() int {
	if ms := r.a.KillGraceMS; ms > 0 {
		return (ms + 999) / 1000
	}
	return defaultKillGrace
}

// deadline is when the kubelet ends a pod that has not ended by itself, in seconds.
//
// It is the pod's, not the Job's. The Job's counts from the start of the Job, so that
// the time in the queue would be taken from the workload; and at its end the pods
// are deleted, with what they left. A pod that runs out of its own time stays, with
// the reason DeadlineExceeded.
//
// The wrapper enforces the time limit itself and knows how to end a workload and say
// so; each script around the workload has the same limit. So the pod's deadline is
// well beyond all of that, and ends only what the wrapper could not. Without the
// wrapper it is the limit; the pull of the image counts then.
func (r *renderer) deadline() *int64 {
	j := r.a.Job
	if j.TimeoutSeconds <= 0 {
		return nil
	}
	limit := j.TimeoutSeconds
	if !r.k.Unwrapped {
		steps := 1 + len(j.PreScripts) + len(j.PostScripts)
		limit = j.TimeoutSeconds*steps + r.k.RootWaitSeconds + r.killGrace() + deadlineMargin
		if j.Ready != nil { // for rank 0, to begin and to be ready
			limit += 2 * j.Ready.TimeoutSeconds
		}
	}
	return new(min(int64(limit), math.MaxInt32))
}

// initContainer brings the assay that wraps the rank. Its image is the project's own
// and needs no rights. It asks for what the rank asks for, GPUs apart: that costs
// nothing, for it has ended when the rank begins, and a namespace with a quota
// refuses pods of which one container asks for nothing.
func (r *renderer) initContainer(rank corev1.ResourceRequirements) corev1.Container {
	rights := restricted()
	rights.ReadOnlyRootFilesystem, rights.RunAsUser = new(true), new(int64(65534))
	return corev1.Container{
		Name:                     pod.InitContainer,
		Image:                    r.k.RunnerImage,
		ImagePullPolicy:          corev1.PullPolicy(r.k.ImagePullPolicy),
		Command:                  []string{"/assay", "install", installRoot + pod.Binary[len(pod.Root):]},
		Resources:                corev1.ResourceRequirements{Requests: withoutGPUs(rank.Requests), Limits: withoutGPUs(rank.Limits)},
		VolumeMounts:             []corev1.VolumeMount{{Name: volumeAssay, MountPath: installRoot}},
		SecurityContext:          rights,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// withoutGPUs are those of resources that every node has.
func withoutGPUs(of corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := of[name]; ok {
			out[name] = q
		}
	}
	return out
}

// restricted is what the restricted profile of a namespace asks of a container.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		RunAsNonRoot:             new(true),
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// container runs the rank. It has no security context unless the namespace wants one: the images of benchmarks
// expect to be root, to raise limits, and to bind memory to nodes, which the usual
// seccomp profile forbids; a rank that is held back would measure the profile.
func (r *renderer) container(v *podVolumes) (corev1.Container, error) {
	res, err := r.resources()
	if err != nil {
		return corev1.Container{}, err
	}
	c := corev1.Container{
		Name:                     pod.Container,
		Image:                    r.a.Job.Image,
		ImagePullPolicy:          corev1.PullPolicy(r.k.ImagePullPolicy),
		Resources:                res,
		VolumeMounts:             v.mounts,
		EnvFrom:                  r.envFrom(),
		Env:                      placeEnv(v.results),
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	if r.k.Restricted {
		c.SecurityContext = restricted()
	}
	if r.k.Unwrapped {
		c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		c.Command, err = r.ownCommand()
		c.Env = append(c.Env, r.ownEnv()...)
		return c, err
	}
	c.Command = escapeAll([]string{
		pod.Binary, "rank", "--under", "k8s", "--job", pod.JobFile,
		"--master-addr", r.root(), "--master-port", strconv.Itoa(r.port()),
	})
	return c, nil
}

// root is the name of the pod of rank 0.
func (r *renderer) root() string {
	if r.k.JobSet {
		return r.name + "-" + replicatedJob + "-0-0." + r.name
	}
	return r.name + "-0." + r.name
}

// port is where ranks meet. On the network of the node it must differ from job to
// job.
func (r *renderer) port() int {
	switch {
	case r.a.Job.MasterPort > 0:
		return r.a.Job.MasterPort
	case r.k.HostNetwork:
		h := fnv.New32a()
		_, _ = h.Write([]byte(r.name)) // never fails
		return firstHostPort + int(h.Sum32()%hostPorts)
	}
	return defaultPort
}

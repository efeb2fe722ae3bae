package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/pkg/card"
	"assay/pkg/manifest"
)

// K8s is what Kubernetes is asked for. What is empty is not asked for.
type K8s struct {
	Kubeconfig string `json:"kubeconfig,omitempty"` // absolute; empty: as kubectl finds it
	Context    string `json:"context,omitempty"`
	Namespace  string `json:"namespace,omitempty"` // empty: that of the context

	GPUs        int    `json:"gpus,omitempty"`         // of each pod
	GPUResource string `json:"gpu_resource,omitempty"` // "nvidia.com/gpu" …
	CPU         string `json:"cpu,omitempty"`          // quantities, as Kubernetes writes them
	CPULimit    string `json:"cpu_limit,omitempty"`
	Memory      string `json:"memory,omitempty"`
	MemoryLimit string `json:"memory_limit,omitempty"`
	ShmSize     string `json:"shm_size,omitempty"` // of /dev/shm

	ImagePullPolicy string            `json:"image_pull_policy,omitempty"`
	PullSecrets     []string          `json:"pull_secrets,omitempty"`
	NodeSelector    map[string]string `json:"node_selector,omitempty"`
	Tolerations     json.RawMessage   `json:"tolerations,omitempty"` // a list, as in a pod
	ServiceAccount  string            `json:"service_account,omitempty"`
	PriorityClass   string            `json:"priority_class,omitempty"`
	HostIPC         bool              `json:"host_ipc,omitempty"`
	HostNetwork     bool              `json:"host_network,omitempty"`
	Volumes         []Volume          `json:"volumes,omitempty"`
	Restricted      bool              `json:"restricted,omitempty"` // pods fit into namespaces that enforce the restricted profile

	BackoffLimit    int    `json:"backoff_limit,omitempty"`  // how often the pod of a rank is started again
	TTLSeconds      int    `json:"ttl_seconds"`              // after which Kubernetes deletes an ended job by itself
	RootWaitSeconds int    `json:"root_wait_seconds"`        // how long ranks wait for the name of rank 0 to resolve
	RunnerImage     string `json:"runner_image,omitempty"`   // holds the assay that wraps ranks
	Unwrapped       bool   `json:"unwrapped,omitempty"`      // images run as they are
	Cleanup         string `json:"cleanup"`                  // "always", "on_success" or "never"
	Secrets         string `json:"secrets"`                  // "from_env_file", "existing" or "omit"
	RuntimeSecret   string `json:"runtime_secret,omitempty"` // a Secret that exists already
	JobSet          bool   `json:"jobset,omitempty"`         // a JobSet instead of a Job
	Queue           string `json:"queue,omitempty"`          // local queue of Kueue

	// Withheld are files that pods are never given, absolute paths: an env_file that is
	// not read.
	Withheld []string `json:"withheld,omitempty"`
}

// Volume is a volume of the pods.
type Volume struct {
	MountPath string `json:"mount_path"`
	HostPath  string `json:"host_path,omitempty"` // or else Claim
	Claim     string `json:"claim,omitempty"`
	SubPath   string `json:"sub_path,omitempty"`
	ReadOnly  bool   `json:"read_only,omitempty"`
	Results   bool   `json:"results,omitempty"` // ranks copy what they leave into it
}

// The defaults of the k8s block.
const (
	// defaultTTL keeps an ended job for a day, so that what it left can be collected
	// by a later process.
	defaultTTL = 24 * 3600
	// minTTL is the shortest time in which what ranks left is surely collected.
	minTTL          = 300
	defaultRootWait = 300
	// aloneRootWait is the same for ranks that nothing says meet each other: they start
	// all the same when it is over.
	aloneRootWait = 60
	// defaultPodGrace is how long logs and records of ended pods are awaited.
	defaultPodGrace = 30
)

// The mounts of the claims of madengine's manifests.
const (
	dataMount    = "/data"
	resultsMount = "/results"
)

// k8s fills what a job asks Kubernetes for.
func (p *planner) k8s(e manifest.Entry, job *Job) {
	if p.target != "k8s" {
		return
	}
	var k manifest.K8s
	if dep := p.m.Deployment.K8s; dep != nil {
		k = *dep
	}
	at := func(names ...string) string { return p.m.Deployment.Pointer(append([]string{"k8s"}, names...)...) }
	job.MaxPendingSeconds = p.seconds(k.MaxPending, at("max_pending"), 0)
	job.MarkerGraceSeconds = p.seconds(k.MarkerGrace, at("marker_grace"), defaultPodGrace)
	job.K8s = &K8s{
		Kubeconfig: p.absolute(k.Kubeconfig), Context: k.Context, Namespace: k.Namespace,
		GPUs: p.podGPUs(*job), GPUResource: k.GPUResourceName,
		CPU: string(k.CPU), CPULimit: string(k.CPULimit), Memory: string(k.Memory), MemoryLimit: string(k.MemoryLimit), ShmSize: string(k.ShmSize),
		ImagePullPolicy: k.ImagePullPolicy, PullSecrets: k.Secrets.ImagePullSecretNames,
		NodeSelector: p.nodeSelector(k.NodeSelector, at("node_selector")), Tolerations: k.Tolerations,
		ServiceAccount: k.ServiceAccount, PriorityClass: k.PriorityClass,
		HostIPC: k.HostIPC.Value, HostNetwork: k.HostNetwork.Value, Volumes: p.volumes(k, at),
		BackoffLimit: max(k.BackoffLimit.Value, 0), TTLSeconds: p.ttl(k.TTLSecondsAfterFinished, at("ttl_seconds_after_finished")),
		RootWaitSeconds: p.seconds(k.RootWait, at("root_wait"), rootWait(*job)),
		RunnerImage:     k.RunnerImage, Unwrapped: k.Wrapper == "none", Cleanup: p.oneOf(k.Cleanup, at("cleanup"), "on_success", "always", "never"),
		Restricted:    p.oneOf(k.PodSecurity, at("pod_security"), "image", "restricted") == "restricted",
		RuntimeSecret: k.Secrets.RuntimeSecretName, JobSet: k.JobSet.Value, Queue: k.Queue,
	}
	if string(job.K8s.Tolerations) == "null" {
		job.K8s.Tolerations = nil
	}
	if p.oneOf(k.Wrapper, at("wrapper"), "assay", "none") == "none" {
		p.withoutWrapper(job, at)
	}
	p.secrets(k, job, at)
	p.warnAboutK8s(k, at)
	if job.Image == "" {
		p.refuse(e.Pointer(), "target k8s runs containers, and built_images has no docker_image for it: build one, or give docker_image")
	}
}

// rootWait is how long ranks of a job wait for the name of rank 0 by default.
func rootWait(j Job) int {
	if j.Launcher == "none" {
		return aloneRootWait
	}
	return defaultRootWait
}

// withoutWrapper refuses what images that run as they are cannot have.
func (p *planner) withoutWrapper(job *Job, at func(...string) string) {
	if len(job.PreScripts)+len(job.PostScripts) > 0 {
		p.refuse(at("wrapper"), "pre_scripts and post_scripts need the wrapper: wrapper none runs the images as they are")
	}
	if job.Expect.MultipleResults != "" {
		p.warn(at("wrapper"), "multiple_results is not collected with wrapper none: only performance: lines of the logs are read")
	}
}

// secrets says where the pods get secrets from.
func (p *planner) secrets(k manifest.K8s, job *Job, at func(...string) string) {
	strategy := k.Secrets.Strategy
	if strategy == "from_local_credentials" {
		strategy = "from_env_file"
	}
	job.K8s.Secrets = p.oneOf(strategy, at("secrets", "strategy"), "from_env_file", "existing", "omit")
	switch {
	case job.K8s.Secrets == "existing" && k.Secrets.RuntimeSecretName == "":
		p.refuse(at("secrets", "strategy"), "strategy existing needs a runtime_secret_name")
	case job.K8s.Secrets == "omit":
		job.K8s.RuntimeSecret = ""
	}
	if job.K8s.Secrets != "from_env_file" && job.EnvFile != nil {
		p.warn(p.m.Deployment.Pointer("env_file"), "the env_file is not read: secrets.strategy is %s", job.K8s.Secrets)
		job.K8s.Withheld = append(job.K8s.Withheld, job.EnvFile.Path)
		job.EnvFile = nil
	}
}

// podGPUs is how many GPUs the pod of a rank asks for: its share of the node's.
func (p *planner) podGPUs(j Job) int {
	if j.GPUsPerNode == 0 {
		return 0
	}
	if j.GPUsPerNode < 0 {
		p.warn(p.m.Deployment.Pointer("k8s", "gpu_count"), "all GPUs of a node cannot be asked for without their number: no GPU is asked for; give gpu_count")
		return 0
	}
	return max(1, j.GPUsPerNode/max(j.RanksPerNode, 1))
}

// ttl is how long Kubernetes keeps an ended job.
func (p *planner) ttl(n card.Int, at string) int {
	if n.Set && n.Value < minTTL {
		p.warn(at, "%d s is too short to collect what ranks left: %d s are used", n.Value, minTTL)
		return minTTL
	}
	return n.Or(defaultTTL)
}

// oneOf reads a word; an empty one is the first.
func (p *planner) oneOf(word, at string, known ...string) string {
	if word == "" {
		return known[0]
	}
	if !slices.Contains(known, word) {
		p.refuse(at, "unknown value %q (known: %s)", word, strings.Join(known, ", "))
	}
	return word
}

func (p *planner) nodeSelector(from map[string]json.RawMessage, at string) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		var v card.Scalar
		if err := v.UnmarshalJSON(from[name]); err != nil {
			p.refuse(at, "%s: %w", name, err)
		}
		out[name] = string(v)
	}
	return out
}

// volumes are the volumes that the manifest asks for, and those that madengine's
// claims and mounts stand for.
func (p *planner) volumes(k manifest.K8s, at func(...string) string) []Volume {
	var out []Volume
	for i, v := range k.Volumes {
		here := at("volumes", fmt.Sprint(i))
		if (v.HostPath == "") == (v.Claim == "") {
			p.refuse(here, "a volume needs either a hostPath or a claim")
		}
		if v.MountPath == "" {
			p.refuse(here, "a volume needs a mountPath")
		}
		out = append(out, Volume(v))
	}
	if k.DataPVC != "" {
		out = append(out, Volume{MountPath: dataMount, Claim: k.DataPVC})
	}
	if k.ResultsPVC != "" {
		out = append(out, Volume{MountPath: resultsMount, Claim: k.ResultsPVC, Results: true})
	}
	for _, path := range slices.Sorted(maps.Keys(p.m.Context.DockerMounts)) {
		out = append(out, Volume{MountPath: path, HostPath: p.m.Context.DockerMounts[path]})
	}
	return out
}

func (p *planner) warnAboutK8s(k manifest.K8s, at func(...string) string) {
	p.warnAbout([]unheeded{
		{k.StorageClass != "", "storage_class", "claims are not created; create them and name them"},
		{k.NFSStorageClass != "", "nfs_storage_class", "claims are not created; create them and name them"},
		{k.DataStorageClass != "", "data_storage_class", "claims are not created; create them and name them"},
		{k.RecreateSharedDataPVC.Value, "recreate_shared_data_pvc", "claims are neither created nor deleted"},
		{k.AllowPrivilegedProfiling.Value, "allow_privileged_profiling", "no container is privileged"},
		{k.OutputDir != "", "output_dir", "what was submitted is job.yaml of the attempt; 'assay render' prints it"},
	}, at)
}

package manifest

import (
	"encoding/json"

	"assay/pkg/card"
)

// Deployment is the deployment_config block, with the deployment blocks of the
// top level moved into it.
type Deployment struct {
	Target         string       `json:"target"` // as written; see TargetName
	Slurm          *card.Slurm  `json:"slurm"`
	PBS            *PBS         `json:"pbs"`
	K8s            *K8s         `json:"k8s"` // or its alias kubernetes
	Kubernetes     *K8s         `json:"kubernetes"`
	Distributed    *Distributed `json:"distributed"`
	EnvVars        card.Env     `json:"env_vars"`
	EnvFile        string       `json:"env_file"`         // relative to the manifest
	EnvFileFormat  string       `json:"env_file_format"`  // "shell", "dotenv" or empty
	EnvFileTimeout card.Int     `json:"env_file_timeout"` // seconds, for sourcing it
	Debug          card.Flag    `json:"debug"`
	DockerGPUs     card.Words   `json:"docker_gpus"`
	GPUsPerNode    card.Int     `json:"gpus_per_node"`
	RankBinary     string       `json:"rank_binary"`
	// ContainerRuntime is what runs containers on a node: docker, podman, apptainer,
	// pyxis, or auto, which is the same as none.
	ContainerRuntime string          `json:"container_runtime"`
	Verdict          json.RawMessage `json:"verdict"`

	// at holds the pointers of the blocks that the document has elsewhere: moved
	// here from the top level, or under another name.
	at map[string]string
}

// Pointer returns the JSON pointer of a value inside the block, as the document
// has it: a block that was moved from the top level is named where it stands.
func (d Deployment) Pointer(names ...string) string {
	if len(names) > 0 && d.at[names[0]] != "" {
		return pointer(d.at[names[0]], names[1:]...)
	}
	return pointer("/deployment_config", names...)
}

// Targets returns the names of the targets, in the order of the docs.
func Targets() []string { return []string{"local", "slurm", "pbs", "k8s"} }

// TargetName returns the canonical spelling of a target: docker is another name
// for local and kubernetes one for k8s. Any other word is returned as it is.
func TargetName(target string) string {
	switch target {
	case "docker":
		return "local"
	case "kubernetes":
		return "k8s"
	}
	return target
}

// TargetName returns the target in its canonical spelling. Where the manifest
// names none, the blocks it has decide: k8s, then slurm, then pbs, else local.
func (d Deployment) TargetName() string {
	switch {
	case d.Target != "":
		return TargetName(d.Target)
	case d.K8s != nil:
		return "k8s"
	case d.Slurm != nil:
		return "slurm"
	case d.PBS != nil:
		return "pbs"
	}
	return "local"
}

// PBS is the pbs block of the deployment.
type PBS struct {
	Queue           string      `json:"queue"`
	Account         string      `json:"account"`
	Nodes           card.Int    `json:"nodes"`
	GPUsPerNode     card.Int    `json:"gpus_per_node"`
	NCPUs           card.Int    `json:"ncpus"`
	Mem             card.Scalar `json:"mem"`
	Select          string      `json:"select"`
	Place           string      `json:"place"`
	Walltime        card.Scalar `json:"walltime"`
	Resources       card.Env    `json:"resources"`
	OutputDir       string      `json:"output_dir"`
	SharedWorkspace string      `json:"shared_workspace"`
	Modules         card.Words  `json:"modules"`
	MailUser        string      `json:"mail_user"`
	MailType        card.Words  `json:"mail_type"`
	MaxPending      card.Scalar `json:"max_pending"`
}

// Distributed is the distributed block of the deployment.
type Distributed struct {
	card.Distributed
	// Blocks holds every other member: the blocks of single launchers
	// (sglang_disagg, primus, …).
	Blocks map[string]json.RawMessage `json:",embed"`
}

// K8s is the k8s block of the deployment.
type K8s struct {
	Kubeconfig               string                     `json:"kubeconfig"`
	Context                  string                     `json:"context"`
	Namespace                string                     `json:"namespace"`
	GPUCount                 card.Int                   `json:"gpu_count"`
	GPUResourceName          string                     `json:"gpu_resource_name"`
	GPUVendor                string                     `json:"gpu_vendor"`
	CPU                      card.Scalar                `json:"cpu"`
	CPULimit                 card.Scalar                `json:"cpu_limit"`
	Memory                   card.Scalar                `json:"memory"`
	MemoryLimit              card.Scalar                `json:"memory_limit"`
	ImagePullPolicy          string                     `json:"image_pull_policy"`
	BackoffLimit             card.Int                   `json:"backoff_limit"`
	TTLSecondsAfterFinished  card.Int                   `json:"ttl_seconds_after_finished"`
	NodeSelector             map[string]json.RawMessage `json:"node_selector"`
	Tolerations              json.RawMessage            `json:"tolerations"`
	ServiceAccount           string                     `json:"service_account"`
	HostIPC                  card.Flag                  `json:"host_ipc"`
	DataPVC                  string                     `json:"data_pvc"`
	ResultsPVC               string                     `json:"results_pvc"`
	StorageClass             string                     `json:"storage_class"`
	NFSStorageClass          string                     `json:"nfs_storage_class"`
	DataStorageClass         string                     `json:"data_storage_class"`
	RecreateSharedDataPVC    card.Flag                  `json:"recreate_shared_data_pvc"`
	AllowPrivilegedProfiling card.Flag                  `json:"allow_privileged_profiling"`
	OutputDir                string                     `json:"output_dir"`
	Secrets                  Secrets                    `json:"secrets"`

	RunnerImage   string      `json:"runner_image"`
	Wrapper       string      `json:"wrapper"`
	MaxPending    card.Scalar `json:"max_pending"`
	MarkerGrace   card.Scalar `json:"marker_grace"`
	Cleanup       string      `json:"cleanup"`
	HostNetwork   card.Flag   `json:"host_network"`
	PriorityClass string      `json:"priority_class"`
	Volumes       []Volume    `json:"volumes"`
	ShmSize       card.Scalar `json:"shm_size"`
	RootWait      card.Scalar `json:"root_wait"`
	PodSecurity   string      `json:"pod_security"`
	JobSet        card.Flag   `json:"jobset"`
	Queue         string      `json:"queue"`
}

// Secrets says how a k8s target gets at secrets.
type Secrets struct {
	Strategy             string     `json:"strategy"`
	ImagePullSecretNames card.Words `json:"image_pull_secret_names"`
	RuntimeSecretName    string     `json:"runtime_secret_name"`
}

// Volume is a volume of the pods of a k8s target: a directory of the node or a
// claim.
type Volume struct {
	MountPath string `json:"mountPath"`
	HostPath  string `json:"hostPath"`
	Claim     string `json:"claim"`
	SubPath   string `json:"subPath"`
	ReadOnly  bool   `json:"readOnly"`
	Results   bool   `json:"results"`
}

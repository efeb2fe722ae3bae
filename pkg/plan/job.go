// Package plan turns a manifest into jobs: what runs, with how many ranks, in
// which environment, and what it is expected to give. It is pure.
package plan

import (
	"assay/pkg/verdict"
)

// Job is one manifest entry, ready for any target. It survives JSON: it is part
// of the job file that `assay rank` reads.
type Job struct {
	Key   string `json:"key"`   // the key of the entry in built_models
	ID    string `json:"id"`    // Key made fit for a directory name; unique in a run
	Model string `json:"model"` // the card's name
	Scope string `json:"scope"` // "job" unless the card says otherwise

	NNodes       int               `json:"nnodes"`
	NProcPerNode int               `json:"nproc_per_node"`         // processes a node that the launcher, or assay itself, starts
	RanksPerNode int               `json:"ranks_per_node"`         // ranks a node that assay starts: NProcPerNode for none, srun and mpi, else 1
	WorldSize    int               `json:"world_size"`             // NNodes × RanksPerNode; 1 for slurm_multi, whose script starts its own steps
	Launcher     string            `json:"launcher"`               // "none" when the manifest names none
	Runner       string            `json:"runner"`                 // MAD_MULTI_NODE_RUNNER; may refer to ${NODE_RANK}, ${MASTER_ADDR}, ${MASTER_PORT}
	LauncherEnv  map[string]string `json:"launcher_env,omitempty"` // defaults of the launcher: an env_file and Env win over them; may refer to ${NODE_RANK} and ${HOSTS}
	Backend      string            `json:"backend"`
	MasterPort   int               `json:"master_port"` // 0: the target chooses one that is free

	Program        Program           `json:"program"`
	ModelDir       string            `json:"model_dir"`       // absolute directory of the manifest; MODEL_DIR from the environment wins over it
	TimeoutSeconds int               `json:"timeout_seconds"` // 0: none
	Env            map[string]string `json:"env"`             // env_vars of the manifest, merged by precedence
	EnvFile        *EnvFile          `json:"env_file,omitempty"`
	Modules        []string          `json:"modules,omitempty"` // environment modules that every rank loads before the env_file
	PreScripts     []Script          `json:"pre_scripts,omitempty"`
	PostScripts    []Script          `json:"post_scripts,omitempty"`

	GPUsPerNode int    `json:"gpus_per_node"` // -1: all
	GPUVendor   string `json:"gpu_vendor"`    // "AMD", "NVIDIA" or empty
	Image       string `json:"image"`         // container image; empty: runs directly on the host
	Deployment  string `json:"deployment"`    // target name, for MAD_DEPLOYMENT_TYPE
	SkipMetrics bool   `json:"skip_metrics"`  // context.skip_perf_collection

	MaxPendingSeconds  int    `json:"max_pending_seconds,omitempty"`  // how long it may wait in a queue; 0: for ever
	MarkerGraceSeconds int    `json:"marker_grace_seconds,omitempty"` // how long records of ranks are awaited after the job's end
	ResultsDir         string `json:"results_dir,omitempty"`          // absolute; where results files are gathered besides
	Slurm              *Slurm `json:"slurm,omitempty"`                // target slurm only
	K8s                *K8s   `json:"k8s,omitempty"`                  // target k8s only

	Container *Container `json:"container,omitempty"` // how ranks run in containers; nil: on the host, or target k8s

	Nodes      []string          `json:"nodes,omitempty"`   // where it has to run, that of rank 0 first where the target lets one choose; empty: anywhere
	Round      int               `json:"round,omitempty"`   // of the pairs of its test, from 1; 0: it is no pair of several
	Test       string            `json:"test,omitempty"`    // of the suite; empty: there is none
	Variant    map[string]string `json:"variant,omitempty"` // its values by axis
	Stage      int               `json:"stage,omitempty"`   // it begins once every job of a lower stage is settled
	Optional   bool              `json:"optional,omitempty"`
	StopOnFail bool              `json:"stop_on_fail,omitempty"` // no later stage begins when it fails
	Policy     verdict.Policy    `json:"policy,omitzero"`
	Ready      *Ready            `json:"ready,omitempty"` // what ranks wait for at rank 0; nil: nothing
	Gates      *Gates            `json:"gates,omitempty"` // where thresholds were taken from besides the card

	Expect verdict.Expectation `json:"expect"`
}

// Gates says which values of a file of thresholds a job is judged by.
type Gates struct {
	File     string `json:"file"`
	Digest   string `json:"digest"`
	Hardware string `json:"hardware"` // the key that was selected
}

// Slurm is what SLURM is asked for. What is empty is not asked for.
type Slurm struct {
	Partition     string `json:"partition,omitempty"`
	Account       string `json:"account,omitempty"`
	QOS           string `json:"qos,omitempty"`
	Reservation   string `json:"reservation,omitempty"`
	Nodelist      string `json:"nodelist,omitempty"` // as SLURM writes host lists
	Exclude       string `json:"exclude,omitempty"`
	Constraint    string `json:"constraint,omitempty"`
	GPUsPerNode   int    `json:"gpus_per_node,omitempty"` // 0: no directive
	Time          string `json:"time,omitempty"`          // as sbatch takes it
	Mem           string `json:"mem,omitempty"`
	Exclusive     bool   `json:"exclusive,omitempty"`
	Requeue       *bool  `json:"requeue,omitempty"` // after the loss of a node; nil: as the site does
	MailUser      string `json:"mail_user,omitempty"`
	MailType      string `json:"mail_type,omitempty"`
	OutputDir     string `json:"output_dir,omitempty"` // absolute; empty: the attempt directory
	MPI           string `json:"mpi,omitempty"`        // how srun starts MPI processes; empty: as the site does
	KillOnBadExit bool   `json:"kill_on_bad_exit,omitempty"`
	API           string `json:"api,omitempty"` // "" (its commands) or "rest"
	RestURL       string `json:"rest_url,omitempty"`
	RestTokenFile string `json:"rest_token_file,omitempty"` // absolute
}

// Program is what a rank runs: Command as it stands, or else Script with Args.
type Program struct {
	Command     []string `json:"command,omitempty"`
	Script      string   `json:"script,omitempty"` // relative to MODEL_DIR, or absolute; a directory means run.sh inside it
	Args        []string `json:"args,omitempty"`
	Encapsulate []string `json:"encapsulate,omitempty"` // argv put before the script (context.encapsulate_script)
}

// Script is a pre- or post-script.
type Script struct {
	Path string   `json:"path"` // relative to MODEL_DIR, or absolute
	Args []string `json:"args,omitempty"`
}

// EnvFile is the file whose variables every rank gets.
type EnvFile struct {
	Path           string `json:"path"`            // absolute
	Format         string `json:"format"`          // "shell" or "dotenv"
	TimeoutSeconds int    `json:"timeout_seconds"` // for sourcing it
}

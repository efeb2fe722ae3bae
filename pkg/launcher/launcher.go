// Package launcher knows the distributed launchers: what each is called, how
// many ranks assay starts for it, the command with which a workload starts its
// local processes, and the environment that its scripts expect. It is pure.
package launcher

import (
	"fmt"
	"strings"

	"assay/pkg/spelling"
)

// Launcher is one way of starting the processes of a workload.
type Launcher struct {
	Name    string   // canonical, as in the launcher column of perf.csv
	Aliases []string // other spellings that manifests use
	// Direct says that assay starts every process itself, one rank each. Any other
	// launcher is started once a node and starts its own processes.
	Direct bool
	// SlurmOnly says that the workload is a batch script of SLURM that starts its
	// job steps itself: assay starts it once, on the first node.
	SlurmOnly bool
	// Ray says that the workload runs on Ray, which refuses to start where GPU
	// variables of two vendors, or of two layers of one, are set.
	Ray bool
	// MinNodes is the number of nodes below which the launcher can give its
	// processes no roles; 0 when any number will do.
	MinNodes int

	command     func(nnodes, nproc int) string  // nil: the workload needs no runner
	environment func(s Setup) map[string]string // nil: it needs no variables
}

// None is the launcher of a workload that names none.
func None() Launcher { return all()[0] }

// all lists the launchers in the order of the docs.
func all() []Launcher {
	return []Launcher{
		{Name: "none", Aliases: []string{"native", "docker"}, Direct: true},
		{Name: "srun", Direct: true},
		{Name: "mpi", Aliases: []string{"mpirun"}, Direct: true},
		{Name: "torchrun", command: torchrun},
		{Name: "torchtitan", command: torchrun, environment: torchtitan},
		{Name: "deepspeed", command: deepspeed},
		{Name: "megatron-lm", Aliases: []string{"megatron"}, command: torchrun, environment: megatron},
		{Name: "primus", command: torchrun, environment: primus},
		{Name: "vllm", Ray: true, environment: vllm},
		{Name: "sglang", Ray: true, environment: sglang},
		{Name: "sglang-disagg", Aliases: []string{"sglang_disagg"}, Ray: true, MinNodes: 3, environment: disagg},
		{Name: "slurm_multi", Aliases: []string{"slurm-multi"}, SlurmOnly: true},
	}
}

// Names returns the canonical names in the order of the docs.
func Names() []string {
	var names []string
	for _, l := range all() {
		names = append(names, l.Name)
	}
	return names
}

// Find returns the launcher with the given name or alias, whatever its case. An
// empty name is "none". The error of an unknown name lists all that are
// accepted.
func Find(name string) (Launcher, error) {
	wanted := strings.ToLower(strings.TrimSpace(name))
	if wanted == "" {
		return None(), nil
	}
	var spellings []string
	for _, l := range all() {
		for _, s := range append([]string{l.Name}, l.Aliases...) {
			if s == wanted {
				return l, nil
			}
			spellings = append(spellings, s)
		}
	}
	hint := ""
	if near := spelling.Nearest(wanted, spellings); near != "" {
		hint = fmt.Sprintf(" — did you mean %q?", near)
	}
	return Launcher{}, fmt.Errorf("unknown launcher %q%s (known: %s)", name, hint, strings.Join(spellings, ", "))
}

// RanksPerNode returns how many ranks a node assay starts when the workload has
// nproc processes a node.
func (l Launcher) RanksPerNode(nproc int) int {
	if l.Direct {
		return nproc
	}
	return 1
}

// WorldSize returns how many ranks assay starts on nnodes nodes when the workload
// has nproc processes a node.
func (l Launcher) WorldSize(nnodes, nproc int) int {
	if l.SlurmOnly {
		return 1
	}
	return nnodes * l.RanksPerNode(nproc)
}

// Runner returns the value of MAD_MULTI_NODE_RUNNER: the words that a script
// puts before its program to start nproc processes on each of nnodes nodes. It
// is empty for a launcher that needs none. It may refer to ${NODE_RANK},
// ${MASTER_ADDR} and ${MASTER_PORT}, which every rank replaces with its own.
func (l Launcher) Runner(nnodes, nproc int) string {
	if l.command == nil {
		return ""
	}
	return l.command(nnodes, nproc)
}

func torchrun(nnodes, nproc int) string {
	if nnodes == 1 {
		return fmt.Sprintf("torchrun --standalone --nproc_per_node=%d", nproc)
	}
	return fmt.Sprintf("torchrun --nnodes=%d --nproc_per_node=%d --node_rank=${NODE_RANK} --master_addr=${MASTER_ADDR} --master_port=${MASTER_PORT}",
		nnodes, nproc)
}

// deepspeed starts a node's processes by itself. Over several nodes its own
// launcher would go to the others by ssh, once for each rank that assay already
// started there; torchrun gives it the same environment without ssh.
func deepspeed(nnodes, nproc int) string {
	if nnodes == 1 {
		return fmt.Sprintf("deepspeed --num_gpus=%d", nproc)
	}
	return torchrun(nnodes, nproc)
}

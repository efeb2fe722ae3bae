package plan

import (
	"assay/pkg/card"
	"assay/pkg/manifest"
)

// level is one of the two places that say how large a job is: the model's own
// blocks, and the deployment's. Blocks that are absent are empty.
type level struct {
	distributed card.Distributed
	scheduler   string // the block that nodes and gpus come from
	nodes, gpus number // of the scheduler's block
	at          func(names ...string) string
}

// number is an integer of the manifest and where it stands.
type number struct {
	card.Int
	at string
}

// levels returns the levels of an entry by precedence: the model's own word wins
// over the deployment's, and within a level distributed wins over the
// scheduler's block. The block of a scheduler that is not the target says
// nothing; on this machine a slurm block stands for the cluster.
func (p *planner) levels(e manifest.Entry) []level {
	model := level{scheduler: "slurm", at: e.Pointer}
	if d := e.Distributed; d != nil {
		model.distributed = *d
	}
	if s := e.Slurm; s != nil && p.usesSlurm() {
		model.set(s.Nodes, s.GPUsPerNode)
	}
	dep := level{scheduler: "slurm", at: p.m.Deployment.Pointer}
	if d := p.m.Deployment.Distributed; d != nil {
		dep.distributed = d.Distributed
	}
	switch slurm, pbs, k8s := p.m.Deployment.Slurm, p.m.Deployment.PBS, p.m.Deployment.K8s; {
	case p.target == "pbs" && pbs != nil:
		dep.scheduler = "pbs"
		dep.set(pbs.Nodes, pbs.GPUsPerNode)
	case p.target == "k8s" && k8s != nil:
		dep.scheduler = "k8s"
		dep.gpus = number{k8s.GPUCount, dep.at("k8s", "gpu_count")}
	case p.usesSlurm() && slurm != nil:
		dep.set(slurm.Nodes, slurm.GPUsPerNode)
	}
	return []level{model, dep}
}

func (p *planner) usesSlurm() bool { return p.target == "slurm" || p.target == "local" }

// set fills the numbers of the scheduler's block.
func (l *level) set(nodes, gpus card.Int) {
	l.nodes = number{nodes, l.at(l.scheduler, "nodes")}
	l.gpus = number{gpus, l.at(l.scheduler, "gpus_per_node")}
}

// own returns a number of the level's distributed block.
func (l level) own(n card.Int, name string) number {
	return number{n, l.at("distributed", name)}
}

// first returns the first number that is set, level by level, else one that is
// not.
func first(levels []level, numbers func(level) []number) number {
	for _, l := range levels {
		if n := firstSet(numbers(l)...); n.Set {
			return n
		}
	}
	return number{}
}

// firstSet returns the first number that is set, else one that is not.
func firstSet(numbers ...number) number {
	for _, n := range numbers {
		if n.Set {
			return n
		}
	}
	return number{}
}

// enabled says whether the job is distributed at all.
func enabled(levels []level) bool {
	for _, l := range levels {
		if l.distributed.Enabled != nil {
			return *l.distributed.Enabled
		}
	}
	return true
}

// launcherName returns the launcher that is named, and where.
func launcherName(levels []level) (name, at string) {
	for _, l := range levels {
		if name, at = l.distributed.Launcher, l.at("distributed", "launcher"); name != "" {
			break
		}
	}
	return name, at
}

func backend(levels []level) string {
	for _, l := range levels {
		if l.distributed.Backend != "" {
			return l.distributed.Backend
		}
	}
	return ""
}

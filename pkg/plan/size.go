package plan

import (
	"strings"

	"assay/pkg/card"
	"assay/pkg/launcher"
	"assay/pkg/manifest"
)

// maxWorldSize bounds the ranks of one job.
const maxWorldSize = 65536

// The default time limit of a job, and the longest that can be asked for, in
// seconds: a century still fits a time.Duration.
const (
	defaultTimeout = 7200
	maxTimeout     = 100 * 365 * 24 * 3600
)

// size is how many processes a job has, and where.
type size struct {
	nnodes, nproc, ranksPerNode, gpus int
	launcher                          launcher.Launcher
}

// number is an integer of the manifest and where it stands.
type number struct {
	card.Int
	at string
}

// first returns the first number that is set, else one that is not.
func first(numbers ...number) number {
	for _, n := range numbers {
		if n.Set {
			return n
		}
	}
	return number{}
}

// blocks are the blocks that say how large a job is, with empty ones for those
// that are absent. A model's own block wins over the deployment's, and within
// each, distributed wins over slurm.
type blocks struct {
	model, dep           card.Distributed
	modelSlurm, depSlurm card.Slurm
	modelAt              func(...string) string
	depAt                func(...string) string
}

func (p *planner) blocks(e manifest.Entry) blocks {
	b := blocks{modelAt: e.Pointer, depAt: p.m.Deployment.Pointer}
	if d := e.Card.Distributed; d != nil {
		b.model = *d
	}
	if s := e.Card.Slurm; s != nil {
		b.modelSlurm = *s
	}
	if d := p.m.Deployment.Distributed; d != nil {
		b.dep = d.Distributed
	}
	if s := p.m.Deployment.Slurm; s != nil {
		b.depSlurm = card.Slurm{Nodes: s.Nodes, GPUsPerNode: s.GPUsPerNode, Time: s.Time}
	}
	return b
}

// size works out nodes, processes and launcher. Where a number is refused, 1
// stands in for it.
func (p *planner) size(e manifest.Entry) size {
	b := p.blocks(e)
	s := size{nnodes: 1, nproc: 1, ranksPerNode: 1, gpus: p.gpus(e, b), launcher: launcher.None()}
	if !b.enabled() {
		return s
	}
	name, at := b.launcherName()
	if l, err := launcher.Find(name); err != nil {
		p.refuse(at, "%w", err)
	} else {
		s.launcher = l
	}
	s.nnodes = p.positive(b.nnodes(), 1)
	p.checkNodes(b)
	nproc := b.nproc()
	def := 1
	if name != "" && s.gpus > 0 {
		def = s.gpus // one process a GPU, where a launcher is asked for
	}
	s.nproc = p.positive(nproc, def)
	s.ranksPerNode = s.launcher.RanksPerNode(s.nproc)
	p.checkLauncher(e, s, name, at, nproc)
	return s
}

// checkLauncher refuses what a launcher cannot be, and warns where the manifest
// leaves it open who starts the processes.
func (p *planner) checkLauncher(e manifest.Entry, s size, name, at string, nproc number) {
	if s.launcher.SlurmOnly && p.target != "slurm" {
		p.refuse(at, "launcher %s submits job steps itself and works on target slurm only, not on %s", s.launcher.Name, p.target)
	}
	if strings.TrimSpace(name) == "" && s.nproc > 1 {
		p.warn(nproc.at, "no launcher is named, so %d ranks are started on each node; name one (such as torchrun) if the script starts its own processes", s.nproc)
	}
	if s.nnodes*s.ranksPerNode > maxWorldSize {
		p.refuse(e.Pointer(), "%d nodes × %d ranks a node are %d ranks, and a job has at most %d", s.nnodes, s.ranksPerNode, s.nnodes*s.ranksPerNode, maxWorldSize)
	}
}

// positive returns a number that counts nodes or processes, or def when it is
// not set.
func (p *planner) positive(n number, def int) int {
	switch {
	case !n.Set:
		return def
	case n.Value < 1:
		p.refuse(n.at, "%d is not possible: at least 1", n.Value)
		return 1
	case n.Value > maxWorldSize:
		p.refuse(n.at, "%d is not possible: at most %d", n.Value, maxWorldSize)
		return 1
	}
	return n.Value
}

// checkNodes refuses two numbers of nodes side by side that differ.
func (p *planner) checkNodes(b blocks) {
	check := func(slurm, distributed card.Int, at func(...string) string) {
		if slurm.Set && distributed.Set && slurm.Value != distributed.Value {
			p.refuse(at("slurm", "nodes"), "slurm.nodes is %d and distributed.nnodes is %d: sbatch and the launcher would disagree on the world size; make them the same",
				slurm.Value, distributed.Value)
		}
	}
	check(b.modelSlurm.Nodes, b.model.NNodes, b.modelAt)
	check(b.depSlurm.Nodes, b.dep.NNodes, b.depAt)
}

// enabled says whether the job is distributed; the model's own word wins.
func (b blocks) enabled() bool {
	for _, e := range []*bool{b.model.Enabled, b.dep.Enabled} {
		if e != nil {
			return *e
		}
	}
	return true
}

func (b blocks) launcherName() (name, at string) {
	if b.model.Launcher != "" {
		return b.model.Launcher, b.modelAt("distributed", "launcher")
	}
	return b.dep.Launcher, b.depAt("distributed", "launcher")
}

func (b blocks) nnodes() number {
	return first(
		number{b.model.NNodes, b.modelAt("distributed", "nnodes")},
		number{b.modelSlurm.Nodes, b.modelAt("slurm", "nodes")},
		number{b.dep.NNodes, b.depAt("distributed", "nnodes")},
		number{b.depSlurm.Nodes, b.depAt("slurm", "nodes")},
	)
}

func (b blocks) nproc() number {
	return first(
		number{b.model.NProcPerNode, b.modelAt("distributed", "nproc_per_node")},
		number{b.dep.NProcPerNode, b.depAt("distributed", "nproc_per_node")},
	)
}

// gpus returns how many GPUs a node the job asks for: -1 for all of them, 0 for
// none.
func (p *planner) gpus(e manifest.Entry, b blocks) int {
	own := number{e.Card.NGPUs, e.Pointer("n_gpus")}
	dep := p.m.Deployment
	shared := []number{
		{dep.GPUsPerNode, dep.Pointer("gpus_per_node")},
		{b.depSlurm.GPUsPerNode, b.depAt("slurm", "gpus_per_node")},
	}
	if k := dep.K8s; k != nil && p.target == "k8s" {
		shared = append(shared, number{k.GPUCount, dep.Pointer("k8s", "gpu_count")})
	}
	n := first(number{b.modelSlurm.GPUsPerNode, b.modelAt("slurm", "gpus_per_node")}, own)
	if !n.Set || n.Value == -1 {
		if s := first(shared...); s.Set {
			n = s
		}
	}
	if n.Value < -1 || n.Value > maxWorldSize {
		p.refuse(n.at, "%d is no number of GPUs: -1 (all) to %d", n.Value, maxWorldSize)
		return 0
	}
	return n.Value
}

// port returns the port of the rendezvous, 0 when the target is to choose one.
func (p *planner) port(e manifest.Entry) int {
	b := p.blocks(e)
	n := first(
		number{b.model.Port, b.modelAt("distributed", "port")},
		number{b.model.MasterPort, b.modelAt("distributed", "master_port")},
		number{b.dep.Port, b.depAt("distributed", "port")},
		number{b.dep.MasterPort, b.depAt("distributed", "master_port")},
	)
	if n.Set && (n.Value < 1 || n.Value > 65535) {
		p.refuse(n.at, "%d is no port: 1 to 65535", n.Value)
	}
	return n.Value
}

func (p *planner) backend(e manifest.Entry) string {
	b := p.blocks(e)
	if b.model.Backend != "" {
		return b.model.Backend
	}
	return b.dep.Backend
}

// scope returns what the verdict is about, and refuses a number of nodes that
// it cannot have.
func (p *planner) scope(e manifest.Entry, nnodes int) string {
	at := e.Pointer("scope")
	switch scope := e.Card.Scope; scope {
	case "":
		return "job"
	case "pair":
		if nnodes != 2 {
			p.refuse(at, "scope pair needs exactly 2 nodes, and this model has %d", nnodes)
		}
	case "group":
		if nnodes < 2 {
			p.refuse(at, "scope group needs at least 2 nodes, and this model has %d", nnodes)
		}
	case "job", "node":
	default:
		p.refuse(at, "unknown scope %q (known: job, node, pair, group)", scope)
	}
	return e.Card.Scope
}

// timeout returns the time limit in seconds, 0 for none.
func (p *planner) timeout(e manifest.Entry) int {
	n, at := e.Card.Timeout, e.Pointer("timeout")
	if t := p.opt.TimeoutSeconds; t != nil {
		n, at = card.Int{Value: *t, Set: true}, "--timeout"
	}
	switch {
	case !n.Set || n.Value == -1:
		return defaultTimeout
	case n.Value < -1 || n.Value > maxTimeout:
		p.refuse(at, "%d is no time limit in seconds: -1 (the default of %d), 0 (none), or up to %d", n.Value, defaultTimeout, maxTimeout)
		return defaultTimeout
	}
	return n.Value
}

// vendor returns whose GPUs the job runs on, empty when the manifest does not
// say.
func (p *planner) vendor(e manifest.Entry) string {
	k8s := ""
	if k := p.m.Deployment.K8s; k != nil && p.target == "k8s" {
		k8s = k.GPUVendor
	}
	for _, v := range []string{k8s, p.m.Context.GPUVendor, p.m.Images[e.Key].GPUVendor} {
		if v = strings.ToUpper(strings.TrimSpace(v)); v == "AMD" || v == "NVIDIA" {
			return v
		}
	}
	return ""
}

package plan

import (
	"fmt"
	"strings"

	"assay/pkg/card"
	"assay/pkg/hostlist"
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

// size works out nodes, processes and launcher. Where a number is refused, 1
// stands in for it.
func (p *planner) size(e manifest.Entry, scope string, levels []level) size {
	s := size{nnodes: 1, nproc: 1, ranksPerNode: 1, gpus: p.gpus(e, levels), launcher: launcher.None()}
	if n := p.fixedNodes(scope); n > 0 {
		s.nnodes = n
	}
	if !enabled(levels) {
		return s
	}
	name, at := launcherName(levels)
	if l, err := launcher.Find(name); err != nil {
		p.refuse(at, "%w", err)
	} else {
		s.launcher = l
	}
	s.nnodes = p.nnodes(scope, levels)
	nproc := first(levels, func(l level) []number {
		return []number{l.own(l.distributed.NProcPerNode, "nproc_per_node")}
	})
	s.nproc = p.positive(nproc, p.defaultProcesses(name, at, s.gpus, nproc.Set))
	s.ranksPerNode = s.launcher.RanksPerNode(s.nproc)
	if name == "" && s.nproc > 1 {
		p.warn(nproc.at, "no launcher is named, so %d ranks are started on each node; name one (such as torchrun) if the script starts its own processes", s.nproc)
	}
	p.checkSize(e, levels, s, at)
	return s
}

// nnodes is how many nodes a job has. Where the run names its nodes, its scope says
// that; a model that wants another number by its own word is refused.
func (p *planner) nnodes(scope string, levels []level) int {
	numbers := func(l level) []number { return []number{l.own(l.distributed.NNodes, "nnodes"), l.nodes} }
	fixed := p.fixedNodes(scope)
	if fixed == 0 {
		def := 1
		if scope == scopePair {
			def = 2
		}
		return p.positive(first(levels, numbers), def)
	}
	if own := firstSet(numbers(levels[0])...); own.Set && own.Value != fixed {
		p.refuse(own.at, "the model wants %d nodes, and scope %s over --nodes %s has %d", own.Value, scope, hostlist.Compress(p.opt.Nodes), fixed)
	}
	return fixed
}

// defaultProcesses returns the processes a node of a job that does not say: one
// a GPU where a launcher is named, else one.
func (p *planner) defaultProcesses(launcherName, at string, gpus int, set bool) int {
	switch {
	case launcherName == "" || set:
		return 1
	case gpus > 0:
		return gpus
	case gpus < 0:
		p.warn(at, "how many GPUs a node has is not known, so %s gets 1 process a node; set distributed.nproc_per_node", launcherName)
	}
	return 1
}

// checkSize refuses what cannot run together.
func (p *planner) checkSize(e manifest.Entry, levels []level, s size, launcherAt string) {
	for _, l := range levels {
		nnodes := l.distributed.NNodes
		if l.nodes.Set && nnodes.Set && l.nodes.Value != nnodes.Value {
			p.refuse(l.nodes.at, "%s.nodes is %d and distributed.nnodes is %d: the scheduler and the launcher would disagree on the world size; make them the same",
				l.scheduler, l.nodes.Value, nnodes.Value)
		}
	}
	if s.launcher.SlurmOnly && p.target != "slurm" {
		p.refuse(launcherAt, "launcher %s submits job steps itself and works on target slurm only, not on %s", s.launcher.Name, p.target)
	}
	if s.nnodes < s.launcher.MinNodes {
		p.warn(launcherAt, "launcher %s needs at least %d nodes to give them their roles, and this model has %d", s.launcher.Name, s.launcher.MinNodes, s.nnodes)
	}
	if world := s.launcher.WorldSize(s.nnodes, s.nproc); world > maxWorldSize {
		p.refuse(e.Pointer(), "%d nodes × %d ranks a node are %d ranks, and a job has at most %d", s.nnodes, s.ranksPerNode, world, maxWorldSize)
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

// gpus returns how many GPUs a node the job asks for: -1 for all of them, 0 for
// none. "All" is made a number where the deployment knows it.
func (p *planner) gpus(e manifest.Entry, levels []level) int {
	model, dep := levels[0], levels[1]
	n := firstSet(model.gpus, number{e.NGPUs, e.Pointer("n_gpus")})
	if !n.Set || n.Value == -1 {
		whole := firstSet(number{p.m.Deployment.GPUsPerNode, dep.at("gpus_per_node")}, dep.gpus)
		n = firstSet(whole, n)
	}
	if n.Value < -1 || n.Value > maxWorldSize {
		p.refuse(n.at, "%d is no number of GPUs: -1 (all) to %d", n.Value, maxWorldSize)
		return 0
	}
	return n.Value
}

// port returns the port of the rendezvous, 0 when the target is to choose one.
func (p *planner) port(levels []level) int {
	n := first(levels, func(l level) []number {
		return []number{l.own(l.distributed.Port, "port"), l.own(l.distributed.MasterPort, "master_port")}
	})
	if n.Set && (n.Value < 1 || n.Value > 65535) {
		p.refuse(n.at, "%d is no port: 1 to 65535", n.Value)
	}
	return n.Value
}

// scope returns what the verdict is about.
func (p *planner) scope(e manifest.Entry) string {
	switch e.Scope {
	case "":
		return scopeJob
	case scopeJob, scopeNode, scopePair, scopeGroup:
	default:
		p.refuse(e.Pointer("scope"), "unknown scope %q (known: job, node, pair, group)", e.Scope)
	}
	return e.Scope
}

// checkScope refuses a number of nodes that a scope cannot have, and of ranks: with
// several ranks on each node of a pair it would not be said which of them are its ends.
func (p *planner) checkScope(e manifest.Entry, scope string, s size) {
	nnodes := s.nnodes
	found := fmt.Sprintf("this model has %d: name nodes with --nodes, or set distributed.nnodes", nnodes)
	if p.fixedNodes(scope) > 0 {
		found = "--nodes names " + p.named()
	}
	switch {
	case scope == scopePair && nnodes != 2:
		p.refuse(e.Pointer("scope"), "scope pair needs exactly 2 nodes, and %s", found)
	case scope == scopeGroup && nnodes < 2:
		p.refuse(e.Pointer("scope"), "scope group needs at least 2 nodes, and %s", found)
	case scope == scopeNode && nnodes != 1:
		p.refuse(e.Pointer("scope"), "scope node needs exactly 1 node, and %s", found)
	case scope == scopePair && len(p.opt.Nodes) == 1:
		p.refuse(e.Pointer("scope"), "scope pair needs at least 2 nodes, and %s", found)
	case scope == scopePair && s.ranksPerNode != 1:
		p.refuse(e.Pointer("scope"), "scope pair has one rank on each of its 2 nodes, and this model has %d ranks a node; use scope group, or start the processes in the script", s.ranksPerNode)
	}
}

// timeout returns the time limit in seconds, 0 for none.
func (p *planner) timeout(e manifest.Entry) int {
	n, where := e.Timeout, p.timeoutAt(e)
	if t := p.opt.TimeoutSeconds; t != nil {
		n = card.Int{Value: *t, Set: true}
	}
	switch {
	case !n.Set || n.Value == -1:
		return defaultTimeout
	case n.Value < -1 || n.Value > maxTimeout:
		p.fail(where, fmt.Errorf("%d is no time limit in seconds: -1 (the default of %d), 0 (none), or up to %d", n.Value, defaultTimeout, maxTimeout))
		return defaultTimeout
	}
	return n.Value
}

// timeoutAt is where the time limit is said.
func (p *planner) timeoutAt(e manifest.Entry) string {
	if p.opt.TimeoutSeconds != nil {
		return "--timeout"
	}
	return "manifest: " + e.Pointer("timeout")
}

// checkDuration refuses a time limit in which no workload could go on for a second and
// then end by itself.
func (p *planner) checkDuration(e manifest.Entry, job Job) {
	if limit := job.TimeoutSeconds; job.Policy.DurationSeconds > 0 && limit > 0 && within(limit) < 1 {
		p.fail(p.timeoutAt(e), fmt.Errorf("a test with a duration is asked to go on within four fifths of its time limit, and of %d s that is less than a second; give it at least 2", limit))
	}
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

package rank

import (
	"maps"
	"slices"

	"assay/pkg/plan"
)

// setKnown sets a variable to a value that may not be known; then it is not set.
func (v *variables) setKnown(name, value string) {
	if v.unset(name); value != "" {
		v.set(name, value)
	}
}

// setAsked tells a workload for how long to go on, and which variant it is. What an
// outer run gave its own workload is none of this one's.
func (w *wrapper) setAsked(v *variables) {
	for _, name := range slices.Clone(v.order) {
		if plan.IsAsked(name) {
			v.unset(name)
		}
	}
	asked := w.attempt.Asked()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		v.set(name, asked[name])
	}
}

// setNodes names the nodes: for messages, never to reach them by.
func (w *wrapper) setNodes(v *variables) {
	v.set("ASSAY_NODE", w.end.Node)
	v.setKnown("ASSAY_PEER_NODE", w.peerNode())
	v.setKnown("ASSAY_ROOT_NODE", w.nodeOf(0))
}

// nodeOf is the node of a rank, "" when that is not known. Where the names of hosts are
// those of nodes, the hosts say it: a scheduler puts nodes into an order of its own.
func (w *wrapper) nodeOf(rank int) string {
	job := w.attempt.Job
	node := rank / max(job.RanksPerNode, 1)
	switch {
	case rank == w.rank:
		return w.end.Node
	case job.K8s != nil: // the hosts are pods, which are put onto nodes in any order
		return ""
	case len(w.options.Hosts) > node:
		return w.options.Hosts[node]
	case job.Slurm == nil && len(job.Nodes) > node:
		return job.Nodes[node]
	case node == w.nodeRank(), len(job.Nodes) == 0 && w.oneHost():
		return w.end.Node
	}
	return ""
}

// peerNode is the node of the other end of a pair, "" when there is none.
func (w *wrapper) peerNode() string {
	switch {
	case w.attempt.Job.Scope != scopePair:
		return ""
	case w.rank == 0:
		return w.nodeOf(max(w.attempt.Job.RanksPerNode, 1))
	}
	return w.nodeOf(0)
}

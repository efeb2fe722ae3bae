package rank

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// setKnown sets a variable to a value that may not be known; then it is not set.
func (v *variables) setKnown(name, value string) {
	if v.unset(name); value != "" {
		v.set(name, value)
	}
}

const askDuration, askVariant = "DURATION_SECONDS", "VARIANT_"

func askPrefixes() []string { return []string{"ASSAY_", "BURNIN_"} }

// setAsked tells a workload for how long to go on, and which variant it is. What an
// outer run gave its own workload is none of this one's. The manifest's own variables
// win over these.
func (w *wrapper) setAsked(v *variables) {
	for _, name := range slices.Clone(v.order) {
		if asks(name) {
			v.unset(name)
		}
	}
	for _, prefix := range askPrefixes() {
		if n := w.attempt.DurationSeconds; n > 0 {
			v.set(prefix+askDuration, strconv.Itoa(n))
		}
		for _, axis := range slices.Sorted(maps.Keys(w.attempt.Job.Variant)) {
			v.set(prefix+askVariant+variableName(axis), w.attempt.Job.Variant[axis])
		}
	}
}

// asks reports whether a variable is one of those that setAsked sets.
func asks(name string) bool {
	return slices.ContainsFunc(askPrefixes(), func(prefix string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && (rest == askDuration || strings.HasPrefix(rest, askVariant))
	})
}

// variableName is the name of an axis as that of a variable.
func variableName(axis string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, axis)
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

package lint

import (
	"fmt"

	"assay/pkg/document"
)

// nodesAgree checks slurm.nodes against distributed.nnodes of the same place.
func (c *checker) nodesAgree(slurm, distributed document.Node) {
	nodes, nnodes := slurm.Get("nodes"), distributed.Get("nnodes")
	a, okA := nodes.Int()
	b, okB := nnodes.Int()
	if okA && okB && a != b {
		c.at(Error, NodesMismatch, nodes, fmt.Sprintf("slurm.nodes is %d and distributed.nnodes (%s) is %d: sbatch and the launcher would disagree on the world size", a, nnodes.Pointer(), b),
			"make them the same, or leave one out")
	}
}

// nodesOverridden warns where a model says how many nodes it wants in one block,
// and the deployment says otherwise in the other. The model's word goes for both
// sbatch and the launcher, so nothing breaks; but one of the two numbers was
// written for nothing. The same block in both places is an ordinary override.
func (c *checker) nodesOverridden(slurm, distributed document.Node, d deployment) {
	check := func(own, other, theirs document.Node) {
		a, okA := own.Int()
		b, okB := theirs.Int()
		if okA && okB && a != b && !other.Given() {
			c.at(Warning, NodesOverridden, own, fmt.Sprintf("this model asks for nodes: %d, so %s (%d) does not apply to it", a, theirs.Pointer(), b), "")
		}
	}
	nodes, nnodes := slurm.Get("nodes"), distributed.Get("nnodes")
	check(nodes, nnodes, d.block("distributed").Get("nnodes"))
	check(nnodes, nodes, d.block("slurm").Get("nodes"))
}

// scope checks that a pair has two nodes and a group at least two. The number is
// the first that is given of the model's nnodes and nodes and the deployment's; where
// none is, the run names its nodes.
func (c *checker) scope(card document.Node, d deployment) {
	scope := card.Get("scope")
	if scope.Text() != "pair" && scope.Text() != "group" {
		return
	}
	nodes, from, known := 0, "", false
	for _, n := range []document.Node{
		card.Get("distributed").Get("nnodes"), card.Get("slurm").Get("nodes"),
		d.block("distributed").Get("nnodes"), d.block("slurm").Get("nodes"),
	} {
		if v, ok := n.Int(); ok {
			nodes, from, known = v, n.Pointer(), true
			break
		}
	}
	if !known {
		return
	}
	switch {
	case scope.Text() == "pair" && nodes != 2:
		c.at(Error, ScopeNodes, scope, fmt.Sprintf("a pair has exactly 2 nodes, not %d (%s)", nodes, from), "set distributed.nnodes to 2")
	case scope.Text() == "group" && nodes < 2:
		c.at(Error, ScopeNodes, scope, fmt.Sprintf("a group has at least 2 nodes, not %d (%s)", nodes, from), "set distributed.nnodes to 2 or more")
	}
}

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"assay/pkg/hostlist"
	"assay/pkg/manifest"
	"assay/pkg/pairwise"
	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

// The scopes: what a verdict is about.
const (
	scopeJob   = "job"
	scopeNode  = "node"
	scopePair  = "pair"
	scopeGroup = "group"
)

// unit is one thing that a test is about: a node, a link, or all nodes together.
type unit struct {
	nodes []string
	round int // of a tournament of pairs, from 1
}

// units are what an entry is run on, one job each. Without named nodes it is one job,
// wherever the target puts it.
func (p *planner) units(e manifest.Entry, t test, scope string, nnodes int) []unit {
	nodes := p.opt.Nodes
	if len(nodes) == 0 {
		return []unit{{}}
	}
	switch scope {
	case scopeNode:
		var units []unit
		for _, n := range nodes {
			units = append(units, unit{nodes: []string{n}})
		}
		return units
	case scopePair:
		return p.pairs(e, t)
	case scopeGroup:
		return []unit{{nodes: nodes}}
	}
	if nnodes != len(nodes) {
		has := "it has no scope"
		if e.Scope != "" {
			has = "its scope is " + e.Scope
		}
		p.refuse(e.Pointer("scope"), "%s, so that it is one job on %s, and --nodes names %s: say what each job is about with scope node, pair or group", has, phrase.Count(nnodes, "node"), p.named())
		return nil
	}
	return []unit{{nodes: nodes}}
}

// pairs are the links that a test of scope pair is about.
func (p *planner) pairs(e manifest.Entry, t test) []unit {
	nodes, choice := p.opt.Nodes, t.pairs
	if choice == "" && len(nodes) == 2 {
		choice = pairwise.ModeAll
	}
	if choice == "" {
		p.refuse(e.Pointer("scope"), "scope pair is about 2 nodes, and --nodes names %s; say which pairs with --pairs all, --pairs ring or --pairs a:b,c:d", p.named())
		return nil
	}
	rounds, err := pairwise.Select(choice, nodes)
	if err != nil {
		p.fail(t.pairsAt, err)
		return nil
	}
	var units []unit
	for i, round := range rounds {
		for _, pair := range round {
			u := unit{nodes: []string{nodes[pair[0]], nodes[pair[1]]}}
			if len(nodes) > 2 {
				u.round = i + 1
			}
			units = append(units, u)
		}
	}
	return units
}

// named is how messages call the nodes of the run.
func (p *planner) named() string {
	return fmt.Sprintf("%d (%s)", len(p.opt.Nodes), hostlist.Compress(p.opt.Nodes))
}

// fixedNodes is how many nodes a job of a scope has when the run names its nodes; 0
// when that is left to the manifest.
func (p *planner) fixedNodes(scope string) int {
	if len(p.opt.Nodes) == 0 {
		return 0
	}
	switch scope {
	case scopeNode:
		return 1
	case scopePair:
		return 2
	case scopeGroup:
		return len(p.opt.Nodes)
	}
	return 0
}

// checkNodes refuses names of nodes that would not do.
func (p *planner) checkNodes() {
	seen := map[string]bool{}
	for _, n := range p.opt.Nodes {
		switch {
		case n == "" || strings.ContainsAny(n, " \t\n,:[]/"):
			p.fail("--nodes", fmt.Errorf("%q is no name of a node", n))
		case seen[n]:
			p.fail("--nodes", fmt.Errorf("node %s is named twice", n))
		}
		seen[n] = true
	}
}

// place puts a job on the nodes of a unit. several says that its entry has others.
func (p *planner) place(job Job, u unit, several bool) Job {
	job.Nodes, job.Round = u.nodes, u.round
	if u.round > 0 {
		job.Stage += u.round - 1
	}
	if len(u.nodes) > 0 && job.Slurm != nil {
		s := *job.Slurm
		s.Nodelist = hostlist.Compress(u.nodes)
		if s.Requeue == nil && job.Expect.Contract == verdict.ContractAcceptance {
			// A start that lost its node is an attempt that could not be judged, and the
			// job's retries say whether it is made again.
			s.Requeue = new(bool)
		}
		job.Slurm = &s
	}
	if several {
		job.ID = unitID(job.ID, u.nodes)
	}
	return job
}

// unitID is the id of a job of an entry that has several: with its nodes, or where
// that gets too long, their digest.
func unitID(id string, nodes []string) string {
	suffix := "." + strings.Join(nodes, ".")
	if fit(id + suffix) {
		return id + suffix
	}
	digest := sha256.Sum256([]byte(suffix))
	suffix = "." + hex.EncodeToString(digest[:6])
	return id[:min(len(id), maxID-len(suffix))] + suffix
}

// Cost is how many nodes a job puts under load.
func (j Job) Cost() int { return max(len(j.Nodes), j.NNodes, 1) }

// checkInterlock refuses jobs that could never run within the limit of nodes under
// load.
func (p *planner) checkInterlock(jobs []Job) {
	limit, at := p.maxNodes()
	if limit == 0 {
		return
	}
	told := map[string]bool{}
	for _, j := range jobs {
		name := j.name()
		if j.Cost() <= limit || told[name] {
			continue
		}
		told[name] = true
		p.fail(at, fmt.Errorf("test %s puts %d nodes under load at the same time, and at most %d may be (max_concurrent_nodes); raise it with --max-concurrent-nodes %d, or name fewer nodes",
			name, j.Cost(), limit, j.Cost()))
	}
}

// maxNodes is MaxNodes, and where it is said.
func (p *planner) maxNodes() (limit int, at string) {
	at = "manifest: /suite/max_concurrent_nodes"
	if p.opt.MaxNodes != 0 {
		at = "--max-concurrent-nodes"
	}
	return MaxNodes(p.suite, p.opt.MaxNodes), at
}

// MaxNodes is how many nodes may be under load at the same time, 0 for no limit: as
// asked, or as the suite says, which has 1 when it does not. Without a suite there is
// no limit.
func MaxNodes(suite *manifest.Suite, asked manifest.NodeLimit) int {
	n := asked
	if n == 0 && suite != nil {
		n = max(suite.MaxNodes, 1)
		if suite.MaxNodes == manifest.AllNodes {
			n = 0
		}
	}
	return max(int(n), 0)
}

// name is what messages call the job: its test, or its key.
func (j Job) name() string {
	if j.Test == "" {
		return j.Key
	}
	return j.Test
}

// uniqueIDs makes the ids of expanded jobs distinct on a file system that ignores
// case, as those of their entries are.
func uniqueIDs(jobs []Job) {
	taken := map[string]bool{}
	for i := range jobs {
		id := jobs[i].ID
		for n := 2; taken[strings.ToLower(id)]; n++ {
			suffix := fmt.Sprintf("-%d", n)
			id = jobs[i].ID[:min(len(jobs[i].ID), maxID-len(suffix))] + suffix
		}
		taken[strings.ToLower(id)] = true
		jobs[i].ID = id
	}
}

// rounds is how many stages the units of a test take.
func rounds(units []unit) int {
	if len(units) == 0 {
		return 1
	}
	return max(1, slices.MaxFunc(units, func(a, b unit) int { return a.round - b.round }).round)
}

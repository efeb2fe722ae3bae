package k8s

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay/deploy"
	"assay/pkg/phrase"
	"assay/pkg/plan"
)

// wish is what the pods of some entries all ask of their nodes.
type wish struct {
	keys        []string // of the entries
	pods        int
	requests    corev1.ResourceList
	selector    map[string]string
	tolerations []corev1.Toleration
	nodes       []string // that the jobs name, of all of them; empty: any will do
}

// wishes are the distinct wishes of jobs, in the order of the manifest. Jobs of which
// no objects can be made have none.
func wishes(jobs []plan.Job) []wish {
	var out []wish
	index := map[string]int{}
	for _, j := range jobs {
		r := renderer{a: identity(j), k: asked(j)}
		res, err := r.resources()
		if err != nil {
			continue
		}
		tol, err := tolerations(r.k.Tolerations)
		if err != nil {
			continue
		}
		w := wish{pods: j.WorldSize, requests: effective(res), selector: r.k.NodeSelector, tolerations: tol}
		key := fmt.Sprint(w.pods, w.ask(), w.selector, string(r.k.Tolerations), len(j.Nodes) > 0)
		i, seen := index[key]
		if !seen {
			i = len(out)
			index[key] = i
			out = append(out, w)
		}
		if !slices.Contains(out[i].keys, j.Key) { // it may have a job on each node
			out[i].keys = append(out[i].keys, j.Key)
		}
		for _, name := range j.Nodes {
			if !slices.Contains(out[i].nodes, name) {
				out[i].nodes = append(out[i].nodes, name)
			}
		}
	}
	return out
}

// effective are the requests of a pod: a limit without a request is one.
func effective(r corev1.ResourceRequirements) corev1.ResourceList {
	all := corev1.ResourceList{}
	for name, q := range r.Limits {
		all[name] = q
	}
	for name, q := range r.Requests {
		all[name] = q
	}
	return all
}

// ask says what one pod asks for, as in "cpu 8, memory 64Gi".
func (w wish) ask() string {
	var parts []string
	for name, q := range w.requests {
		parts = append(parts, fmt.Sprintf("%s %s", name, q.String()))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (w wish) who() string {
	const most = 3
	names := w.keys[:min(len(w.keys), most)]
	text := "entry " + strings.Join(names, ", ")
	if more := len(w.keys) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// nodeFindings compare what pods ask for with what nodes have. Nodes come and go, so
// that too few are never more than a warning: max_pending says how long to wait. Only
// what was named and takes no pods is a problem.
func (p place) nodeFindings(ctx context.Context, c asker) []deploy.Finding {
	var nodes corev1.NodeList
	if err := c.list(ctx, "/api/v1/nodes", "", "", &nodes); err != nil {
		return []deploy.Finding{notSeen("nodes", "list nodes", err)}
	}
	ws := wishes(p.jobs)
	found := namedFindings(ws, nodes.Items)
	for _, w := range ws {
		found = append(found, w.finding(nodes.Items))
	}
	return found
}

func (w wish) finding(nodes []corev1.Node) deploy.Finding {
	subject := "nodes for " + w.who()
	matching, room := 0, 0
	best := corev1.ResourceList{}
	for i := range nodes {
		n := &nodes[i]
		if !w.takes(n) {
			continue
		}
		matching++
		room += w.fit(n.Status.Allocatable)
		for name := range w.requests {
			if q := n.Status.Allocatable[name]; q.Cmp(best[name]) > 0 {
				best[name] = q
			}
		}
	}
	const fix = "pods wait until there are such nodes, or as long as max_pending says"
	switch {
	case matching == 0:
		return warning(subject, fmt.Sprintf("none of %s is ready and matches node_selector and tolerations", phrase.Count(len(nodes), "node")), fix)
	case room == 0:
		return warning(subject, fmt.Sprintf("no node has what one pod asks for (%s): of each, the most on a node is %s", w.ask(), wish{requests: most(best, w.requests)}.ask()), fix)
	case room < w.pods:
		return warning(subject, fmt.Sprintf("nodes that match: %d, with room for %s; %d are asked for, and ranks meet only when all run", matching, phrase.Count(room, "pod"), w.pods), fix)
	}
	return ok(subject, "nodes that match: %d, with room for %s", matching, phrase.Count(w.pods, "pod"))
}

// most is the most of each resource that was asked for, with none of what no node has.
func most(best, requests corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name := range requests {
		out[name] = *resource.NewQuantity(0, resource.DecimalSI)
		if q, ok := best[name]; ok {
			out[name] = q
		}
	}
	return out
}

// takes reports whether a pod may run on a node at all.
func (w wish) takes(n *corev1.Node) bool {
	return (len(w.nodes) == 0 || slices.Contains(w.nodes, n.Labels[corev1.LabelHostname])) && w.against(n) == ""
}

// against says what of a node keeps pods away, or "".
func (w wish) against(n *corev1.Node) string {
	for name, value := range w.selector {
		if got, has := n.Labels[name]; !has || got != value {
			return "does not match node_selector"
		}
	}
	if n.Spec.Unschedulable && !w.tolerates(&corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}) {
		return "is cordoned"
	}
	if !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}) {
		return "is not ready"
	}
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; t.Effect != corev1.TaintEffectPreferNoSchedule && !w.tolerates(t) {
			return "has the taint " + t.ToString()
		}
	}
	return ""
}

// tolerates reports whether one of the tolerations is of a taint.
func (w wish) tolerates(t *corev1.Taint) bool {
	return slices.ContainsFunc(w.tolerations, func(o corev1.Toleration) bool {
		switch {
		case o.Effect != "" && o.Effect != t.Effect, o.Key != "" && o.Key != t.Key:
			return false
		case o.Operator == corev1.TolerationOpExists:
			return true
		}
		return o.Key != "" && (o.Operator == "" || o.Operator == corev1.TolerationOpEqual) && o.Value == t.Value
	})
}

// fit is how many such pods a node has room for when nothing else runs there.
func (w wish) fit(has corev1.ResourceList) int {
	room := int64(math.MaxInt32)
	if pods, told := has[corev1.ResourcePods]; told {
		room = pods.Value()
	}
	for name, want := range w.requests {
		if want.IsZero() {
			continue
		}
		q := has[name]
		// In thousandths a petabyte still fits.
		room = min(room, q.MilliValue()/max(want.MilliValue(), 1))
	}
	return int(room)
}

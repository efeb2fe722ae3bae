package k8s

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"assay/deploy"
	"assay/pkg/hostlist"
	"assay/pkg/phrase"
)

// namedFindings say which of the nodes that jobs name there are, and which of them take
// no pods now: unlike any node that will do, a named one has no other to take its place.
// Wishes that name none have none.
func namedFindings(ws []wish, nodes []corev1.Node) []deploy.Finding {
	wanted := map[string]wish{} // by node: the first that names it
	for _, w := range ws {
		for _, name := range w.nodes {
			if _, seen := wanted[name]; !seen {
				wanted[name] = w
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	const subject = "named nodes"
	var absent, away, fixes []string
	for name, w := range wanted {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Labels[corev1.LabelHostname] == name })
		if i < 0 {
			absent = append(absent, name)
			if fix := otherName(name, nodes); fix != "" {
				fixes = append(fixes, fix)
			}
			continue
		}
		if why := w.against(&nodes[i]); why != "" {
			away = append(away, name+" "+why)
		}
	}
	slices.Sort(absent)
	slices.Sort(away)
	slices.Sort(fixes)
	var found []deploy.Finding
	if len(absent) > 0 {
		fix := strings.Join(fixes, "; ")
		if fix == "" {
			fix = "kubectl get nodes lists them; the label " + corev1.LabelHostname + " is what counts"
		}
		found = append(found, fault(subject, fmt.Sprintf("there is no node %s", hostlist.Compress(absent)), fix))
	}
	if len(away) > 0 {
		found = append(found, fault(subject, fmt.Sprintf("of the nodes that are named, %s: pods would wait for them", strings.Join(away, ", ")), "name others, or see to these"))
	}
	if len(found) == 0 {
		found = append(found, ok(subject, "all %s are there and take pods", phrase.Count(len(wanted), "node")))
	}
	return found
}

// otherName says how a node is to be called that has another host name than name.
func otherName(name string, nodes []corev1.Node) string {
	for i := range nodes {
		if host := nodes[i].Labels[corev1.LabelHostname]; nodes[i].Name == name && host != "" {
			return fmt.Sprintf("node %s has the host name %s: name that", name, host)
		}
	}
	return ""
}

package k8s

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// affinity puts the pods of a job that names its nodes on those, and each on one of its
// own where a node has one rank. Which rank comes to which node is the scheduler's
// choice: the pods of an Indexed Job differ in nothing else.
func (r *renderer) affinity() *corev1.Affinity {
	j := r.a.Job
	if len(j.Nodes) == 0 {
		return nil
	}
	a := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: j.Nodes}},
		}}},
	}}
	if j.NNodes > 1 && j.RanksPerNode <= 1 {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: r.selector()}, TopologyKey: corev1.LabelHostname,
		}}}
	}
	return a
}

// spread asks for the ranks of different nodes on different nodes, where there are
// as many: what is measured between two pods of one node is not the network. The
// pods run all the same where there are not, unless the nodes are named.
func (r *renderer) spread() []corev1.TopologySpreadConstraint {
	j := r.a.Job
	named := len(j.Nodes) > 0
	if j.NNodes < 2 || named != (j.RanksPerNode > 1) { // one a node of those that are named: affinity says that
		return nil
	}
	otherwise := corev1.ScheduleAnyway
	if named {
		otherwise = corev1.DoNotSchedule
	}
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: otherwise,
		LabelSelector: &metav1.LabelSelector{MatchLabels: r.selector()},
	}}
}

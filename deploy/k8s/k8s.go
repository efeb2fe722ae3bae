// Package k8s is the target that runs jobs on Kubernetes, as Indexed Jobs: one pod a
// rank. Conditions decide, never counts; what pods and containers are said to be
// is evidence beside what their ranks left.
package k8s

// Name is the name of the target.
const Name = "k8s"

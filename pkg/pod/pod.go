// Package pod is what the two sides of a rank in a Kubernetes pod agree on: where
// things are mounted, and the forms in which a rank hands over what it leaves
// where no filesystem is shared. It is pure.
package pod

// Where things are in the pod of a rank.
const (
	Root       = "/assay"               // an emptyDir
	Binary     = Root + "/bin/assay"    // copied there by the init container
	JobFile    = Root + "/job/job.json" // of the attempt that was submitted, from the ConfigMap
	ModelDir   = Root + "/model"        // the scripts that were shipped, from the ConfigMap
	AttemptDir = Root + "/attempt"      // stands for the attempt directory where that is not shared
	ResultsDir = Root + "/results"      // the results volume, where there is one

	// TerminationLog is the file whose content becomes the termination message.
	TerminationLog = "/dev/termination-log"
	// MaxMessage is the size of a termination message, in bytes: the kubelet cuts
	// what is longer.
	MaxMessage = 4096

	// Container is the name of the container that runs the rank, InitContainer that of
	// the one that brings the binary.
	Container     = "rank"
	InitContainer = "assay"
)

// Variables of the pod that tell `assay rank --under k8s` where it stands.
const (
	IndexVariable   = "JOB_COMPLETION_INDEX" // the rank; set by Kubernetes
	NodeVariable    = "ASSAY_NODE_NAME"      // the node, from the downward API
	PodVariable     = "ASSAY_POD_NAME"       // the pod, from the downward API
	ResultsVariable = "ASSAY_RESULTS_VOLUME" // ResultsDir, where there is a results volume
)

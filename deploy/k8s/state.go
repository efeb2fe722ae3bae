package k8s

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"assay/pkg/phrase"
	"assay/pkg/pod"
	"assay/pkg/verdict"
)

// The words of assay for what Kubernetes has no single word for.
const (
	wordOOM       = "OOMKilled"
	wordCancelled = "CANCELLED" // as of other targets: somebody ended the job
	wordNodeLost  = "NodeLost"
	wordPending   = "Pending"
	wordRunning   = "Running"
)

// trouble is what is said of a pod that is no end of its workload: a word of
// Kubernetes, and the whole of what it says.
type trouble struct {
	word, text string
	weight     int // of several the heaviest counts
}

// The weights of troubles.
const (
	weightDeleted = iota + 1
	weightDeadline
	weightDisrupted
	weightOOM
)

// container returns the status of a container, and whether there is one.
func (p *podView) container(name string) (corev1.ContainerStatus, bool) {
	for _, s := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if s.Name == name {
			return s, true
		}
	}
	return corev1.ContainerStatus{}, false
}

// started reports whether the rank's container began, so that it has a log.
func (p *podView) started() bool {
	s, ok := p.container(pod.Container)
	switch {
	case p.began:
		return true
	case !ok:
		return false
	case s.State.Running != nil:
		return true
	}
	t := s.State.Terminated
	return t != nil && !t.StartedAt.IsZero() && t.Reason != "StartError" && t.Reason != "ContainerCannotRun"
}

// terminated is the end of the rank's container, nil when there is none yet, or
// none that is known: of a container that a node has lost the kubelet makes up the
// exit code 137.
func (p *podView) terminated() *corev1.ContainerStateTerminated {
	s, ok := p.container(pod.Container)
	if !ok || s.State.Terminated != nil && s.State.Terminated.Reason == "ContainerStatusUnknown" {
		return nil
	}
	return s.State.Terminated
}

// over reports whether nothing more is going to happen in a pod.
func (p *podView) over() bool {
	return p.deleted || p.terminated() != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// name is how messages call a pod.
func (p *podView) name() string {
	where := ""
	if p.Spec.NodeName != "" {
		where = " on " + p.Spec.NodeName
	}
	return fmt.Sprintf("rank %d (pod %s%s)", p.rank(), p.Name, where)
}

// trouble is the heaviest of what is said of a pod besides the end of its workload;
// ours says that the Job itself ends its pods.
func (p *podView) trouble(ours bool) *trouble {
	switch {
	case p.oomKilled() != "":
		return &trouble{wordOOM, p.name() + ": the container " + p.oomKilled() + " ran out of memory" + p.memoryLimit(), weightOOM}
	case p.disrupted() != nil:
		c := p.disrupted()
		return &trouble{p.disruption(c.Reason), p.name() + ": " + text(c.Reason, c.Message), weightDisrupted}
	case p.Status.Reason == "DeadlineExceeded":
		return &trouble{"DeadlineExceeded", p.name() + ": " + text(p.Status.Reason, p.Status.Message), weightDeadline}
	case p.Status.Reason != "" && p.Status.Phase == corev1.PodFailed:
		return &trouble{p.Status.Reason, p.name() + ": " + text(p.Status.Reason, p.Status.Message), weightDisrupted}
	case p.deletedWhileRunning() && !ours:
		return &trouble{wordCancelled, p.name() + " was deleted by somebody while it ran", weightDeleted}
	}
	return nil
}

// oomKilled is the container that ran out of memory, whatever its exit code was.
func (p *podView) oomKilled() string {
	for _, s := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
			if state.Terminated != nil && state.Terminated.Reason == wordOOM {
				return s.Name
			}
		}
	}
	return ""
}

func (p *podView) memoryLimit() string {
	for _, c := range p.Spec.Containers {
		if m, ok := c.Resources.Limits[corev1.ResourceMemory]; ok && c.Name == pod.Container {
			return fmt.Sprintf(" (limit %s)", m.String())
		}
	}
	return ""
}

// disrupted is the condition that says that the pod had to go for a reason that is
// not its own.
func (p *podView) disrupted() *corev1.PodCondition {
	for i, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// disruption is the word for a reason of a disruption. A taint may be that of a node
// which is lost, or one that somebody set: then the node says that the pod has ended.
func (p *podView) disruption(reason string) string {
	switch {
	case reason == corev1.PodReasonPreemptionByScheduler:
		return "Preempted"
	case reason == "DeletionByPodGC", reason == "DeletionByTaintManager" && p.terminated() == nil:
		return wordNodeLost
	case reason == "DeletionByTaintManager", reason == "EvictionByEvictionAPI", reason == corev1.PodReasonTerminationByKubelet:
		return "Evicted"
	}
	return reason
}

// deletedWhileRunning reports whether a pod was seen to be deleted before its workload
// ended. Times do not tell: the deletion has that of the server, the end that of the
// node.
func (p *podView) deletedWhileRunning() bool {
	if p.DeletionTimestamp == nil && !p.deleted {
		return false
	}
	return p.began && p.gaveWay
}

// stuck says why a pod is not going to start, nil when it may. patient says that
// what may pass has been waited for.
func (p *podView) stuck(patient bool) *refusal {
	if p.started() || p.DeletionTimestamp != nil {
		return nil
	}
	for _, s := range append(append([]corev1.ContainerStatus{}, p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...) {
		if w := s.State.Waiting; w != nil {
			if r := p.waiting(s.Name, s.Image, w, patient); r != nil {
				return r
			}
		}
		if end := s.State.Terminated; end != nil && (s.Name == pod.InitContainer && end.ExitCode != 0 || end.Reason == "StartError" || end.Reason == "ContainerCannotRun") {
			return &refusal{verdict.CodeLaunchRefused, end.Reason, fmt.Sprintf("%s: the container %s could not run: exit code %d, %s", p.name(), s.Name, end.ExitCode, text(end.Reason, end.Message))}
		}
	}
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason != "" && p.Status.Reason != "DeadlineExceeded" && len(p.Status.ContainerStatuses) == 0 {
		return &refusal{verdict.CodeLaunchRefused, p.Status.Reason, p.name() + ": " + text(p.Status.Reason, p.Status.Message)}
	}
	return nil
}

// waiting says whether what a container waits for is not going to come.
func (p *podView) waiting(container, image string, w *corev1.ContainerStateWaiting, patient bool) *refusal {
	said := text(w.Reason, w.Message)
	switch w.Reason {
	case "InvalidImageName", "ErrImageNeverPull":
	case "ImagePullBackOff", "ErrImagePull":
		if !patient && !hopeless(w.Message) {
			return nil
		}
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		if !patient { // what it names may be about to be created
			return nil
		}
		return &refusal{verdict.CodeLaunchRefused, w.Reason, fmt.Sprintf("%s: the container %s cannot be created: %s", p.name(), container, said)}
	default:
		return nil
	}
	return &refusal{verdict.CodeImage, w.Reason, fmt.Sprintf("%s: the image %s cannot be had: %s", p.name(), image, said)}
}

// hopeless reports whether a registry's answer is not going to change.
func hopeless(message string) bool {
	m := strings.ToLower(message)
	for _, words := range []string{"not found", "does not exist", "unauthorized", "forbidden", "denied", "manifest unknown", "no match for platform", "invalid reference"} {
		if strings.Contains(m, words) {
			return true
		}
	}
	return false
}

// waits is what a pod that has not started waits for: a node, or what its containers
// need. Word is empty when nothing is said of that.
func (p *podView) waits() (word, why string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, phrase.Line(c.Message)
		}
	}
	if r := p.stuck(true); r != nil {
		return r.word, r.text
	}
	return "", ""
}

// text joins a reason and a message.
func text(reason, message string) string {
	message = phrase.Line(message)
	switch {
	case message == "":
		return reason
	case reason == "" || strings.HasPrefix(message, reason):
		return message
	}
	return reason + ": " + message
}

// condition returns a condition of a Job that is true.
func condition(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// stateOf is one word for the state of a Job.
func stateOf(j *batchv1.Job) string {
	for _, kind := range []batchv1.JobConditionType{
		batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet, batchv1.JobSuspended,
	} {
		if c := condition(j, kind); c != nil {
			if kind == batchv1.JobFailed && c.Reason != "" {
				return c.Reason
			}
			return string(kind)
		}
	}
	switch {
	case j.DeletionTimestamp != nil:
		return "Deleting"
	case j.Status.Active > 0:
		return wordRunning
	}
	return wordPending
}

package k8s

import (
	"math"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay/pkg/pod"
)

// queueLabel names the local queue of Kueue that admits a job.
const queueLabel = "kueue.x-k8s.io/queue-name"

// replicatedJob is the name of the one job of a JobSet. The names of pods hold it.
const replicatedJob = "rank"

// What a rank exits with when its program cannot be executed, or is not there, as
// shells do.
const exitNotExecutable, exitNotFound = 126, 127

// job is the Indexed Job: the pod of index n is rank n.
func (r *renderer) job(template corev1.PodTemplateSpec) *batchv1.Job {
	j := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: r.meta(),
		Spec:       r.jobSpec(template),
	}
	j.Spec.TTLSecondsAfterFinished = r.ttl()
	if r.k.Queue != "" {
		j.Labels[queueLabel] = r.k.Queue
		j.Spec.Suspend = new(true)
	}
	return j
}

func (r *renderer) ttl() *int32 { return new(clamp(r.k.TTLSeconds)) }

// jobSpec is what a Job and the job of a JobSet have in common.
//
// backoffLimit counts failures of the whole job, and the controller deletes every
// pod that still runs when it is reached: one rank that exits non-zero would take
// the logs and the measurement of the others with it. The limit per index, which
// Kubernetes has since 1.29, ends that index alone; the limit of the whole job is
// out of reach then.
func (r *renderer) jobSpec(template corev1.PodTemplateSpec) batchv1.JobSpec {
	n := clamp(r.a.Job.WorldSize)
	return batchv1.JobSpec{
		CompletionMode:       new(batchv1.IndexedCompletion),
		Completions:          &n,
		Parallelism:          &n,
		BackoffLimit:         new(int32(math.MaxInt32)),
		BackoffLimitPerIndex: new(clamp(r.k.BackoffLimit)),
		PodReplacementPolicy: new(batchv1.Failed), // two pods of one rank never run at the same time
		PodFailurePolicy:     failurePolicy(),
		Template:             template,
	}
}

// failurePolicy says what becomes of an index whose pod failed. A pod that was
// evicted or preempted counts as any other: ignored, it would be started again for
// ever, alone, while its peers have lost it. A program that cannot be started will
// not be the next time either.
func failurePolicy() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionCount,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			},
		},
		{
			Action: batchv1.PodFailurePolicyActionFailIndex,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: new(pod.Container),
				Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values:        []int32{exitNotExecutable, exitNotFound},
			},
		},
	}}
}

// jobSet is the Job inside a JobSet, which queues and gang schedulers know how to
// admit as one. It is never restarted as a whole: an attempt is judged as it ended.
func (r *renderer) jobSet(template corev1.PodTemplateSpec) map[string]any {
	meta := r.meta()
	spec := map[string]any{
		"replicatedJobs": []any{map[string]any{
			"name":     replicatedJob,
			"replicas": 1,
			"template": batchv1.JobTemplateSpec{ObjectMeta: r.podMeta(), Spec: r.jobSpec(template)},
		}},
		"network":                 map[string]any{"enableDNSHostnames": true, "publishNotReadyAddresses": true, "subdomain": r.name},
		"failurePolicy":           map[string]any{"maxRestarts": 0},
		"ttlSecondsAfterFinished": r.ttl(),
	}
	if r.k.Queue != "" {
		meta.Labels[queueLabel] = r.k.Queue
		spec["suspend"] = true
	}
	return map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}
}

// clamp makes a number one that Kubernetes takes.
func clamp(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

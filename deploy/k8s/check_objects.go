package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"assay/deploy"
	"assay/pkg/plan"
)

// named is an object that the manifest names and that must be there.
type named struct{ kind, resource, name, path, fix string }

// objectQuestions ask for everything that the jobs of a place name.
func (p place) objectQuestions(c asker) []question {
	var out []question
	seen := map[string]bool{}
	once := func(key string, q question) {
		if !seen[key] {
			seen[key] = true
			out = append(out, q)
		}
	}
	for _, j := range p.jobs {
		k := asked(j)
		for _, o := range p.named(k) {
			once(o.path, func(ctx context.Context) []deploy.Finding { return []deploy.Finding{o.finding(ctx, c)} })
		}
		for _, v := range k.Volumes {
			if v.Claim != "" {
				once("claim "+v.Claim, func(ctx context.Context) []deploy.Finding { return []deploy.Finding{p.claimFinding(ctx, c, v.Claim)} })
			}
		}
		if k.JobSet {
			once("jobset", func(ctx context.Context) []deploy.Finding { return []deploy.Finding{jobSetFinding(ctx, c)} })
		}
		if k.Queue != "" {
			once("queue "+k.Queue, func(ctx context.Context) []deploy.Finding { return []deploy.Finding{p.queueFinding(ctx, c, k.Queue)} })
		}
	}
	return out
}

// named are the plain objects that a job names.
func (p place) named(k plan.K8s) []named {
	core := apiCore + p.namespace
	var out []named
	if k.ServiceAccount != "" {
		out = append(out, named{"service account", "serviceaccounts", k.ServiceAccount, core + "/serviceaccounts/" + k.ServiceAccount, "no pod would be created"})
	}
	if k.PriorityClass != "" {
		out = append(out, named{"priority class", "priorityclasses", k.PriorityClass, "/apis/scheduling.k8s.io/v1/priorityclasses/" + k.PriorityClass, "no pod would be created"})
	}
	secrets := slices.Clone(k.PullSecrets)
	if k.RuntimeSecret != "" && k.Secrets != "omit" {
		secrets = append(secrets, k.RuntimeSecret)
	}
	for _, name := range secrets {
		out = append(out, named{"secret", "secrets", name, core + "/secrets/" + name, "create it, or name another in the k8s block"})
	}
	return out
}

func (o named) finding(ctx context.Context, c asker) deploy.Finding {
	subject := o.kind + " " + o.name
	switch err := c.exists(ctx, o.path); {
	case apierrors.IsNotFound(err):
		return fault(subject, fmt.Sprintf("there is no %s %s", o.kind, o.name), o.fix)
	case err != nil:
		return notSeen(subject, "get "+o.resource, err)
	}
	return ok(subject, "is there")
}

// claimFinding looks at a claim. One that waits for its first pod is as good as one
// that is bound.
func (p place) claimFinding(ctx context.Context, c asker, name string) deploy.Finding {
	subject := "claim " + name
	data, err := c.getRaw(ctx, apiCore+p.namespace+"/persistentvolumeclaims/"+name)
	var claim corev1.PersistentVolumeClaim
	if err == nil {
		err = json.Unmarshal(data, &claim)
	}
	switch {
	case apierrors.IsNotFound(err):
		return fault(subject, fmt.Sprintf("there is no persistent volume claim %s in namespace %s", name, p.namespace), "create it; assay does not")
	case err != nil:
		return notSeen(subject, "get persistentvolumeclaims", err)
	case claim.Status.Phase == corev1.ClaimBound:
		return ok(subject, "is bound to %s", claim.Spec.VolumeName)
	case claim.Status.Phase == corev1.ClaimLost:
		return siteFault(subject, fmt.Sprintf("the volume of claim %s is gone", name), "pods that mount it cannot start")
	}
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	if class == "" {
		return siteFault(subject, fmt.Sprintf("no volume is bound to claim %s", name), "pods that mount it wait until there is one")
	}
	return waitingClaim(ctx, c, subject, name, class)
}

// waitingClaim tells a claim that gets its volume with the first pod from one that
// should have had it.
func waitingClaim(ctx context.Context, c asker, subject, name, class string) deploy.Finding {
	data, err := c.getRaw(ctx, "/apis/storage.k8s.io/v1/storageclasses/"+class)
	var sc struct{ VolumeBindingMode string }
	if err == nil {
		err = json.Unmarshal(data, &sc)
	}
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return notSeen(subject, "get storageclasses, and the claim is not bound", err)
	case sc.VolumeBindingMode == "WaitForFirstConsumer":
		return ok(subject, "gets its volume with the first pod")
	}
	return siteFault(subject, fmt.Sprintf("no volume is bound to claim %s, of storage class %s", name, class), "pods that mount it wait until there is one")
}

// jobSetFinding looks for the kind JobSet.
func jobSetFinding(ctx context.Context, c asker) deploy.Finding {
	const subject = "jobset"
	switch _, err := c.getRaw(ctx, "/apis/jobset.x-k8s.io/v1alpha2"); {
	case apierrors.IsNotFound(err):
		return fault(subject, "the cluster has no JobSet (jobset.x-k8s.io/v1alpha2)", "install the JobSet controller, or leave jobset out: it is not needed")
	case err != nil:
		return notSeen(subject, "ask for jobset.x-k8s.io", err)
	}
	return ok(subject, "the cluster knows JobSets")
}

// queueFinding looks for the local queue of Kueue. Without it a job stays suspended for
// ever.
func (p place) queueFinding(ctx context.Context, c asker, name string) deploy.Finding {
	subject := "queue " + name
	data, err := c.getRaw(ctx, "/apis/kueue.x-k8s.io")
	var group struct {
		PreferredVersion struct{ GroupVersion string }
	}
	if err == nil {
		err = json.Unmarshal(data, &group)
	}
	switch {
	case apierrors.IsNotFound(err):
		return fault(subject, "the cluster has no Kueue: a job with a queue would stay suspended", "install Kueue, or leave queue out")
	case err != nil:
		return notSeen(subject, "ask for kueue.x-k8s.io", err)
	}
	switch err := c.exists(ctx, "/apis/"+group.PreferredVersion.GroupVersion+"/namespaces/"+p.namespace+"/localqueues/"+name); {
	case apierrors.IsNotFound(err):
		return fault(subject, fmt.Sprintf("there is no local queue %s in namespace %s: the job would stay suspended", name, p.namespace), "create it, or name another in the k8s block")
	case err != nil:
		return notSeen(subject, "get localqueues.kueue.x-k8s.io", err)
	}
	return ok(subject, "is there")
}

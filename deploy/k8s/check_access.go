package k8s

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"assay/deploy"
	"assay/pkg/plan"
)

// permission is something that the target does in a namespace.
type permission struct{ verb, group, resource string }

// String names it as kubectl auth can-i does, as in "create jobs.batch".
func (p permission) String() string {
	if p.group == "" {
		return p.verb + " " + p.resource
	}
	resource, sub, _ := strings.Cut(p.resource, "/")
	name := p.verb + " " + resource + "." + p.group
	if sub != "" {
		name += "/" + sub
	}
	return name
}

// permissions are all that the jobs of a place need. The Role in templates/k8s has
// these and no others.
func permissions(jobs []plan.Job) []permission {
	all := []permission{
		{"get", "batch", "jobs"},
		{"list", "batch", "jobs"},
		{"watch", "batch", "jobs"},
		{"list", "", "pods"},
		{"watch", "", "pods"},
		{"get", "", "pods/log"},
		{"list", "", "events"},
		{"create", "", "services"},
		{"create", "", "configmaps"},
	}
	jobSet, job, secret := false, false, false
	for _, j := range jobs {
		k := asked(j)
		jobSet, job = jobSet || k.JobSet, job || !k.JobSet
		secret = secret || needsSecret(j)
	}
	if job {
		all = append(all, permission{"create", "batch", "jobs"}, permission{"delete", "batch", "jobs"})
	}
	if secret {
		all = append(all, permission{"create", "", "secrets"})
	}
	if jobSet {
		for _, verb := range []string{"create", "get", "delete"} {
			all = append(all, permission{verb, "jobset.x-k8s.io", "jobsets"})
		}
	}
	return all
}

// permissionFindings ask the server what this user may do. Each missing permission is
// a finding.
func (p place) permissionFindings(ctx context.Context, c asker) []deploy.Finding {
	needed := permissions(p.jobs)
	var questions []question
	for _, want := range needed {
		questions = append(questions, func(ctx context.Context) []deploy.Finding { return p.permissionFinding(ctx, c, want) })
	}
	found := askAll(ctx, questions)
	if len(found) == 0 {
		return []deploy.Finding{ok("permissions", "this user may do all %d things that are needed in namespace %s", len(needed), p.namespace)}
	}
	return found
}

func (p place) permissionFinding(ctx context.Context, c asker, want permission) []deploy.Finding {
	resource, sub, _ := strings.Cut(want.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: p.namespace, Verb: want.verb, Group: want.group, Resource: resource, Subresource: sub,
		},
	}}
	var answer authorizationv1.SelfSubjectAccessReview
	subject := "permission " + want.String()
	switch err := c.create(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, &answer); {
	case err != nil:
		return []deploy.Finding{notSeen(subject, "create selfsubjectaccessreviews", err)}
	case answer.Status.Allowed:
		return nil
	}
	const fix = "templates/k8s/rbac.yaml has the Role that is needed"
	said := fmt.Sprintf("this user may not %s in namespace %s", want, p.namespace)
	if lost := p.without(want); lost != "" {
		return []deploy.Finding{warning(subject, said+": "+lost, fix)}
	}
	return []deploy.Finding{siteFault(subject, said, fix)}
}

// without says what a run lacks without a permission, "" when it cannot do without.
func (p place) without(missing permission) string {
	unwrapped := slices.ContainsFunc(p.jobs, func(j plan.Job) bool { return asked(j).Unwrapped })
	switch {
	case missing == permission{"list", "", "events"}:
		return "why pods cannot be created is not told"
	case missing == permission{"get", "", "pods/log"} && !unwrapped:
		return "logs and results of ranks cannot be had, only what fits into their termination messages"
	}
	return ""
}

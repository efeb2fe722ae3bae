package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"assay/deploy"
	"assay/pkg/plan"
)

// checkLimit bounds all questions of a check, which are asked at the same time.
const checkLimit = 15 * time.Second

// asker is what a check needs of a client.
type asker interface {
	// getRaw reads an object of any kind as JSON.
	getRaw(ctx context.Context, path string) ([]byte, error)
	// exists asks for an object and not for its content.
	exists(ctx context.Context, path string) error
	list(ctx context.Context, path, labels, fields string, into runtime.Object) error
	create(ctx context.Context, path string, obj, into runtime.Object) error
	// rehearse lets the server do all but create the object.
	rehearse(ctx context.Context, path string, obj runtime.Object) error
}

// Check implements deploy.Checker.
func (t *Target) Check(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	found := t.manifestFindings(req.Jobs)
	for _, p := range places(req.Jobs) {
		c, err := t.client(p.kubeconfig, p.context)
		if err != nil {
			found = append(found, siteFault("kubeconfig", deploy.Said(err), ""))
			continue
		}
		p.namespace = c.inNamespace(p.namespace)
		found = append(found, p.findings(ctx, c, t, req)...)
	}
	if req.OnNode {
		found = append(found, deploy.Finding{Subject: "node", State: deploy.FindingUnknown, Message: "could not be looked at: a check starts no pod"})
	}
	return distinct(found)
}

// place is a namespace of a cluster, and the jobs that go there.
type place struct {
	kubeconfig, context, namespace string
	jobs                           []plan.Job
}

// places are the distinct places of jobs, in the order of the manifest.
func places(jobs []plan.Job) []place {
	var out []place
	for _, j := range jobs {
		k := asked(j)
		i := slices.IndexFunc(out, func(p place) bool {
			return p.kubeconfig == k.Kubeconfig && p.context == k.Context && p.namespace == k.Namespace
		})
		if i < 0 {
			i = len(out)
			out = append(out, place{kubeconfig: k.Kubeconfig, context: k.Context, namespace: k.Namespace})
		}
		out[i].jobs = append(out[i].jobs, j)
	}
	return out
}

// asked is what a job asks Kubernetes for.
func asked(j plan.Job) plan.K8s {
	if j.K8s == nil {
		return plan.K8s{}
	}
	return *j.K8s
}

// question is one thing that is asked. Its answer is some findings.
type question func(ctx context.Context) []deploy.Finding

// findings ask the server about a place. When it does not answer, nothing more is
// asked.
func (p place) findings(ctx context.Context, c asker, t *Target, req deploy.CheckRequest) []deploy.Finding {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	server := p.serverFinding(ctx, c)
	if server.State == deploy.FindingProblem {
		return []deploy.Finding{server}
	}
	questions := []question{
		func(ctx context.Context) []deploy.Finding { return []deploy.Finding{p.namespaceFinding(ctx, c)} },
		func(ctx context.Context) []deploy.Finding { return p.permissionFindings(ctx, c) },
		func(ctx context.Context) []deploy.Finding { return p.nodeFindings(ctx, c) },
	}
	questions = append(questions, p.objectQuestions(c)...)
	if req.Thorough {
		questions = append(questions, p.rehearsals(c, t)...)
	}
	return append([]deploy.Finding{server}, askAll(ctx, questions)...)
}

// askAll asks everything at the same time. The findings are in the order of the
// questions.
func askAll(ctx context.Context, questions []question) []deploy.Finding {
	const atOnce = 16
	answers := make([][]deploy.Finding, len(questions))
	room := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, q := range questions {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			answers[i] = q(ctx)
		})
	}
	wg.Wait()
	return slices.Concat(answers...)
}

// minVersion is the second number of the oldest Kubernetes that runs a job as it is
// rendered: the limit of failures per index is there since 1.29, without which one
// rank that fails ends all others.
const minVersion = 29

// serverFinding asks which version answers.
func (p place) serverFinding(ctx context.Context, c asker) deploy.Finding {
	const subject = "cluster"
	data, err := c.getRaw(ctx, "/version")
	if err != nil {
		return siteFault(subject, deploy.Said(unasked("say its version", err)), "")
	}
	var v struct{ Major, Minor, GitVersion string }
	if err := json.Unmarshal(data, &v); err != nil {
		return siteFault(subject, "what answers is no Kubernetes: "+sentence(err), "look at the server of the kubeconfig")
	}
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	switch {
	case err != nil || v.Major != "1":
		return warning(subject, fmt.Sprintf("Kubernetes %s is of a kind that is not known here", v.GitVersion), "")
	case minor < minVersion:
		return siteFault(subject, fmt.Sprintf("the cluster has Kubernetes %s, in which a rank that fails ends all others of its job", v.GitVersion),
			fmt.Sprintf("1.%d or newer is needed", minVersion))
	}
	return ok(subject, "is Kubernetes %s", v.GitVersion)
}

// namespaceFinding looks for the namespace.
func (p place) namespaceFinding(ctx context.Context, c asker) deploy.Finding {
	subject := "namespace " + p.namespace
	data, err := c.getRaw(ctx, "/api/v1/namespaces/"+p.namespace)
	switch {
	case apierrors.IsNotFound(err):
		return fault(subject, fmt.Sprintf("there is no namespace %s", p.namespace), "create it, or name another in the k8s block")
	case err != nil:
		return notSeen(subject, "get namespaces", err)
	}
	var ns struct {
		Metadata struct{ DeletionTimestamp string }
	}
	if json.Unmarshal(data, &ns) == nil && ns.Metadata.DeletionTimestamp != "" {
		return fault(subject, fmt.Sprintf("the namespace %s is being deleted", p.namespace), "name another in the k8s block")
	}
	return ok(subject, "is there")
}

// distinct drops what was found twice.
func distinct(found []deploy.Finding) []deploy.Finding {
	var out []deploy.Finding
	for _, f := range found {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// The states of a finding, in short.
func ok(subject, format string, args ...any) deploy.Finding {
	return deploy.Finding{Subject: subject, State: deploy.FindingOK, Message: fmt.Sprintf(format, args...)}
}

func warning(subject, message, fix string) deploy.Finding {
	return deploy.Finding{Subject: subject, State: deploy.FindingWarning, Message: message, Fix: fix}
}

func fault(subject, message, fix string) deploy.Finding {
	return deploy.Finding{Subject: subject, State: deploy.FindingProblem, Message: message, Fix: fix}
}

// siteFault is a problem of the cluster, not of the manifest.
func siteFault(subject, message, fix string) deploy.Finding {
	f := fault(subject, message, fix)
	f.Unavailable = true
	return f
}

// notSeen is what could not be looked at: nothing is concluded from it.
func notSeen(subject, what string, err error) deploy.Finding {
	f := deploy.Finding{Subject: subject, State: deploy.FindingUnknown}
	switch {
	case apierrors.IsForbidden(err):
		f.Message = "could not be looked at: this user may not " + what
	case errors.Is(err, context.DeadlineExceeded):
		f.Message = "could not be looked at: the API server took too long"
	default:
		f.Message = "could not be looked at: " + deploy.Said(unasked(what, err))
	}
	return f
}

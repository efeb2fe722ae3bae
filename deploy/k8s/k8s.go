// Package k8s is the target that runs jobs on Kubernetes, as Indexed Jobs: one pod a
// rank. Conditions decide, never counts; what pods and containers are said to be
// is evidence beside what their ranks left.
package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"assay/deploy"
	"assay/pkg/plan"
)

// Name is the name of the target.
const Name = "k8s"

// Options configure the target.
type Options struct {
	Env     []string // environment of this process, as KEY=VALUE: where the kubeconfig is, what an env_file starts from
	Host    string   // name of this machine, for the annotations of objects
	Version string   // of assay, for the user agent
}

// Target runs jobs on Kubernetes.
type Target struct {
	opt Options

	mu       sync.Mutex
	clients  map[string]*client // by kubeconfig and context
	watchers map[watchKey]*watcher
	jobs     map[jobKey]*job
	changed  chan struct{} // closed when something changed since the last Observe
	now      func() time.Time
}

// New returns a target.
func New(opt Options) *Target {
	return &Target{
		opt: opt, clients: map[string]*client{}, watchers: map[watchKey]*watcher{}, jobs: map[jobKey]*job{},
		changed: make(chan struct{}), now: time.Now,
	}
}

// Name implements deploy.Target.
func (t *Target) Name() string { return Name }

// Queues implements deploy.Queue: the scheduler of the cluster has one.
func (t *Target) Queues() bool { return true }

// Resubmits implements deploy.Resubmitter: the name of a job is made of its nonce, and
// the API server makes no second object of a name.
func (t *Target) Resubmits() bool { return true }

// ref is the opaque part of a handle: where the job is, and what it is known by.
type ref struct {
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Nonce      string `json:"nonce"`
	JobSet     bool   `json:"jobset,omitempty"`
	WorldSize  int    `json:"world_size"`
	Unwrapped  bool   `json:"unwrapped,omitempty"`
	Grace      int    `json:"grace"` // seconds in which logs and records of ended pods are awaited
}

// key is what a job is known by here.
func (r ref) key() jobKey { return jobKey{r.Kubeconfig, r.Context, r.Namespace, r.Name, r.UID} }

type jobKey struct{ kubeconfig, context, namespace, name, uid string }

func (r ref) handle() (deploy.Handle, error) {
	data, err := json.Marshal(r)
	return deploy.Handle{Target: Name, ID: r.Namespace + "/" + r.Name, Data: data}, err
}

func decode(h deploy.Handle) (ref, error) {
	var r ref
	if h.Target != Name {
		return r, fmt.Errorf("handle %q belongs to target %q, not to %s", h.ID, h.Target, Name)
	}
	if err := json.Unmarshal(h.Data, &r); err != nil {
		return r, fmt.Errorf("handle %q is unreadable: %w", h.ID, err)
	}
	return r, nil
}

// refOf is where a job is, or will be.
func (t *Target) refOf(a plan.Attempt, c *client) ref {
	k := a.Job.K8s
	return ref{
		Kubeconfig: k.Kubeconfig, Context: k.Context, Namespace: c.inNamespace(k.Namespace), Name: objectName(a), Nonce: a.Nonce,
		JobSet: k.JobSet, WorldSize: a.Job.WorldSize, Unwrapped: k.Unwrapped, Grace: a.Job.MarkerGraceSeconds,
	}
}

// notify wakes whoever waits for a change.
func (t *Target) notify() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.changed:
	default:
		close(t.changed)
	}
}

// Wait implements deploy.Waiter: it returns when something changed since the last
// Observe, or when a limit of patience may have been reached.
func (t *Target) Wait(ctx context.Context, handles []deploy.Handle) error {
	t.mu.Lock()
	changed := t.changed
	due := t.due(handles)
	t.mu.Unlock()
	timer := time.NewTimer(due)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

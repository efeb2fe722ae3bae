package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"assay/deploy"
	"assay/pkg/envfile"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// The paths of the API.
const (
	apiCore   = "/api/v1/namespaces/"
	apiBatch  = "/apis/batch/v1/namespaces/"
	apiJobSet = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/"
)

// path is where the job itself is: a Job, or a JobSet.
func (r ref) path() string {
	if r.JobSet {
		return apiJobSet + r.Namespace + "/jobsets/" + r.Name
	}
	return apiBatch + r.Namespace + "/jobs/" + r.Name
}

func (r ref) kind() string {
	if r.JobSet {
		return "JobSet"
	}
	return "Job"
}

// Submit implements deploy.Target: it creates what job.yaml says, and then the
// Secret with the values of the env_file, which are never written down. The Job
// comes first, for it owns the rest: when it goes, all goes.
func (t *Target) Submit(ctx context.Context, a plan.Attempt) (deploy.Handle, error) {
	if err := ctx.Err(); err != nil {
		return deploy.Handle{}, err
	}
	c, err := t.clientOf(a.Job.K8s)
	if err != nil {
		return deploy.Handle{}, err
	}
	if err := rundir.MakeRanksDir(a.Dir); err != nil {
		return deploy.Handle{}, fmt.Errorf("%w: what ranks leave could not be kept: %w", deploy.ErrRefused, err)
	}
	objects, err := t.objects(ctx, a)
	if err != nil {
		return deploy.Handle{}, fmt.Errorf("%w: %w", deploy.ErrRefused, err)
	}
	r := t.refOf(a, c)
	if r.UID, err = c.createJob(ctx, r, objects); err != nil {
		return deploy.Handle{}, classify(fmt.Sprintf("create the %s %s in namespace %s", r.kind(), r.Name, r.Namespace), err)
	}
	switch err := c.complete(ctx, r, objects); {
	case errors.Is(err, deploy.ErrRefused):
		// The job's pods wait for what is missing and will not get it from here.
		gone := c.remove(context.WithoutCancel(ctx), r.path(), r.UID, metav1.DeletePropagationForeground)
		if gone != nil {
			return deploy.Handle{}, fmt.Errorf("%w: %s; then %s", deploy.ErrAmbiguous, deploy.Said(err), deploy.Said(unasked("delete the "+r.kind(), gone)))
		}
		return deploy.Handle{}, err
	case err != nil: // whoever finds the job completes it
		return deploy.Handle{}, fmt.Errorf("%w: %s", deploy.ErrAmbiguous, deploy.Said(err))
	}
	return r.handle()
}

// objects reads what was rendered, and adds what is never written down.
func (t *Target) objects(ctx context.Context, a plan.Attempt) (rendered, error) {
	data, err := os.ReadFile(filepath.Join(a.Dir, jobYAML))
	if err != nil {
		return rendered{}, fmt.Errorf("what is to be submitted cannot be read: %w", err)
	}
	objects, err := decodeRendered(data)
	if err != nil || objects.Secret == nil {
		return objects, err
	}
	objects.Secret.Data = map[string][]byte{}
	if a.Job.EnvFile != nil {
		vars, err := t.envFile(ctx, a.Job)
		if err != nil {
			return objects, err
		}
		for _, name := range vars.Names() {
			value, _ := vars.Lookup(name)
			objects.Secret.Data[name] = []byte(value)
		}
	}
	for name, value := range secretEnv(a.Job) { // the manifest wins over the env_file
		objects.Secret.Data[name] = []byte(value)
	}
	return objects, nil
}

// envFile reads the env_file here: an image need not have a shell, and its nodes
// need not see the file.
func (t *Target) envFile(ctx context.Context, j plan.Job) (envfile.Vars, error) {
	f := j.EnvFile
	return envfile.Load(ctx, envfile.Options{
		Path: f.Path, Format: f.Format, Base: t.opt.Env, Dir: filepath.Dir(f.Path), Timeout: time.Duration(f.TimeoutSeconds) * time.Second,
	})
}

// createJob creates the Job or JobSet and returns its uid. One that is there already
// and bears the nonce is the same one: an earlier request that had no answer.
func (c *client) createJob(ctx context.Context, r ref, objects rendered) (uid string, err error) {
	made := metav1.PartialObjectMetadata{}
	if r.JobSet {
		var data []byte
		if data, err = json.Marshal(objects.JobSet); err == nil {
			if data, err = c.createRaw(ctx, strings.TrimSuffix(r.path(), "/"+r.Name), data); err == nil {
				err = json.Unmarshal(data, &made)
			}
		}
	} else {
		job := batchv1.Job{}
		err = c.create(ctx, apiBatch+r.Namespace+"/jobs", objects.Job, &job)
		made.ObjectMeta = job.ObjectMeta
	}
	if apierrors.IsAlreadyExists(err) {
		found, ferr := c.find(ctx, r)
		if ferr == nil && found.Annotations[labelNonce] == r.Nonce && found.Annotations[labelJob] == objects.ConfigMap.Annotations[labelJob] {
			return string(found.UID), nil
		}
	}
	return string(made.UID), err
}

// find reads what is known of the Job or JobSet of a name.
func (c *client) find(ctx context.Context, r ref) (metav1.PartialObjectMetadata, error) {
	var meta metav1.PartialObjectMetadata
	data, err := c.getRaw(ctx, r.path())
	if err == nil {
		err = json.Unmarshal(data, &meta)
	}
	return meta, err
}

// complete creates what the pods of a job need, owned by it, unless it is there.
func (c *client) complete(ctx context.Context, r ref, objects rendered) error {
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: r.Name, UID: types.UID(r.UID)}
	if r.JobSet {
		owner.APIVersion, owner.Kind = "jobset.x-k8s.io/v1alpha2", "JobSet"
	}
	for _, o := range objects.others() {
		o.SetOwnerReferences([]metav1.OwnerReference{owner})
		kind, resource := resourceOf(o)
		err := c.create(ctx, apiCore+r.Namespace+"/"+resource, o.(runtime.Object), nil) //nolint:forcetypeassert // every object is one
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return classify(fmt.Sprintf("create the %s %s in namespace %s", kind, o.GetName(), r.Namespace), err)
		}
	}
	return nil
}

// others are the objects of a job besides itself: what its pods cannot start without
// comes first.
func (o rendered) others() []metav1.Object {
	var list []metav1.Object
	if o.ConfigMap != nil {
		list = append(list, o.ConfigMap)
	}
	if o.Secret != nil {
		list = append(list, o.Secret)
	}
	if o.Service != nil {
		list = append(list, o.Service)
	}
	return list
}

func resourceOf(o metav1.Object) (kind, resource string) {
	switch o.(type) {
	case *corev1.ConfigMap:
		return "ConfigMap", "configmaps"
	case *corev1.Secret:
		return "Secret", "secrets"
	}
	return "Service", "services"
}

// Find implements deploy.Finder: the name of a job is made of the nonce. What a
// killed process had not created yet is created now.
func (t *Target) Find(ctx context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	c, err := t.clientOf(a.Job.K8s)
	if err != nil {
		return deploy.Handle{}, false, err
	}
	r := t.refOf(a, c)
	what := fmt.Sprintf("get the %s %s in namespace %s", r.kind(), r.Name, r.Namespace)
	meta, err := c.find(ctx, r)
	switch {
	case notThere(err):
		return deploy.Handle{}, false, nil
	case err != nil:
		return deploy.Handle{}, false, unasked(what, err)
	case meta.Annotations[labelNonce] != a.Nonce || meta.Annotations[labelJob] != a.Job.ID:
		return deploy.Handle{}, false, nil
	}
	r.UID = string(meta.UID)
	h, err := r.handle()
	if err != nil || meta.DeletionTimestamp != nil {
		return h, err == nil, err
	}
	objects, err := t.objects(ctx, a)
	if err == nil {
		err = c.complete(ctx, r, objects)
	}
	switch {
	case errors.Is(err, deploy.ErrUnavailable), errors.Is(err, deploy.ErrAmbiguous):
		return deploy.Handle{}, false, unasked(what, err)
	case err != nil:
		return h, true, fmt.Errorf("%w: the %s is there, and what its pods need could not be created: %s", deploy.ErrIncomplete, r.kind(), deploy.Said(err))
	}
	return h, true, nil
}

// Cancel implements deploy.Target. The pods are told to stop; the job goes when they
// have.
func (t *Target) Cancel(ctx context.Context, h deploy.Handle) error {
	r, err := decode(h)
	if err != nil {
		return err
	}
	c, err := t.client(r.Kubeconfig, r.Context)
	if err != nil {
		return err
	}
	t.asked(r)
	return unasked(fmt.Sprintf("delete the %s %s in namespace %s", r.kind(), r.Name, r.Namespace),
		c.remove(ctx, r.path(), r.UID, metav1.DeletePropagationForeground))
}

// Clean implements deploy.Cleaner.
func (t *Target) Clean(ctx context.Context, a plan.Attempt, h deploy.Handle, passed bool) error {
	if how := a.Job.K8s.Cleanup; how == "never" || how == "on_success" && !passed {
		return nil
	}
	r, err := decode(h)
	if err != nil {
		return err
	}
	c, err := t.client(r.Kubeconfig, r.Context)
	if err != nil {
		return err
	}
	t.mu.Lock()
	partial := t.tracked(r).partial
	t.mu.Unlock()
	if partial && a.Job.K8s.Cleanup == "on_success" {
		return nil // the rest of it is in its pods
	}
	t.asked(r)
	return unasked(fmt.Sprintf("delete the %s %s in namespace %s", r.kind(), r.Name, r.Namespace),
		c.remove(ctx, r.path(), r.UID, metav1.DeletePropagationBackground))
}

// List implements deploy.Lister: the jobs of assay in all namespaces, or, where this
// user may not list those, in the one of the context that kubectl would use.
func (t *Target) List(ctx context.Context) ([]deploy.Listed, error) {
	c, err := t.client("", "")
	if err != nil {
		return nil, err
	}
	var jobs batchv1.JobList
	err = c.list(ctx, "/apis/batch/v1/jobs", labelManager+"="+manager, "", &jobs)
	if apierrors.IsForbidden(err) {
		err = c.list(ctx, apiBatch+c.namespace+"/jobs", labelManager+"="+manager, "", &jobs)
	}
	if err != nil {
		return nil, unasked("list jobs in namespace "+c.namespace, err)
	}
	var found []deploy.Listed
	for _, j := range jobs.Items {
		r := ref{Namespace: j.Namespace, Name: j.Name, UID: string(j.UID), Nonce: j.Annotations[labelNonce]}
		if owner := metav1.GetControllerOf(&j); owner != nil && owner.Kind == "JobSet" {
			r.JobSet, r.Name, r.UID = true, owner.Name, string(owner.UID)
		}
		h, err := r.handle()
		if err != nil {
			return nil, err
		}
		found = append(found, deploy.Listed{
			Handle: h, State: stateOf(&j), RunID: j.Annotations[labelRun], Nonce: j.Annotations[labelNonce],
			RunDir: rundir.Of(j.Annotations[annotationDir]), Host: j.Annotations[annotationHost],
		})
	}
	return found, nil
}

package k8s

import (
	"assay/deploy"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// jobYAML is the file that holds what is submitted.
const jobYAML = "job.yaml"

// Render implements deploy.Target: the job file, and the objects that are submitted.
// The scripts that pods are given are read here; nothing else of this machine is.
func (t *Target) Render(a plan.Attempt) ([]deploy.File, error) {
	jobFile, err := rundir.EncodeAttempt(a)
	if err != nil {
		return nil, err
	}
	objects, err := t.render(a)
	if err != nil {
		return nil, err
	}
	text, err := objects.encode()
	if err != nil {
		return nil, err
	}
	return []deploy.File{
		{Name: rundir.JobFile, Mode: 0o600, Data: jobFile},
		{Name: jobYAML, Mode: 0o600, Data: text},
	}, nil
}

// renderer makes the objects of one job.
type renderer struct {
	a       plan.Attempt
	k       plan.K8s
	name    string
	host    string // of this machine
	shipped shipment
}

// runnerVariable names the runner image where the manifest does not: manifests that
// were made for other tools have none.
const runnerVariable = "ASSAY_RUNNER_IMAGE"

func (t *Target) runnerImage(k plan.K8s) string {
	if k.RunnerImage != "" {
		return k.RunnerImage
	}
	return environ.Get(t.opt.Env, runnerVariable)
}

// render makes the objects of a job.
func (t *Target) render(a plan.Attempt) (rendered, error) {
	r := renderer{a: a, k: asked(a.Job), name: objectName(a), host: t.opt.Host}
	r.k.RunnerImage = t.runnerImage(r.k)
	if err := r.check(); err != nil {
		return rendered{}, err
	}
	var err error
	if r.shipped, err = ship(a); err != nil {
		return rendered{}, err
	}
	template, err := r.template()
	if err != nil {
		return rendered{}, err
	}
	out := rendered{Service: r.service(), Secret: r.secret()}
	if out.ConfigMap, err = r.configMap(); err != nil {
		return rendered{}, err
	}
	if r.k.JobSet {
		out.JobSet = r.jobSet(template)
	} else {
		out.Job = r.job(template)
	}
	return out, nil
}

// check refuses what no object can be made of.
func (r *renderer) check() error {
	switch {
	case r.a.Job.Image == "":
		return exitcode.Errorf(exitcode.Invalid, "job %s has no image to run on Kubernetes", r.a.Job.ID)
	case r.k.RunnerImage == "" && !r.k.Unwrapped:
		return refuse("runner_image", "no image is named that holds the assay that runs beside the workload: name one, here or in %s, or set wrapper to none", runnerVariable)
	case r.k.ImagePullPolicy != "" && r.k.ImagePullPolicy != "Always" && r.k.ImagePullPolicy != "IfNotPresent" && r.k.ImagePullPolicy != "Never":
		return refuse("image_pull_policy", "unknown policy %q (known: Always, IfNotPresent, Never)", r.k.ImagePullPolicy)
	}
	return nil
}

// refuse is the error of a field of the k8s block.
func refuse(field, format string, args ...any) error {
	return exitcode.Errorf(exitcode.Invalid, "manifest: /deployment_config/k8s/"+field+": "+format, args...)
}

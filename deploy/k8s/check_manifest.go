package k8s

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"assay/deploy"
	"assay/pkg/phrase"
	"assay/pkg/plan"
)

// identity stands for that of a run that is not there yet.
func identity(j plan.Job) plan.Attempt {
	return plan.Attempt{Version: plan.AttemptVersion, RunID: "check", Nonce: "0000000000", Number: 1, Dir: "/", Job: j}
}

// manifestFindings say what of a manifest no objects can be made of.
func (t *Target) manifestFindings(jobs []plan.Job) []deploy.Finding {
	var found []deploy.Finding
	for _, j := range deploy.OnePerEntry(jobs) {
		subject := "entry " + j.Key
		objects, err := t.render(identity(j))
		switch k := asked(j); {
		case err != nil:
			found = append(found, fault(subject, phrase.Escape(err.Error()), ""))
			continue
		case k.Unwrapped:
			found = append(found, warning("wrapper", "the images run as they are: there is no record of how a rank ended but what Kubernetes says of its pod", "name a runner_image and leave wrapper out"))
		default:
			found = append(found, ok("runner_image", "is %s", t.runnerImage(k)))
		}
		if j.Ready != nil && asked(j).Unwrapped {
			found = append(found, warning(subject, "no rank waits for the first one: it is assay in the pods that does, and the images run as they are", "name a runner_image and leave wrapper out"))
		}
		if f, missing := programFinding(j, objects); missing {
			found = append(found, f)
		}
	}
	return found
}

// programFinding warns of a script that no pod is given. It may be in the image.
func programFinding(j plan.Job, objects rendered) (deploy.Finding, bool) {
	script := j.Program.Script
	if script == "" || filepath.IsAbs(script) || filepath.IsAbs(j.Env["MODEL_DIR"]) || len(objects.ConfigMap.Data)+len(objects.ConfigMap.BinaryData) > 1 {
		return deploy.Finding{}, false
	}
	return warning("program of "+j.Key, fmt.Sprintf("the script %s is not beside the manifest, so that pods are not given it", script),
		"where it is in the image, set MODEL_DIR in env_vars to the directory that it is relative to"), true
}

// rehearsals let the server look at the very objects, once for each entry.
func (p place) rehearsals(c asker, t *Target) []question {
	var out []question
	for _, j := range deploy.OnePerEntry(p.jobs) {
		objects, err := t.render(identity(j))
		if err != nil || objects.Job == nil { // told already; or a kind of which the server knows no more than its schema
			continue
		}
		out = append(out, func(ctx context.Context) []deploy.Finding {
			subject := "dry run of " + j.Key
			objects.Job.Namespace = p.namespace
			err := c.rehearse(ctx, apiBatch+p.namespace+"/jobs", objects.Job)
			switch said := classify("create jobs in namespace "+p.namespace, err); {
			case err == nil:
				return []deploy.Finding{ok(subject, "the API server would take the job")}
			case errors.Is(said, deploy.ErrRefused):
				return []deploy.Finding{fault(subject, "the API server would refuse the job: "+deploy.Said(said), "")}
			}
			return []deploy.Finding{notSeen(subject, "create jobs", err)}
		})
	}
	return out
}

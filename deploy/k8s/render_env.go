package k8s

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"assay/pkg/pod"
)

// escape writes a text for a command or a variable of a pod, in which Kubernetes
// expands $(NAME) and makes $$ a single dollar.
func escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }

func escapeAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = escape(w)
	}
	return out
}

// envFrom gives the values of secrets. Those of the manifest and its env_file win.
func (r *renderer) envFrom() []corev1.EnvFromSource {
	var out []corev1.EnvFromSource
	add := func(name string) {
		out = append(out, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	if r.k.RuntimeSecret != "" && r.k.Secrets != "omit" {
		add(r.k.RuntimeSecret)
	}
	if r.withSecret() {
		add(r.name)
	}
	return out
}

// placeEnv tells a rank where it stands.
func placeEnv(results bool) []corev1.EnvVar {
	env := []corev1.EnvVar{fieldVar(pod.NodeVariable, "spec.nodeName"), fieldVar(pod.PodVariable, "metadata.name")}
	if results {
		env = append(env, corev1.EnvVar{Name: pod.ResultsVariable, Value: pod.ResultsDir})
	}
	return env
}

// fieldVar is a variable with a field of the pod.
func fieldVar(name, field string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: field}}}
}

// ownEnv is the environment of an image that runs as it is: what the wrapper would
// set, as far as it is known before a pod has a place. What a rank may refer to
// comes first, for Kubernetes expands only what stands before.
func (r *renderer) ownEnv() []corev1.EnvVar {
	j := r.a.Job
	index := "metadata.annotations['" + batchv1.JobCompletionIndexAnnotation + "']"
	env := []corev1.EnvVar{fieldVar("RANK", index), fieldVar("ASSAY_RANK", index), fieldVar("ASSAY_NODE", "spec.nodeName")}
	if j.RanksPerNode <= 1 {
		env = append(env, fieldVar("NODE_RANK", index), fieldVar("MAD_NODE_RANK", index), corev1.EnvVar{Name: "LOCAL_RANK", Value: "0"})
	}
	world, port := strconv.Itoa(j.WorldSize), strconv.Itoa(r.port())
	for _, v := range [][2]string{
		{"WORLD_SIZE", world},
		{"NNODES", strconv.Itoa(j.NNodes)},
		{"NPROC_PER_NODE", strconv.Itoa(j.NProcPerNode)},
		{"MASTER_ADDR", r.root()},
		{"MASTER_PORT", port},
		{"MAD_MODEL_NAME", j.Model},
		{"MAD_DEPLOYMENT_TYPE", j.Deployment},
		{"ASSAY_RUN_ID", r.a.RunID},
		{"ASSAY_NRANKS", world},
		{"ASSAY_ROOT_HOST", r.root()},
		{"ASSAY_ATTEMPT", strconv.Itoa(r.a.Number)},
		{"BURNIN_ATTEMPT", strconv.Itoa(r.a.Number)},
	} {
		env = append(env, corev1.EnvVar{Name: v[0], Value: escape(v[1])})
	}
	if j.Runner != "" {
		env = append(env, corev1.EnvVar{Name: "MAD_MULTI_NODE_RUNNER", Value: references(j.Runner)})
	}
	return append(r.manifestEnv(env), env...)
}

// manifestEnv are the variables of the manifest, without those that a rank sets
// itself and that the manifest cannot change.
func (r *renderer) manifestEnv(set []corev1.EnvVar) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, from := range []map[string]string{r.a.Job.LauncherEnv, r.a.Asked(), openEnv(r.a.Job)} {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if slices.ContainsFunc(set, func(v corev1.EnvVar) bool { return v.Name == name }) {
				continue
			}
			out = slices.DeleteFunc(out, func(v corev1.EnvVar) bool { return v.Name == name })
			out = append(out, corev1.EnvVar{Name: name, Value: escape(from[name])})
		}
	}
	return out
}

// references escapes a text but for the names that a launcher's command may refer to.
func references(s string) string {
	s = escape(s)
	for _, name := range []string{"NODE_RANK", "MASTER_ADDR", "MASTER_PORT"} {
		s = strings.ReplaceAll(s, "$${"+name+"}", "$("+name+")")
	}
	return s
}

// ownCommand is the command of an image that runs as it is.
func (r *renderer) ownCommand() ([]string, error) {
	p := r.a.Job.Program
	if len(p.Command) > 0 {
		return escapeAll(p.Command), nil
	}
	script := p.Script
	interpreter := interpreterByName(script)
	if at := r.shipped.program; at != "" {
		script, interpreter = path.Join(pod.ModelDir, at), r.shipped.interpreter()
	} else if dir := r.a.Job.Env["MODEL_DIR"]; !path.IsAbs(script) && path.IsAbs(dir) {
		script = path.Join(dir, script)
	}
	if !path.IsAbs(script) {
		return nil, refuse("wrapper", "the script %q is not beside the manifest, and without the wrapper nothing looks for it in the image: give an absolute path, or MODEL_DIR in env_vars", script)
	}
	return escapeAll(slices.Concat(p.Encapsulate, interpreter, []string{script}, p.Args)), nil
}

// interpreterByName says what runs a script that cannot be looked at.
func interpreterByName(script string) []string {
	switch path.Ext(script) {
	case ".py":
		return []string{"python3"}
	case ".sh":
		return []string{"bash"}
	}
	return nil
}

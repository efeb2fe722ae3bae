package k8s

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/rundir"
)

// meta is the metadata of each object of the job.
func (r *renderer) meta() metav1.ObjectMeta {
	m := r.podMeta()
	m.Name, m.Namespace = r.name, r.k.Namespace
	return m
}

// podMeta is the metadata of what is named by a controller.
func (r *renderer) podMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: labels(r.a), Annotations: annotations(r.a, r.host)}
}

// selector tells the pods of this job from all others.
func (r *renderer) selector() map[string]string {
	all := labels(r.a)
	return map[string]string{labelNonce: all[labelNonce], labelJob: all[labelJob], labelAttempt: all[labelAttempt]}
}

// service gives the pods names. They are published before the pods are ready,
// because ranks look for each other while they start.
func (r *renderer) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: r.meta(),
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: r.selector()},
	}
}

// configMap holds the job file, as it is in a pod, and the scripts. It never
// changes, so that no kubelet has to watch it.
func (r *renderer) configMap() (*corev1.ConfigMap, error) {
	job, err := r.jobFile()
	if err != nil {
		return nil, err
	}
	m := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: r.meta(),
		Data:       map[string]string{rundir.JobFile: string(job)},
		Immutable:  new(true),
	}
	for _, f := range r.shipped.files {
		if f.text() {
			m.Data[f.key] = string(f.data)
			continue
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string][]byte{}
		}
		m.BinaryData[f.key] = f.data
	}
	return m, r.shipped.fits(len(job))
}

// jobFile is the attempt as a rank in a pod reads it: scripts are where they are
// mounted, and secrets come by the Secret.
func (r *renderer) jobFile() ([]byte, error) {
	a := r.a
	a.Job.ModelDir = pod.ModelDir
	a.Job.EnvFile = nil
	a.Job.Env = openEnv(a.Job)
	if a.Job.K8s != nil {
		k := *a.Job.K8s
		k.Withheld = nil
		a.Job.K8s = &k
	}
	return rundir.EncodeAttempt(a)
}

// secret is where the values of secrets go. It has none yet.
func (r *renderer) secret() *corev1.Secret {
	if !r.withSecret() {
		return nil
	}
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: r.meta(),
		Type:       corev1.SecretTypeOpaque,
		Immutable:  new(true),
	}
}

func (r *renderer) withSecret() bool { return needsSecret(r.a.Job) }

// needsSecret reports whether a job has values that only a Secret may hold.
func needsSecret(j plan.Job) bool { return j.EnvFile != nil || len(secretEnv(j)) > 0 }

// secretEnv are the variables of the manifest whose names look like those of secrets.
// More people may read a ConfigMap or a Job than a Secret.
func secretEnv(j plan.Job) map[string]string {
	out := map[string]string{}
	for name, value := range j.Env {
		if plan.LooksSecret(name) && len(validation.IsConfigMapKey(name)) == 0 {
			out[name] = value
		}
	}
	return out
}

// openEnv are the other variables of the manifest.
func openEnv(j plan.Job) map[string]string {
	out := maps.Clone(j.Env)
	for name := range secretEnv(j) {
		delete(out, name)
	}
	return out
}

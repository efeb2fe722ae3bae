//go:build k8s

package k8s

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/deploy"
	"assay/deploy/k8s/k8stest"
	"assay/pkg/plan"
)

// checking asks a cluster about jobs, as whoever a kubeconfig is of.
func checking(t *testing.T, kubeconfig, namespace string, change func(*plan.Job)) []deploy.Finding {
	t.Helper()
	jobs := wantings(func(j *plan.Job) {
		j.K8s.Kubeconfig, j.K8s.Namespace = kubeconfig, namespace
		if change != nil {
			change(j)
		}
	})
	found := New(Options{Version: "test"}).Check(t.Context(), deploy.CheckRequest{Jobs: jobs, Thorough: true})
	t.Logf("\n%s", lines(found))
	return found
}

// foundOf is how a thing was found, and what was said of it.
func foundOf(t *testing.T, found []deploy.Finding, subject string) deploy.Finding {
	t.Helper()
	i := slices.IndexFunc(found, func(f deploy.Finding) bool { return f.Subject == subject })
	if i < 0 {
		t.Fatalf("nothing was found of %s", subject)
	}
	return found[i]
}

// TestK8sCheckAsAdministrator finds everything in order, and then each thing that is
// not.
func TestK8sCheckAsAdministrator(t *testing.T) {
	cluster := k8stest.Open(t)
	namespace := cluster.Namespace()
	for _, f := range checking(t, cluster.Kubeconfig, namespace, nil) {
		if f.State != deploy.FindingOK {
			t.Errorf("%+v", f)
		}
	}
	cluster.Apply(namespace, `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "waits"},
		"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Mi"}}}}`)
	cluster.Kubectl("--namespace", namespace, "create", "secret", "generic", "there", "--from-literal=A=1")
	found := checking(t, cluster.Kubeconfig, namespace, func(j *plan.Job) {
		k := j.K8s
		k.GPUs, k.GPUResource, k.PullSecrets, k.Queue = 1, "example.com/never", []string{"there", "absent"}, "team"
		k.ServiceAccount, k.PriorityClass = "default", "system-node-critical"
		k.Volumes = []plan.Volume{{MountPath: "/a", Claim: "waits"}, {MountPath: "/b", Claim: "absent"}}
	})
	for subject, want := range map[string]deploy.FindingState{
		"secret there": deploy.FindingOK, "service account default": deploy.FindingOK, "priority class system-node-critical": deploy.FindingOK,
		"secret absent": deploy.FindingProblem, "claim waits": deploy.FindingProblem, "claim absent": deploy.FindingProblem,
		"queue team": deploy.FindingProblem, "nodes for entry bench": deploy.FindingWarning, "dry run of bench": deploy.FindingOK,
	} {
		if f := foundOf(t, found, subject); f.State != want {
			t.Errorf("%+v, want %v", f, want)
		}
	}
}

// TestK8sCheckUnderTheRole has every permission under the Role of the templates, and
// names the one that was taken away.
func TestK8sCheckUnderTheRole(t *testing.T) {
	cluster := k8stest.Open(t)
	namespace := cluster.Namespace()
	role, err := os.ReadFile("../../templates/k8s/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cluster.Apply(namespace, strings.ReplaceAll(string(role), "assay-ci", namespace))
	config := cluster.ServiceAccountConfig(namespace, "assay", 10*time.Minute)
	withEverything := func(j *plan.Job) {
		j.K8s.ServiceAccount, j.K8s.PullSecrets = "default", []string{"any"}
		j.Env = map[string]string{"API_TOKEN": "x"}
	}
	found := checking(t, config, namespace, withEverything)
	for _, subject := range []string{"permissions", "cluster", "dry run of bench"} {
		if f := foundOf(t, found, subject); f.State != deploy.FindingOK {
			t.Errorf("%+v", f)
		}
	}
	for _, subject := range []string{"nodes", "secret any", "service account default"} {
		if f := foundOf(t, found, subject); f.State != deploy.FindingUnknown || !strings.Contains(f.Message, "this user may not ") {
			t.Errorf("%+v", f)
		}
	}

	less := strings.ReplaceAll(string(role), "verbs: [create, get, list, watch, delete]", "verbs: [create, get, list, watch]")
	cluster.Apply(namespace, strings.ReplaceAll(less, "assay-ci", namespace))
	const missing = "permission delete jobs.batch"
	cluster.Await("the Role has changed", func() bool {
		return slices.ContainsFunc(checking(t, config, namespace, withEverything), func(f deploy.Finding) bool { return f.Subject == missing })
	})
	f := foundOf(t, checking(t, config, namespace, withEverything), missing)
	if want := "this user may not delete jobs.batch in namespace " + namespace; f.State != deploy.FindingProblem || !f.Unavailable || f.Message != want {
		t.Errorf("%+v, want %q", f, want)
	}

	preflight, err := os.ReadFile("../../templates/k8s/rbac-preflight.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// What is not in a namespace has a name of its own, for other tests.
	text := strings.ReplaceAll(string(preflight), "assay-ci", namespace)
	text = strings.ReplaceAll(text, "name: assay-preflight", "name: "+namespace+"-preflight")
	cluster.Apply(namespace, text)
	t.Cleanup(func() {
		cluster.Kubectl("delete", "clusterrole,clusterrolebinding", namespace+"-preflight")
	})
	cluster.Await("nodes can be seen", func() bool {
		return foundOf(t, checking(t, config, namespace, withEverything), "service account default").State == deploy.FindingOK
	})
}

// TestK8sCheckOfNoCluster says why nothing can be asked.
func TestK8sCheckOfNoCluster(t *testing.T) {
	cluster := k8stest.Open(t)
	if f := foundOf(t, checking(t, "/nowhere/kubeconfig", "x", nil), "kubeconfig"); f.State != deploy.FindingProblem || !f.Unavailable {
		t.Errorf("%+v", f)
	}
	away := regexp.MustCompile(`https://[^ \n"]+`).ReplaceAllString(readFile(t, cluster.Kubeconfig), "https://127.0.0.1:1")
	path := t.TempDir() + "/kubeconfig"
	if err := os.WriteFile(path, []byte(away), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := foundOf(t, checking(t, path, "x", nil), "cluster"); f.State != deploy.FindingProblem || !f.Unavailable {
		t.Errorf("%+v", f)
	}
	if f := foundOf(t, checking(t, cluster.Kubeconfig, "not-there", nil), "namespace not-there"); f.State != deploy.FindingProblem || f.Unavailable {
		t.Errorf("%+v", f)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

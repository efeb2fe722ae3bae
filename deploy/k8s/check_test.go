package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"assay/deploy"
	"assay/pkg/plan"
)

// fakeAPI answers what a test says, and that all else is not there.
type fakeAPI struct {
	objects map[string]string // by path, as JSON
	errs    map[string]error  // by path
	denied  []string          // permissions
	nodes   []corev1.Node
	dryRun  error
}

func notFound(path string) error { return apierrors.NewNotFound(schema.GroupResource{}, path) }

func notAllowed() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
}

func (f *fakeAPI) getRaw(_ context.Context, path string) ([]byte, error) {
	if err := f.errs[path]; err != nil {
		return nil, err
	}
	text, there := f.objects[path]
	if !there {
		return nil, notFound(path)
	}
	return []byte(text), nil
}

func (f *fakeAPI) exists(ctx context.Context, path string) error {
	_, err := f.getRaw(ctx, path)
	return err
}

func (f *fakeAPI) list(_ context.Context, path, _, _ string, into runtime.Object) error {
	if err := f.errs[path]; err != nil {
		return err
	}
	into.(*corev1.NodeList).Items = f.nodes
	return nil
}

func (f *fakeAPI) create(_ context.Context, path string, obj, into runtime.Object) error {
	if err := f.errs[path]; err != nil {
		return err
	}
	a := obj.(*authorizationv1.SelfSubjectAccessReview).Spec.ResourceAttributes
	p := permission{a.Verb, a.Group, a.Resource}
	if a.Subresource != "" {
		p.resource += "/" + a.Subresource
	}
	into.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed = !slices.Contains(f.denied, p.String())
	return nil
}

func (f *fakeAPI) rehearse(context.Context, string, runtime.Object) error { return f.dryRun }

// node is a ready node.
func node(cpu, memory, gpus string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a"}}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{
			"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "amd.com/gpu": resource.MustParse(gpus), "pods": resource.MustParse("110"),
		},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for _, c := range change {
		c(&n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// host is a node with the label by which nodes are named.
func host(name string, change ...func(*corev1.Node)) corev1.Node {
	n := node("8", "32Gi", "0", change...)
	n.Name, n.Labels = name, map[string]string{corev1.LabelHostname: name}
	return n
}

func unready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// healthy is a cluster that has what a plain job needs.
func healthy() *fakeAPI {
	return &fakeAPI{
		objects: map[string]string{
			"/version":               `{"major": "1", "minor": "35+", "gitVersion": "v1.35.4"}`,
			"/api/v1/namespaces/ci":  `{"metadata": {"name": "ci"}}`,
			"/apis/kueue.x-k8s.io":   `{"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}}`,
			apiCore + "ci/secrets/s": `{}`,
			"/apis/kueue.x-k8s.io/v1beta2/namespaces/ci/localqueues/team": `{}`,
		},
		errs:  map[string]error{},
		nodes: []corev1.Node{node("8", "32Gi", "0")},
	}
}

// wantings is a job of two ranks, changed.
func wantings(change func(*plan.Job)) []plan.Job {
	j := plan.Job{Key: "bench", ID: "bench", Image: "i", NNodes: 2, RanksPerNode: 1, WorldSize: 2, K8s: &plan.K8s{RunnerImage: "r"}}
	if change != nil {
		change(&j)
	}
	return []plan.Job{j}
}

func lines(found []deploy.Finding) string {
	var b strings.Builder
	for _, f := range found {
		b.WriteString(f.State.String())
		if f.Unavailable {
			b.WriteString(" of the cluster")
		}
		b.WriteString(" | " + f.Subject + " | " + f.Text() + "\n")
	}
	return b.String()
}

// TestFindings changes a healthy cluster, or what is asked of it, and compares the
// findings that are not ok.
func TestFindings(t *testing.T) {
	type c = *fakeAPI
	type j = *plan.Job
	claim := apiCore + "ci/persistentvolumeclaims/data"
	mount := func(j j) { j.K8s.Volumes = []plan.Volume{{MountPath: "/data", Claim: "data"}} }
	const capacity = "pods wait until there are such nodes, or as long as max_pending says"
	for name, tt := range map[string]struct {
		cluster func(c)
		job     func(j)
		want    string
	}{
		"nothing": {},
		"old": {
			cluster: func(c c) { c.objects["/version"] = `{"major": "1", "minor": "28", "gitVersion": "v1.28.9"}` },
			want:    "problem of the cluster | cluster | the cluster has Kubernetes v1.28.9, in which a rank that fails ends all others of its job; 1.29 or newer is needed",
		},
		"other version": {
			cluster: func(c c) { c.objects["/version"] = `{"major": "2", "minor": "0", "gitVersion": "v2.0.0"}` },
			want:    "warning | cluster | Kubernetes v2.0.0 is of a kind that is not known here",
		},
		"a web server": {
			cluster: func(c c) { c.objects["/version"] = `<html>` },
			want:    "problem of the cluster | cluster | what answers is no Kubernetes: invalid character '<' looking for beginning of value; look at the server of the kubeconfig",
		},
		"logged out": {
			cluster: func(c c) { c.errs["/version"] = apierrors.NewUnauthorized("no") },
			want:    "problem of the cluster | cluster | the API server does not accept the credentials of the kubeconfig (it was asked to say its version): log in again",
		},
		"no namespace": {
			cluster: func(c c) { delete(c.objects, "/api/v1/namespaces/ci") },
			want:    "problem | namespace ci | there is no namespace ci; create it, or name another in the k8s block",
		},
		"namespace ends": {
			cluster: func(c c) {
				c.objects["/api/v1/namespaces/ci"] = `{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}`
			},
			want: "problem | namespace ci | the namespace ci is being deleted; name another in the k8s block",
		},
		"namespace forbidden": {
			cluster: func(c c) { c.errs["/api/v1/namespaces/ci"] = notAllowed() },
			want:    "unknown | namespace ci | could not be looked at: this user may not get namespaces",
		},
		"permissions": {
			cluster: func(c c) { c.denied = []string{"create jobs.batch", "get pods/log"} },
			want: "warning | permission get pods/log | this user may not get pods/log in namespace ci: logs and results of ranks cannot be had, only what fits into their termination messages; templates/k8s/rbac.yaml has the Role that is needed\n" +
				"problem of the cluster | permission create jobs.batch | this user may not create jobs.batch in namespace ci; templates/k8s/rbac.yaml has the Role that is needed",
		},
		"logs without the wrapper": {
			cluster: func(c c) { c.denied = []string{"list events", "get pods/log"} }, job: func(j j) { j.K8s.Unwrapped, j.Program.Command = true, []string{"true"} },
			want: "warning | wrapper | the images run as they are: there is no record of how a rank ended but what Kubernetes says of its pod; name a runner_image and leave wrapper out\n" +
				"problem of the cluster | permission get pods/log | this user may not get pods/log in namespace ci; templates/k8s/rbac.yaml has the Role that is needed\n" +
				"warning | permission list events | this user may not list events in namespace ci: why pods cannot be created is not told; templates/k8s/rbac.yaml has the Role that is needed",
		},
		"a permission that is not needed": {cluster: func(c c) { c.denied = []string{"create secrets", "create jobsets.jobset.x-k8s.io"} }},
		"secret of a variable": {
			cluster: func(c c) { c.denied = []string{"create secrets"} }, job: func(j j) { j.Env = map[string]string{"API_TOKEN": "x"} },
			want: "problem of the cluster | permission create secrets | this user may not create secrets in namespace ci; templates/k8s/rbac.yaml has the Role that is needed",
		},
		"no runner": {
			job:  func(j j) { j.K8s.RunnerImage = "" },
			want: "problem | entry bench | manifest: /deployment_config/k8s/runner_image: no image is named that holds the assay that runs beside the workload: name one, here or in ASSAY_RUNNER_IMAGE, or set wrapper to none",
		},
		"unwrapped": {
			job:  func(j j) { j.K8s.Unwrapped, j.Program.Command = true, []string{"true"} },
			want: "warning | wrapper | the images run as they are: there is no record of how a rank ended but what Kubernetes says of its pod; name a runner_image and leave wrapper out",
		},
		"unwrapped pair": {
			job: func(j j) {
				j.K8s.RunnerImage, j.K8s.Unwrapped, j.Ready, j.Program.Command = "", true, &plan.Ready{Kind: plan.ReadyStarted}, []string{"x"}
			},
			want: "warning | wrapper | the images run as they are: there is no record of how a rank ended but what Kubernetes says of its pod; name a runner_image and leave wrapper out\n" +
				"warning | entry bench | no rank waits for the first one: it is assay in the pods that does, and the images run as they are; name a runner_image and leave wrapper out",
		},
		"script not beside": {
			job:  func(j j) { j.Program.Script, j.ModelDir = "run.sh", "/nowhere" },
			want: "warning | program of bench | the script run.sh is not beside the manifest, so that pods are not given it; where it is in the image, set MODEL_DIR in env_vars to the directory that it is relative to",
		},
		"nodes forbidden": {
			cluster: func(c c) { c.errs["/api/v1/nodes"] = notAllowed() },
			want:    "unknown | nodes | could not be looked at: this user may not list nodes",
		},
		"no GPU": {
			job:  func(j j) { j.K8s.GPUs, j.GPUVendor = 1, "AMD" },
			want: "warning | nodes for entry bench | no node has what one pod asks for (amd.com/gpu 1): of each, the most on a node is amd.com/gpu 0; " + capacity,
		},
		"room for one": {
			job:  func(j j) { j.K8s.CPU, j.K8s.MemoryLimit = "5", "8Gi" },
			want: "warning | nodes for entry bench | nodes that match: 1, with room for 1 pod; 2 are asked for, and ranks meet only when all run; " + capacity,
		},
		"room for both": {job: func(j j) { j.K8s.CPU = "4" }},
		"selector": {
			job:  func(j j) { j.K8s.NodeSelector = map[string]string{"zone": "b"} },
			want: "warning | nodes for entry bench | none of 1 node is ready and matches node_selector and tolerations; " + capacity,
		},
		"taint": {
			cluster: func(c c) {
				c.nodes = []corev1.Node{node("8", "32Gi", "0", tainted), node("8", "32Gi", "0", cordoned), node("8", "32Gi", "0", unready)}
			},
			want: "warning | nodes for entry bench | none of 3 nodes is ready and matches node_selector and tolerations; " + capacity,
		},
		"named nodes": {job: func(j j) { j.Nodes = []string{"n1", "n2"} }, cluster: func(c c) { c.nodes = []corev1.Node{host("n1"), host("n2")} }},
		"named nodes that do not do": {
			job: func(j j) { j.Nodes = []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"} },
			cluster: func(c c) {
				c.nodes = []corev1.Node{host("n1"), host("n2", cordoned), host("n3", tainted), host("n4", unready), host("n6.long")}
				c.nodes[4].Name = "n6"
			},
			want: "problem | named nodes | there is no node n[5-7]; node n6 has the host name n6.long: name that\n" +
				"problem | named nodes | of the nodes that are named, n2 is cordoned, n3 has the taint gpu=yes:NoSchedule, n4 is not ready: pods would wait for them; name others, or see to these",
		},
		"a named node that the selector leaves out": {
			job: func(j j) {
				j.NNodes, j.WorldSize, j.Nodes = 1, 1, []string{"n1"}
				j.K8s.NodeSelector = map[string]string{"zone": "b"}
			},
			cluster: func(c c) { c.nodes = []corev1.Node{host("n1")} },
			want: "problem | named nodes | of the nodes that are named, n1 does not match node_selector: pods would wait for them; name others, or see to these\n" +
				"warning | nodes for entry bench | none of 1 node is ready and matches node_selector and tolerations; " + capacity,
		},
		"a cordon is tolerated": {
			job: func(j j) {
				j.NNodes, j.WorldSize, j.Nodes = 1, 1, []string{"n1"}
				j.K8s.Tolerations = json.RawMessage(`[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]`)
			},
			cluster: func(c c) { c.nodes = []corev1.Node{host("n1", cordoned)} },
		},
		"tolerated": {
			cluster: func(c c) { c.nodes = []corev1.Node{node("8", "32Gi", "0", tainted)} },
			job:     func(j j) { j.K8s.Tolerations = json.RawMessage(`[{"key": "gpu", "value": "yes"}]`) },
		},
		"no claim": {job: mount, want: "problem | claim data | there is no persistent volume claim data in namespace ci; create it; assay does not"},
		"bound":    {job: mount, cluster: func(c c) { c.objects[claim] = `{"status": {"phase": "Bound"}}` }},
		"lost": {
			job: mount, cluster: func(c c) { c.objects[claim] = `{"status": {"phase": "Lost"}}` },
			want: "problem of the cluster | claim data | the volume of claim data is gone; pods that mount it cannot start",
		},
		"pending": {
			job: mount, cluster: func(c c) { c.objects[claim] = `{"spec": {"storageClassName": ""}, "status": {"phase": "Pending"}}` },
			want: "problem of the cluster | claim data | no volume is bound to claim data; pods that mount it wait until there is one",
		},
		"waits for a pod": {
			job: mount, cluster: func(c c) {
				c.objects[claim] = `{"spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}}`
				c.objects["/apis/storage.k8s.io/v1/storageclasses/fast"] = `{"volumeBindingMode": "WaitForFirstConsumer"}`
			},
		},
		"waits for nobody": {
			job: mount, cluster: func(c c) {
				c.objects[claim] = `{"spec": {"storageClassName": "slow"}, "status": {"phase": "Pending"}}`
				c.objects["/apis/storage.k8s.io/v1/storageclasses/slow"] = `{"volumeBindingMode": "Immediate"}`
			},
			want: "problem of the cluster | claim data | no volume is bound to claim data, of storage class slow; pods that mount it wait until there is one",
		},
		"named objects": {
			job: func(j j) {
				j.K8s.ServiceAccount, j.K8s.PriorityClass, j.K8s.PullSecrets, j.K8s.RuntimeSecret = "sa", "high", []string{"s", "pull"}, "tokens"
			},
			cluster: func(c c) { c.errs[apiCore+"ci/secrets/tokens"] = notAllowed() },
			want: "problem | service account sa | there is no service account sa; no pod would be created\n" +
				"problem | priority class high | there is no priority class high; no pod would be created\n" +
				"problem | secret pull | there is no secret pull; create it, or name another in the k8s block\n" +
				"unknown | secret tokens | could not be looked at: this user may not get secrets",
		},
		"no JobSet": {
			job:  func(j j) { j.K8s.JobSet = true },
			want: "problem | jobset | the cluster has no JobSet (jobset.x-k8s.io/v1alpha2); install the JobSet controller, or leave jobset out: it is not needed",
		},
		"queue": {job: func(j j) { j.K8s.Queue = "team" }},
		"no queue": {
			job:  func(j j) { j.K8s.Queue = "other" },
			want: "problem | queue other | there is no local queue other in namespace ci: the job would stay suspended; create it, or name another in the k8s block",
		},
		"no Kueue": {
			job: func(j j) { j.K8s.Queue = "team" }, cluster: func(c c) { delete(c.objects, "/apis/kueue.x-k8s.io") },
			want: "problem | queue team | the cluster has no Kueue: a job with a queue would stay suspended; install Kueue, or leave queue out",
		},
		"refused": {
			cluster: func(c c) {
				c.dryRun = apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", errors.New("a policy says no"))
			},
			want: `problem | dry run of bench | the API server would refuse the job: jobs.batch "x" is forbidden: a policy says no`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api, jobs := healthy(), wantings(tt.job)
			if tt.cluster != nil {
				tt.cluster(api)
			}
			target := New(Options{})
			found := append(target.manifestFindings(jobs), place{namespace: "ci", jobs: jobs}.findings(t.Context(), api, target, deploy.CheckRequest{Jobs: jobs, Thorough: true})...)
			if len(found) < 2 {
				t.Errorf("only %d findings", len(found))
			}
			found = slices.DeleteFunc(found, func(f deploy.Finding) bool { return f.State == deploy.FindingOK })
			if diff := cmp.Diff(tt.want, strings.TrimSuffix(lines(found), "\n")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestPlaces puts jobs of one namespace together.
func TestPlaces(t *testing.T) {
	jobs := slices.Concat(wantings(nil), wantings(func(j *plan.Job) { j.K8s.Namespace = "a" }), wantings(nil), wantings(func(j *plan.Job) { j.K8s.Context = "c" }))
	var got []int
	for _, p := range places(jobs) {
		got = append(got, len(p.jobs))
	}
	if want := []int{2, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("places of %v jobs, want %v", got, want)
	}
}

// TestRoleIsMinimal compares the Role of the templates with what the target says that
// it needs, both ways.
func TestRoleIsMinimal(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/render/env_file.txtar")
	if err != nil {
		t.Fatal(err)
	}
	j := attemptOf(t, archive).Job
	both := []plan.Job{j, j}
	k := *j.K8s
	k.JobSet = true
	both[1].K8s = &k
	needed := map[string]bool{}
	for _, p := range permissions(both) {
		needed[p.String()] = true
	}
	if diff := cmp.Diff(needed, granted(t)); diff != "" {
		t.Errorf("(-needed +granted)\n%s", diff)
	}
}

// granted is what the Role gives.
func granted(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../templates/k8s/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, doc := range strings.Split(string(data), "\n---\n") {
		var role struct {
			Kind  string
			Rules []struct{ APIGroups, Resources, Verbs []string }
		}
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "Role" {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, res := range rule.Resources {
					for _, verb := range rule.Verbs {
						all[permission{verb, group, res}.String()] = true
					}
				}
			}
		}
	}
	return all
}

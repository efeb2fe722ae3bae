//go:build k8s

package k8s

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"assay/deploy"
	"assay/deploy/deploytest"
	"assay/deploy/k8s/k8stest"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// TestK8sConformance runs the suite of all targets against a real cluster. The
// attempt directories are on a filesystem that pods share; the tests of whole runs
// are about clusters that share none.
func TestK8sConformance(t *testing.T) {
	t.Parallel()
	c := k8stest.Open(t)
	h := &harness{Cluster: c, namespace: c.Namespace(), shared: sharedDir(t)}
	deploytest.Run(t, deploytest.Harness{
		New:      func(*testing.T) deploy.Target { return h.target(h.Env()) },
		Dir:      h.dir,
		Patience: k8stest.Patience,
		Adapt:    h.adapt,
		Isolated: true,
		Named:    []string{k8stest.Node},
		Serve:    `exec busybox nc -l -p "$MASTER_PORT" -e echo hello`,
		KillRank: h.killRank,
		Left:     h.left,
		Waiting:  h.waiting,
		Refused:  h.refused,
		Lacking:  h.lacking,
		Purged:   h.purged,
		Recycled: h.recycled,
		Cannot: map[string]string{
			"failing status command": "the target watches and asks nothing: a server that is away is told after a while, which has tests of its own",
			"hanging status command": "as above",
		},
	})
}

type harness struct {
	*k8stest.Cluster
	namespace string
	shared    string // a directory of this machine that pods mount under the same path
}

func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "assay-k8s-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left of it is in the temporary directory
	return dir
}

func (h *harness) target(env []string) *Target {
	return New(Options{Env: env, Host: "tests", Version: "test"})
}

func (h *harness) dir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(h.shared, "run-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// adapt says where a job runs, unless a case has said so.
func (h *harness) adapt(j *plan.Job) {
	j.Image = k8stest.ImageTestbox
	j.MarkerGraceSeconds = 5
	if j.K8s == nil {
		j.K8s = &plan.K8s{Namespace: h.namespace}
	}
	j.K8s.RunnerImage, j.K8s.ImagePullPolicy, j.K8s.Cleanup, j.K8s.Secrets = k8stest.ImageRunner, "Never", "never", "from_env_file"
	j.K8s.TTLSeconds, j.K8s.RootWaitSeconds = 3600, 60
	j.K8s.Volumes = []plan.Volume{{MountPath: h.shared, HostPath: h.shared}}
}

// killRank kills the wrapper of a rank, which is the first process of its pod.
func (h *harness) killRank(t *testing.T, a plan.Attempt, rank int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(a.Dir, rank), rundir.BeginFile))
	if err != nil {
		t.Fatal(err)
	}
	var b evidence.Begin
	if err := json.Unmarshal(data, &b); err != nil || b.Host == "" {
		t.Fatalf("the begin marker of rank %d names the host %q: %v", rank, b.Host, err)
	}
	// Every host name of a pod is that of its Job and the index.
	name := objectName(a) + "-" + strconv.Itoa(rank)
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir)) // it is a number
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if !strings.Contains(string(args), "rank\x00--under\x00k8s") {
			continue
		}
		if host, _ := os.ReadFile(filepath.Join(dir, "root/etc/hostname")); strings.TrimSpace(string(host)) == name {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no process of this machine is the wrapper of rank %d in %s", rank, b.Host)
}

// left lists the pods of a job that are not over.
func (h *harness) left(t *testing.T, handle deploy.Handle) []string {
	t.Helper()
	r, err := decode(handle)
	if err != nil {
		return nil // it was never submitted
	}
	out := h.In(t).Kubectl("--namespace", r.Namespace, "get", "pods", "--selector", labelNonce+"="+r.Nonce,
		"--field-selector", "status.phase!=Succeeded,status.phase!=Failed", "--output", "name")
	return strings.Fields(out)
}

// waiting asks for a node that is not there.
func (h *harness) waiting(_ *testing.T, job plan.Job) (deploy.Target, plan.Job) {
	job.K8s = &plan.K8s{Namespace: h.namespace, NodeSelector: map[string]string{"assay/nowhere": "yes"}}
	return h.target(h.Env()), job
}

// refused asks for a namespace that is not there.
func (h *harness) refused(_ *testing.T, job plan.Job) (deploy.Target, plan.Job, string) {
	job.K8s = &plan.K8s{Namespace: "nowhere"}
	return h.target(h.Env()), job, `namespaces "nowhere" not found`
}

// lacking is a machine without a kubeconfig.
func (h *harness) lacking(t *testing.T) (deploy.Target, string) {
	t.Helper()
	return h.target([]string{"HOME=" + t.TempDir()}), "kubeconfig"
}

// purged is a job that the cluster has no more.
func (h *harness) purged(t *testing.T, handle deploy.Handle) deploy.Handle {
	t.Helper()
	r, err := decode(handle)
	if err != nil {
		t.Fatal(err)
	}
	h.In(t).Kubectl("--namespace", r.Namespace, "delete", "job", r.Name, "--wait=true")
	return handle
}

// recycled gives the name of a job to another one.
func (h *harness) recycled(t *testing.T, handle deploy.Handle) (deploy.Handle, func() bool) {
	t.Helper()
	handle = h.purged(t, handle)
	r, err := decode(handle)
	if err != nil {
		t.Fatal(err)
	}
	c := h.In(t)
	c.Kubectl("--namespace", r.Namespace, "create", "job", r.Name, "--image", k8stest.ImageTestbox, "--", "sleep", "300")
	status := func() string {
		return c.Kubectl("--namespace", r.Namespace, "get", "job", r.Name, "--output", "jsonpath={.status.active}")
	}
	t.Cleanup(func() { c.Kubectl("--namespace", r.Namespace, "delete", "job", r.Name, "--wait=false") })
	return handle, func() bool { return status() == "1" }
}

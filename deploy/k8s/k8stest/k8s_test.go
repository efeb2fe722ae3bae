//go:build k8s

package k8stest_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/deploy/k8s/k8stest"
)

// pair is a Job of two pods, of which the second finds the first by its name and
// sends it a word.
const pair = `
apiVersion: v1
kind: Service
metadata: {name: pair}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {job-name: pair}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: pair}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: pair
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: localhost/testbox:1
        resources: {requests: {cpu: 50m}}
        command: [bash, -euc]
        args:
        - |
          if [ $JOB_COMPLETION_INDEX = 0 ]; then
            nc -l -p 29500 -e bash -c 'read word && echo "got $word" >&2'
          else
            for i in $(seq 100); do echo hello | nc -w 5 pair-0.pair 29500 && exit; sleep 0.2; done
            exit 1
          fi
`

// pod is one that never starts again.
func pod(name, spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\n" +
		"spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, " + spec + "}\n"
}

func TestK8sClusterRunsAnIndexedJob(t *testing.T) {
	t.Parallel()
	c := k8stest.Open(t)
	ns := c.Namespace()
	c.Apply(ns, pair)
	c.Kubectl("--namespace", ns, "wait", "--for=condition=Complete", "job/pair", "--timeout=90s")
	if got := c.Kubectl("--namespace", ns, "logs", "--selector=batch.kubernetes.io/job-completion-index=0"); got != "got hello" {
		t.Errorf("the first pod printed %q", got)
	}
}

func TestK8sClusterRunsStaticPrograms(t *testing.T) {
	t.Parallel()
	c := k8stest.Open(t)
	ns := c.Namespace()
	c.Apply(ns, pod("say", "containers: [{name: main, image: "+k8stest.ImageSay+", command: [/say, -exit, '3', 'home $$HOME']}]"))
	c.Apply(ns, pod("assay", "containers: [{name: main, image: "+k8stest.ImageRunner+", args: [version]}]"))
	c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.phase}=Failed", "pod/say", "--timeout=60s")
	if got := c.Kubectl("--namespace", ns, "get", "pod", "say", "--output=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"); got != "3" {
		t.Errorf("/say exited with %s, want 3", got)
	}
	if got := c.Kubectl("--namespace", ns, "logs", "say"); got != "home /" {
		t.Errorf("/say printed %q", got)
	}
	c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/assay", "--timeout=60s")
	if got := c.Kubectl("--namespace", ns, "logs", "assay"); !strings.HasPrefix(got, "assay ") {
		t.Errorf("assay version printed %q", got)
	}
}

func TestK8sClusterRefusesBeyondTheQuota(t *testing.T) {
	t.Parallel()
	c := k8stest.Open(t)
	ns := c.Namespace()
	c.Kubectl("--namespace", ns, "create", "quota", "none", "--hard=pods=0")
	// The quota counts when its controller has seen it.
	c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.hard.pods}=0", "quota/none", "--timeout=60s")
	_, err := c.Try("--namespace", ns, "run", "more", "--image="+k8stest.ImageSay)
	if err == nil || !strings.Contains(err.Error(), "exceeded quota: none") {
		t.Errorf("a pod beyond the quota: %v", err)
	}
}

func TestK8sClusterServiceAccount(t *testing.T) {
	t.Parallel()
	c := k8stest.Open(t)
	ns := c.Namespace()
	c.Kubectl("--namespace", ns, "create", "serviceaccount", "reader")
	c.Kubectl("--namespace", ns, "create", "role", "reader", "--verb=list", "--resource=pods")
	c.Kubectl("--namespace", ns, "create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+ns+":reader")
	for life, ends := range map[time.Duration]bool{time.Hour: false, 10 * time.Second: true} {
		config := "--kubeconfig=" + c.ServiceAccountConfig(ns, "reader", life)
		c.Kubectl(config, "get", "pods")
		if _, err := c.Try(config, "get", "jobs"); err == nil || !strings.Contains(err.Error(), `cannot list resource "jobs"`) {
			t.Errorf("list jobs: %v, want a refusal", err)
		}
		if ends {
			c.Await("the token has ended", func() bool {
				_, err := c.Try(config, "get", "pods")
				return err != nil && strings.Contains(err.Error(), "Unauthorized")
			})
		}
	}
}

func TestK8sClusterWritesRequestsDown(t *testing.T) {
	t.Parallel()
	c := k8stest.Open(t)
	ns := c.Namespace()
	before := len(c.AuditRequests("kubectl/", ns))
	c.Kubectl("--namespace", ns, "create", "configmap", "one")
	var last k8stest.Request
	c.Await("the request is written down", func() bool {
		all := c.AuditRequests("kubectl/", ns)
		last = all[len(all)-1]
		return len(all) == before+1
	})
	want := k8stest.Request{Verb: "create", User: "admin", Namespace: ns, Resource: "configmaps", Name: "one", Code: http.StatusCreated}
	last.Agent, last.URI = "", ""
	if last != want {
		t.Errorf("written down is %+v, want %+v", last, want)
	}
	if got := c.AuditRequests("nobody/", ns); len(got) > 0 {
		t.Errorf("of a client that there is not: %+v", got)
	}
}

func TestK8sClusterRunsAJobSet(t *testing.T) {
	t.Parallel()
	c := k8stest.Open(t)
	c.JobSet()
	ns := c.Namespace()
	c.Apply(ns, `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set}
spec:
  replicatedJobs:
  - name: ranks
    template:
      spec: {parallelism: 2, completions: 2, completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [{name: main, image: "localhost/say:1"}]}}}
`)
	c.Kubectl("--namespace", ns, "wait", "--for=condition=Completed", "jobset/set", "--timeout=90s")
}

func TestK8sClusterGPUsComeLater(t *testing.T) {
	c := k8stest.Open(t)
	ns := c.Namespace()
	c.Apply(ns, pod("gpus", "containers: [{name: main, image: "+k8stest.ImageSay+", resources: {limits: {nvidia.com/gpu: 2}}}]"))
	c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].reason}=Unschedulable", "pod/gpus", "--timeout=60s")
	c.SetGPUs(2)
	c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/gpus", "--timeout=60s")
}

func TestK8sClusterDaemonsDieAndComeBack(t *testing.T) {
	for _, name := range []string{k8stest.APIServer, k8stest.ControllerManager, k8stest.Scheduler, k8stest.Kubelet, k8stest.Containerd} {
		t.Run(name, func(t *testing.T) {
			c := k8stest.Open(t)
			ns := c.Namespace()
			c.Apply(ns, pod("before", "containers: [{name: main, image: "+k8stest.ImageSay+", args: [-sleep, 3s]}]"))
			c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.phase}=Running", "pod/before", "--timeout=60s")
			c.KillDaemon(name)
			if _, err := c.Try("get", "--raw", "/readyz"); (err != nil) != (name == k8stest.APIServer) {
				t.Errorf("with %s killed, the API server: %v", name, err)
			}
			c.StartDaemon(name)
			c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/before", "--timeout=90s")
			c.Apply(ns, pod("after", "containers: [{name: main, image: "+k8stest.ImageSay+"}]"))
			c.Kubectl("--namespace", ns, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/after", "--timeout=90s")
		})
	}
}

func TestK8sWithLeavesNothing(t *testing.T) {
	c := k8stest.Open(t)
	dir := filepath.Join(c.Dir, "w")
	cmd := exec.Command("../../../testdata/clusters/k8s/with", dir, "bash", "-c",
		`kubectl run left --image `+k8stest.ImageSay+` -- -sleep 1h && kubectl wait --for=condition=Ready pod/left --timeout=60s && cat "$ASSAY_TEST_K8S/net" && exit 3`)
	cmd.Env = c.Env()
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Fatalf("with: %v, exit code %d, want 3\n%s", err, code, out)
	}
	if !strings.Contains(string(out), "--- log/kubelet.log\n") {
		t.Errorf("no end of the log of kubelet in\n%s", out)
	}
	net, err := os.ReadFile(filepath.Join(dir, "net"))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, pattern := range []string{"/sys/class/net/assayk", "/sys/fs/cgroup/assayk", "/sys/fs/cgroup/*/assayk"} {
		found, _ := filepath.Glob(pattern + strings.TrimSpace(string(net)))
		left = append(left, found...)
	}
	for _, file := range append(environs(t), "/proc/self/mounts") {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), dir+"/") {
			left = append(left, file)
		}
	}
	if len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

// environs lists the files with the environments of all processes.
func environs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

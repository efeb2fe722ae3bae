//go:build k8s

package main

import (
	"fmt"
	"strings"
	"testing"

	"assay/pkg/verdict"
)

// evict asks for the eviction of a pod, as kubectl drain does.
func (s *k8sSite) evict(pod string) {
	s.t.Helper()
	path := s.write("eviction.json", fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, pod, s.namespace))
	s.Kubectl("create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", s.namespace, pod), "--filename", path)
}

// rankPod is the pod of a rank.
func (s *k8sSite) rankPod(n int) string {
	s.t.Helper()
	pods := s.pods(fmt.Sprintf("batch.kubernetes.io/job-completion-index=%d", n))
	if len(pods) != 1 {
		s.t.Fatalf("the pods of rank %d are %q", n, pods)
	}
	return pods[0]
}

// What takes a pod away for a reason of the cluster is told by its word: it makes the
// verdict of a job that measured nothing, and is a warning where it did. Nobody is to
// take the hardware for faulty.
func TestK8sDisruptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   verdict.Word
	}{
		"nothing measured": {arrive, verdict.Fail},
		"measured":         {figure + "; " + arrive, verdict.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			s.gated()
			s.manifest(nil, 2, workload{name: "t", script: c.script})
			r := s.startRun()
			s.awaitArrived("t", 2)
			s.evict(s.rankPod(1))
			s.eventually("the pod to go", func() bool {
				return len(s.pods("batch.kubernetes.io/job-completion-index=1")) == 0 || s.jobObject() == "" || s.failed(1)
			})
			s.letGo()
			res := r.wait().want(c.want)
			for _, x := range append(res.Jobs[0].Reasons, res.Jobs[0].Warnings...) {
				t.Logf("%s %s: %s", x.Code, x.Subject, x.Message)
			}
			res.state("Evicted")
			if c.want == verdict.Pass {
				res.warning("SCHED_STATE", "Evicted")
			} else {
				res.reason("SCHED_STATE", "Evicted")
			}
		})
	}
}

// failed reports whether the pod of a rank has failed.
func (s *k8sSite) failed(n int) bool {
	s.t.Helper()
	return s.kubectl("get", "pods", "--selector", fmt.Sprintf("batch.kubernetes.io/job-completion-index=%d", n), "--output", "jsonpath={.items[*].status.phase}") == "Failed"
}

// One that is more important takes the place of a job's pod.
func TestK8sFaultPreemption(t *testing.T) {
	s := newK8sSite(t)
	s.gated()
	s.Ctl("gpus", "1", "assay.test/token")
	t.Cleanup(func() { s.Ctl("gpus", "0", "assay.test/token") })
	class := "important-" + s.namespace
	s.Apply(s.namespace, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: "+class+"}\nvalue: 1000000\n")
	t.Cleanup(func() { s.Kubectl("delete", "priorityclass", class) })
	s.manifest(map[string]any{"gpu_count": 1, "gpu_resource_name": "assay.test/token"}, 1, workload{name: "t", script: arrive})
	r := s.startRun()
	s.awaitArrived("t", 1)
	s.Apply(s.namespace, "apiVersion: v1\nkind: Pod\nmetadata: {name: important}\nspec: {priorityClassName: "+class+
		", restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: \"localhost/say:1\", args: [-sleep, 1h], resources: {limits: {assay.test/token: 1}}}]}\n")
	res := r.wait().want(verdict.Fail).state("Preempted")
	res.reason("SCHED_STATE", "Preempted")
	for _, x := range res.Jobs[0].Reasons {
		t.Logf("%s %s: %s", x.Code, x.Subject, x.Message)
	}
}

// A taint drives out what does not tolerate it.
func TestK8sFaultTaint(t *testing.T) {
	s := newK8sSite(t)
	s.gated()
	s.manifest(nil, 2, workload{name: "t", script: arrive})
	r := s.startRun()
	s.awaitArrived("t", 2)
	s.Kubectl("taint", "node", "node1", "assay.test/out=now:NoExecute")
	t.Cleanup(func() { s.Kubectl("taint", "node", "node1", "assay.test/out-") })
	res := r.wait().want(verdict.Fail)
	for _, x := range res.Jobs[0].Reasons {
		t.Logf("%s %s: %s", x.Code, x.Subject, x.Message)
	}
	if !strings.Contains(res.stdout, "taint") {
		t.Errorf("nothing tells of the taint: %s", res.stdout)
	}
}

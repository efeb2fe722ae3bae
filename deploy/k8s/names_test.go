package k8s

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"assay/pkg/evidence"
	"assay/pkg/plan"
)

func attemptNamed(id string) plan.Attempt {
	return plan.Attempt{RunID: "r", Nonce: "0123456789abcdef", Number: 1, Job: plan.Job{ID: id}}
}

// Entries that differ in what a name cannot hold are different objects all the same.
func TestNamesDoNotCollide(t *testing.T) {
	ids := []string{"m.1", "m-1", "m_1", "M-1", "m-1-", "-m-1", "é", "ü", "llama-3.1-70b-instruct-on-eight-nodes", "llama-3.1-70b-instruct-on-eight-nodez"}
	names, jobs := map[string]string{}, map[string]string{}
	for _, id := range ids {
		a := attemptNamed(id)
		name, label := objectName(a), labels(a)[labelJob]
		if other, taken := names[name]; taken {
			t.Errorf("%q and %q are both %s", id, other, name)
		}
		if other, taken := jobs[label]; taken {
			t.Errorf("%q and %q have both the label %s", id, other, label)
		}
		names[name], jobs[label] = id, id
	}
}

func TestNamesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := attemptNamed(rapid.String().Draw(t, "id"))
		name := objectName(a) + "-1000"
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Fatalf("%q: %v", name, problems)
		}
		for k, v := range labels(a) {
			if problems := validation.IsValidLabelValue(v); len(problems) > 0 {
				t.Fatalf("%s %q: %v", k, v, problems)
			}
		}
	})
}

// What a workload can forge does not count against what Kubernetes saw.
func TestContradiction(t *testing.T) {
	for _, tt := range []struct {
		told     int
		reason   string
		saw      int32
		disagree bool
	}{
		{0, "Completed", 0, false},
		{3, "Error", 3, false},
		{0, "Error", 3, true},
		{9, "Completed", 0, true},
		{0, "Error", 137, false}, // it was killed after its end
		{0, "ContainerStatusUnknown", 1, false},
	} {
		p := &podView{Pod: &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "rank", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: tt.reason, ExitCode: tt.saw}},
		}}}}}
		if err := contradiction(evidence.End{ExitCode: tt.told}, p); (err != nil) != tt.disagree {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// A copy that somebody makes of a pod is no start of a rank.
func TestCopiesOfPodsAreNoStarts(t *testing.T) {
	a := jobNamed("a")
	j := &job{ref: ref{UID: string(a.UID), Name: "a", WorldSize: 1}, pods: map[types.UID]*podView{}}
	real, copied := podOf(a, 0), podOf(a, 0)
	copied.Name, copied.UID = "mine", "uid-mine"
	j.update(real, false)
	j.update(copied, false)
	if len(j.pods) != 1 || j.pods[real.UID] == nil {
		t.Errorf("%d pods", len(j.pods))
	}
	orphan := endedPod(real, 0)
	orphan.OwnerReferences = nil // its Job was deleted without it
	j.update(orphan, false)
	if !j.pods[real.UID].over() {
		t.Error("the end of a pod that has no owner any more is not seen")
	}
}

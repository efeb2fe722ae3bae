package k8s

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"assay/pkg/evidence"
)

// observed is a case: what a cluster said of a job, as it said it, and what that
// means.
type observed struct {
	Doc      string            `json:"doc"`
	World    int               `json:"world"`
	Objects  []json.RawMessage `json:"objects"`  // Jobs and pods; of an object that is there again, a later state
	Deleted  []string          `json:"deleted"`  // names of those that were seen to be deleted, in their last state
	Vanished []string          `json:"vanished"` // and of those of which that was not seen
	Events   []corev1.Event    `json:"events"`
	Asked    bool              `json:"asked"`   // this process asked for the end of the job
	Crowded  bool              `json:"crowded"` // other jobs have pods in the namespace
	Absent   bool              `json:"absent"`  // the server was asked and has no such job
	Listed   bool              `json:"listed"`  // the pods were listed after the end of the job
	Age      map[string]int    `json:"age"`     // seconds for which what was seen has been so; "all"
	Want     struct {
		Phase       evidence.Phase     `json:"phase"`
		Word        string             `json:"word"`
		Bad         bool               `json:"bad"`
		Detail      string             `json:"detail"`       // is in it; empty: anything
		NotLaunched string             `json:"not_launched"` // is in it; empty: it is too
		Code        string             `json:"code"`
		Refused     string             `json:"refused"` // the code with which the job is given up
		Earlier     []evidence.Earlier `json:"earlier"`
		Nodes       string             `json:"nodes"` // empty: anything
		Ranks       map[int]string     `json:"ranks"`
	} `json:"want"`
}

func readObserved(t testing.TB) map[string]observed {
	t.Helper()
	paths, err := filepath.Glob("testdata/observe/*.json")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	cases := map[string]observed{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c observed
		dec := json.NewDecoder(strings.NewReader(string(data)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		cases[strings.TrimSuffix(filepath.Base(path), ".json")] = c
	}
	return cases
}

// objects reads the objects of a case in their order.
func (c observed) objects(t testing.TB) []metav1.Object {
	t.Helper()
	var list []metav1.Object
	for _, raw := range c.Objects {
		var kind metav1.TypeMeta
		var o metav1.Object = &corev1.Pod{}
		if err := json.Unmarshal(raw, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Kind == "Job" {
			o = &batchv1.Job{}
		}
		if err := json.Unmarshal(raw, o); err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}

// job is what is known of the job of a case after its objects came in that order.
func (c observed) job(objects []metav1.Object) *job {
	r := ref{Namespace: "h6", Name: "none", WorldSize: c.World}
	for _, o := range objects {
		if j, ok := o.(*batchv1.Job); ok {
			r.Name, r.UID = j.Name, string(j.UID)
		}
	}
	j := newJob(r)
	j.crowded = c.Crowded
	j.asked, j.absent, j.events = c.Asked, c.Absent, warnings(slices.Clone(c.Events))
	if c.Listed {
		j.listed = time.Unix(1, 0)
	}
	last := map[types.UID]metav1.Object{}
	for _, o := range objects {
		j.update(o, false)
		last[o.GetUID()] = o
	}
	for uid, o := range last {
		if slices.Contains(c.Deleted, o.GetName()) {
			j.update(o, true)
		}
		if slices.Contains(c.Vanished, o.GetName()) {
			j.settle(map[types.UID]string{uid: ""}, nil)
		}
	}
	return j
}

// now is when a case is looked at.
func now() time.Time { return time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC) }

// look looks at a job, and again when what it saw is so old.
func (c observed) look(j *job) evidence.Observation {
	o := j.observe(now())
	if age := c.Age["all"]; age > 0 {
		o = j.observe(now().Add(time.Duration(age) * time.Second))
	}
	return o
}

// TestObserve observes the jobs of testdata/observe.
func TestObserve(t *testing.T) {
	for name, c := range readObserved(t) {
		t.Run(name, func(t *testing.T) {
			j := c.job(c.objects(t))
			got, w := c.look(j), c.Want
			code := ""
			if j.refused != nil {
				code = j.refused.code
			}
			if got.Phase != w.Phase || got.Word != w.Word || got.Bad != w.Bad || got.NotLaunchedCode != w.Code || code != w.Refused {
				t.Errorf("%s %q, bad %v, code %q, given up for %q\nwant %s %q, bad %v, code %q, given up for %q\n%+v",
					got.Phase, got.Word, got.Bad, got.NotLaunchedCode, code, w.Phase, w.Word, w.Bad, w.Code, w.Refused, got)
			}
			if !strings.Contains(got.Detail, w.Detail) || strings.Contains(got.Detail, "\n") || len(got.Detail) > 2000 {
				t.Errorf("detail %q\nwant %q in it", got.Detail, w.Detail)
			}
			if !strings.Contains(got.NotLaunched, w.NotLaunched) || w.NotLaunched == "" && got.NotLaunched != "" {
				t.Errorf("not launched: %q\nwant %q", got.NotLaunched, w.NotLaunched)
			}
			if d := cmp.Diff(w.Earlier, got.Earlier); d != "" {
				t.Errorf("earlier (-want +got):\n%s", d)
			}
			if w.Nodes != "" && w.Nodes != got.Nodes || !maps.Equal(w.Ranks, got.Ranks) {
				t.Errorf("nodes %q, ranks %v", got.Nodes, got.Ranks)
			}
		})
	}
}

// sameMeaning leaves out of an observation what nobody judges.
func sameMeaning(o evidence.Observation) evidence.Observation {
	o.At = time.Time{}
	return o
}

// The order in which objects come, each one's states in theirs, changes nothing; nor
// do the counts of a Job, which say nothing of an end.
func TestObserveOrderAndCounts(t *testing.T) {
	cases := readObserved(t)
	names := slices.Sorted(maps.Keys(cases))
	rapid.Check(t, func(rt *rapid.T) {
		c := cases[rapid.SampledFrom(names).Draw(rt, "case")]
		want := sameMeaning(c.look(c.job(c.objects(t))))
		states := map[types.UID][]metav1.Object{}
		var order []types.UID
		for _, o := range c.objects(t) {
			states[o.GetUID()] = append(states[o.GetUID()], o)
			order = append(order, o.GetUID())
		}
		var objects []metav1.Object
		for _, uid := range rapid.Permutation(order).Draw(rt, "order") {
			o := states[uid][0]
			states[uid] = states[uid][1:]
			if j, ok := o.(*batchv1.Job); ok {
				for _, n := range []*int32{&j.Status.Active, &j.Status.Succeeded, &j.Status.Failed} {
					*n = rapid.Int32Range(0, 9).Draw(rt, "count")
				}
				j.Status.Ready, j.Status.Terminating = new(rapid.Int32Range(0, 9).Draw(rt, "ready")), new(rapid.Int32Range(0, 9).Draw(rt, "terminating"))
			}
			objects = append(objects, o)
		}
		if d := cmp.Diff(want, sameMeaning(c.look(c.job(objects)))); d != "" {
			rt.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// Something bad that is said besides never makes an observation better.
func TestObserveNeverBetter(t *testing.T) {
	cases := readObserved(t)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(cases)), func(name string) bool {
		o := cases[name].Want
		return o.Phase != evidence.PhaseEnded || !o.Bad
	})
	worse := map[string]func(*corev1.Pod){
		"disrupted": func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"})
		},
		"oom": func(p *corev1.Pod) {
			for i := range p.Status.ContainerStatuses {
				p.Status.ContainerStatuses[i].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: wordOOM}
			}
		},
		"evicted": func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" },
		"waiting": func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
				Name: "sidecar", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
			})
		},
		"deleted": func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now()} },
	}
	kinds := slices.Sorted(maps.Keys(worse))
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "case")
		c := cases[name]
		objects := c.objects(t)
		before := c.look(c.job(c.objects(t)))
		n := rapid.IntRange(0, len(objects)-1).Draw(rt, "object")
		p, ok := objects[n].(*corev1.Pod)
		if !ok {
			return
		}
		kind := rapid.SampledFrom(kinds).Draw(rt, "kind")
		worse[kind](p)
		after := c.look(c.job(objects))
		if after.Phase.Over() && (!after.Bad && after.Word != wordCancelled || after.Word == "Complete" || after.NotLaunched != "" && before.NotLaunched == "") {
			rt.Fatalf("%s with %s: %+v\nbefore %+v", name, kind, after, before)
		}
	})
}

package k8s

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// act asks what a watch does not say, and ends what cannot start.
func (t *Target) act(ctx context.Context, j *job) error {
	c, err := t.client(j.Kubeconfig, j.Context)
	if err != nil {
		return err
	}
	t.mu.Lock()
	now := t.now()
	events, end, unseen, pods := j.needsEvents(now), j.wantsEnd(), j.unseen(now), j.needsPods(now)
	j.askedAt = now
	t.mu.Unlock()
	switch {
	case pods:
		if err := t.census(ctx, c, j.watchKey()); err != nil {
			return err
		}
		t.mu.Lock()
		j.listed = now
		t.mu.Unlock()
		return nil
	case end:
		t.keepRefusal(j)
		err := c.remove(ctx, j.path(), j.UID, metav1.DeletePropagationForeground)
		t.mu.Lock()
		j.asked = err == nil
		t.mu.Unlock()
		return unasked("delete the "+j.kind()+" "+j.Name, err)
	case unseen:
		found, err := c.find(ctx, j.ref)
		if notThere(err) || err == nil && string(found.UID) != j.UID { // else another has its name
			t.mu.Lock()
			j.absent = true
			t.mu.Unlock()
			return nil
		}
		return unasked("get the "+j.kind()+" "+j.Name, err)
	case events:
		return t.askEvents(ctx, c, j)
	}
	return nil
}

// askEvents asks why a job has no pods.
func (t *Target) askEvents(ctx context.Context, c *client, j *job) error {
	var list corev1.EventList
	t.mu.Lock()
	name := j.Name
	if now, _ := j.current(); now != nil {
		name = now.Name
	}
	if p := j.mounting(); p != nil && !j.lacksPods() {
		name = p.Name
	}
	t.mu.Unlock()
	err := c.list(ctx, apiCore+j.Namespace+"/events", "", "involvedObject.name="+name, &list)
	if apierrors.IsForbidden(err) {
		return nil // it would be good to know, and can be done without
	}
	if err != nil {
		return unasked("list events in namespace "+j.Namespace, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	j.events = warnings(list.Items)
	return nil
}

// warnings is the newest warning of each reason. The controller tries again, each
// time with another name of the pod, which tells nothing.
func warnings(events []corev1.Event) []string {
	when := func(e corev1.Event) time.Time {
		newest := e.LastTimestamp.Time
		if e.EventTime.After(newest) {
			newest = e.EventTime.Time
		}
		return newest
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	said := map[string]string{}
	var reasons, out []string
	for _, e := range events {
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		if _, was := said[e.Reason]; !was {
			reasons = append(reasons, e.Reason)
		}
		said[e.Reason] = text(e.Reason, e.Message)
	}
	slices.Sort(reasons)
	for _, r := range reasons {
		out = append(out, withoutName(said[r]))
	}
	return out
}

// withoutName leaves the name of the pod that could not be created out of a text.
func withoutName(said string) string {
	before, rest, found := strings.Cut(said, `pods "`)
	_, after, ended := strings.Cut(rest, `" `)
	if !found || !ended {
		return said
	}
	return before + "pods " + after
}

// needsEvents reports whether the events may tell why pods are missing.
func (j *job) needsEvents(now time.Time) bool {
	o, deleted := j.current()
	podless := !deleted && (o == nil && j.JobSet || o != nil && !suspended(o) && o.DeletionTimestamp == nil && j.lacksPods() && !ended(o))
	slow := j.held("mounting", j.mounting() != nil, now) >= mountAfter
	return (j.held("podless", podless, now) >= podlessAfter || slow) && now.Sub(j.askedAt) >= lookAgain
}

// mounting is a pod that has a node and does not start, and does not say why: a volume
// may be what it waits for.
func (j *job) mounting() *podView {
	for _, pods := range j.starts() {
		if len(pods) == 0 {
			continue
		}
		p := pods[len(pods)-1]
		if word, _ := p.waits(); p.Spec.NodeName != "" && !p.started() && !p.over() && !p.leaving() && word == "" {
			return p
		}
	}
	return nil
}

// lacksPods reports whether a rank has no pod.
func (j *job) lacksPods() bool {
	return slices.ContainsFunc(j.starts(), func(pods []*podView) bool { return len(pods) == 0 })
}

// needsPods reports whether the pods are to be listed: the end of the job was seen
// and not that of all its pods, of which another watch tells.
func (j *job) needsPods(now time.Time) bool {
	o, deleted := j.current()
	if o == nil || !deleted && !ended(o) || now.Sub(j.listed) < lookAgain {
		return false
	}
	return j.listed.IsZero() && j.lacksPods() || j.unended(j.starts())
}

// unseen reports whether the job is to be asked for by name.
func (j *job) unseen(now time.Time) bool {
	o, _ := j.current()
	return j.held("unseen", o == nil && !j.absent, now) >= unseenAfter && now.Sub(j.askedAt) >= time.Second
}

// wantsEnd reports whether the job was given up and has to be ended.
func (j *job) wantsEnd() bool { return j.refused != nil && !j.asked }

package k8s

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/hostlist"
	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

// The bounds of patience with a cluster.
const (
	// listLimit is how long the first list of a watch may take.
	listLimit = 15 * time.Second
	// unseenAfter is how long a job may be missing from the watch before the server is
	// asked for it by name.
	unseenAfter = 3 * time.Second
	// imageAfter is how long an image that cannot be pulled is tried for, when the
	// registry's answer leaves hope.
	imageAfter = 20 * time.Second
	// podlessAfter is how long a Job may have no pods before its events are asked why.
	podlessAfter = time.Second
	// mountAfter is how long a pod with a node may take to start before its events are
	// asked why.
	mountAfter = 10 * time.Second
	// lostAfter is how long a pod that was told to go may take beyond its grace before
	// its node counts as lost.
	lostAfter = 60 * time.Second
	// lookAgain is how often a job is looked at without a change. No question is asked
	// for that.
	lookAgain = 5 * time.Second
)

// Observe implements deploy.Target: what the watch knows, without a question where
// it is up to date.
func (t *Target) Observe(ctx context.Context, handles []deploy.Handle) ([]evidence.Observation, error) {
	refs := make([]ref, len(handles))
	for i, h := range handles {
		r, err := decode(h)
		if err != nil {
			return nil, err
		}
		refs[i] = r
		t.mu.Lock()
		done := t.tracked(r).final != nil // before the watch starts: it fills what is tracked
		t.mu.Unlock()
		if done {
			continue
		}
		w, err := t.watch(r) //nolint:contextcheck // a watch is of many jobs, and ends with the last
		if err != nil {
			return nil, err
		}
		if err := w.ready(ctx, listLimit); err != nil {
			t.drop(r)
			return nil, err
		}
		if err := w.away(t.now()); err != nil {
			return nil, err
		}
		if err := t.settle(ctx, w, r.watchKey()); err != nil {
			return nil, err
		}
	}
	return t.look(ctx, refs)
}

// look observes the jobs, and acts on what has to be: those that cannot start are
// ended, and what is not seen is asked for.
func (t *Target) look(ctx context.Context, refs []ref) ([]evidence.Observation, error) {
	t.mu.Lock()
	t.changed = make(chan struct{})
	now := t.now()
	out := make([]evidence.Observation, len(refs))
	var act []*job
	live := t.live()
	for i, r := range refs {
		j := t.tracked(r)
		t.fetchAll(j)
		others := live[j.space()]
		if j.hasLivePods() {
			others--
		}
		j.crowded = others > 0
		out[i] = j.observe(now)
		out[i].At = now.UTC()
		if out[i].Phase.Over() && j.final == nil {
			j.final = &out[i]
			t.release(j)
		}
		if j.final == nil && (j.needsEvents(now) || j.wantsEnd() || j.unseen(now) || j.needsPods(now)) {
			act = append(act, j)
		}
	}
	t.mu.Unlock()
	for _, j := range act {
		if err := t.act(ctx, j); err != nil {
			return nil, err
		}
	}
	if len(act) > 0 {
		t.notify() // look again at once, without a question
	}
	return out, nil
}

// observe says what is known of a job now. It asks nobody.
func (j *job) observe(now time.Time) evidence.Observation {
	o := evidence.Observation{Source: "kubernetes", JobID: j.Namespace + "/" + j.Name}
	current, deleted := j.current()
	starts := j.starts()
	o.Earlier, o.Nodes = j.earlier(starts), nodes(starts)
	switch {
	case current == nil && j.absent:
		o.Phase, o.Detail = evidence.PhaseGone, fmt.Sprintf("the cluster has no %s %s in namespace %s any more", j.kind(), j.Name, j.Namespace)
		return o
	case current == nil:
		o.Phase, o.Word, o.Detail = evidence.PhasePending, wordPending, strings.Join(j.events, "; ")
		return o
	case ended(current) || deleted || j.abandoned(starts, now):
		return j.over(o, current, deleted, starts, now)
	}
	return j.live(o, current, starts, now)
}

// live: the job has not ended.
func (j *job) live(o evidence.Observation, current *batchv1.Job, starts [][]*podView, now time.Time) evidence.Observation {
	if current.DeletionTimestamp != nil {
		o.Phase, o.Word = evidence.PhaseEnding, "Deleting"
		if j.held("deleting", true, now) >= lostAfter {
			o.Detail = "its pods do not end: their nodes may be lost"
		}
		return o
	}
	if suspended(current) {
		o.Phase, o.Word = evidence.PhasePending, "Suspended"
		if c := condition(current, batchv1.JobSuspended); c != nil {
			o.Detail = phrase.Line(c.Message)
		}
		return o
	}
	j.giveUp(starts, now)
	missing, why := 0, ""
	for _, pods := range starts {
		if len(pods) == 0 {
			missing++
			continue
		}
		p := pods[len(pods)-1]
		if p.started() || p.over() {
			continue
		}
		missing++
		if word, text := p.waits(); word != "" && why == "" {
			o.Word, why = word, text
		}
	}
	if missing > 0 {
		o.Phase = evidence.PhasePending
		if o.Word == "" {
			o.Word = wordPending
		}
		o.Detail = why
		if why == "" {
			o.Detail = strings.Join(j.events, "; ")
		}
		return o
	}
	o.Phase, o.Word = evidence.PhaseRunning, wordRunning
	return o
}

// space is a namespace of a cluster.
type space struct{ kubeconfig, context, namespace string }

func (r ref) space() space { return space{r.Kubeconfig, r.Context, r.Namespace} }

// live counts the jobs of each namespace that have pods which have not ended. The
// caller holds the lock.
func (t *Target) live() map[space]int {
	live := map[space]int{}
	for _, j := range t.jobs {
		if j.hasLivePods() {
			live[j.space()]++
		}
	}
	return live
}

func (j *job) hasLivePods() bool {
	if j.final != nil {
		return false
	}
	for _, p := range j.pods {
		if !p.over() {
			return true
		}
	}
	return false
}

// giveUp notes that a pod is not going to start.
func (j *job) giveUp(starts [][]*podView, now time.Time) {
	if j.refused != nil {
		return
	}
	for n, pods := range starts {
		if len(pods) == 0 {
			continue
		}
		p := pods[len(pods)-1]
		what := fmt.Sprintf("stuck %d %s", n, p.UID)
		patient := j.held(what, p.stuck(true) != nil, now) >= imageAfter
		if r := p.stuck(patient); r != nil {
			j.refused = r
			return
		}
	}
	for _, e := range j.events {
		// A service account of a new namespace may be about to be created.
		hasty := strings.Contains(e, "error looking up service account") && j.held("no account", true, now) < imageAfter
		hasty = hasty || strings.Contains(e, "exceeded quota") && j.crowded
		if strings.HasPrefix(e, "FailedCreate") && !hasty && (strings.Contains(e, "forbidden") || strings.Contains(e, "denied") || strings.Contains(e, "invalid")) {
			if strings.Contains(e, "violates PodSecurity") {
				e += "; pod_security: restricted in the k8s block gives pods what the restricted profile wants"
			}
			j.refused = &refusal{verdict.CodeLaunchRefused, "FailedCreate", "pods of the Job cannot be created: " + e}
			return
		}
	}
}

// nodes lists the nodes of the newest pods.
func nodes(starts [][]*podView) string {
	var names []string
	for _, pods := range starts {
		if len(pods) > 0 {
			if n := pods[len(pods)-1].Spec.NodeName; n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return hostlist.Compress(names)
}

// due is when jobs should be looked at again although nothing changed. The caller
// holds the lock.
func (t *Target) due(handles []deploy.Handle) time.Duration {
	due := lookAgain
	for _, h := range handles {
		r, err := decode(h)
		if err != nil {
			continue
		}
		j := t.tracked(r)
		if o, _ := j.current(); o == nil || len(j.pods) < j.WorldSize {
			due = podlessAfter
		}
	}
	return due
}

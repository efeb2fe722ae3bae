package k8s

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		w, err := t.watch(r)
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
	for i, r := range refs {
		j := t.tracked(r)
		t.fetchAll(j)
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
		return unasked("delete the "+j.kind()+" "+j.ref.Name, err)
	case unseen:
		found, err := c.find(ctx, j.ref)
		if notThere(err) || err == nil && string(found.UID) != j.UID { // else another has its name
			t.mu.Lock()
			j.absent = true
			t.mu.Unlock()
			return nil
		}
		return unasked("get the "+j.kind()+" "+j.ref.Name, err)
	case events:
		return t.askEvents(ctx, c, j)
	}
	return nil
}

// askEvents asks why a job has no pods.
func (t *Target) askEvents(ctx context.Context, c *client, j *job) error {
	var list corev1.EventList
	name := j.ref.Name
	if now, _ := j.current(); now != nil {
		name = now.Name
	}
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
	return j.held("podless", podless, now) >= podlessAfter && now.Sub(j.askedAt) >= lookAgain
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

// unended reports whether the newest pod of a rank has not ended.
func (j *job) unended(starts [][]*podView) bool {
	return slices.ContainsFunc(starts, func(pods []*podView) bool { return len(pods) > 0 && !pods[len(pods)-1].over() })
}

// abandoned reports whether a job does not end because nodes do not say that their
// pods have: each of its pods is over, or was told to go and did not for long.
func (j *job) abandoned(starts [][]*podView, now time.Time) bool {
	lost, all := false, true
	for _, pods := range starts {
		if len(pods) == 0 {
			all = false
			continue
		}
		p := pods[len(pods)-1]
		leaving := p.DeletionTimestamp != nil && !p.over()
		grace := time.Duration(0)
		if leaving && p.DeletionGracePeriodSeconds != nil {
			grace = time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		}
		gone := j.held("leaving "+string(p.UID), leaving, now) >= grace+lostAfter && leaving
		lost = lost || gone
		all = all && (gone || p.over())
	}
	return lost && all
}

// unseen reports whether the job is to be asked for by name.
func (j *job) unseen(now time.Time) bool {
	o, _ := j.current()
	return j.held("unseen", o == nil && !j.absent, now) >= unseenAfter && now.Sub(j.askedAt) >= time.Second
}

// wantsEnd reports whether the job was given up and has to be ended.
func (j *job) wantsEnd() bool { return j.refused != nil && !j.asked }

// observe says what is known of a job now. It asks nobody.
func (j *job) observe(now time.Time) evidence.Observation {
	o := evidence.Observation{Source: "kubernetes", JobID: j.Namespace + "/" + j.ref.Name}
	current, deleted := j.current()
	starts := j.starts()
	o.Earlier, o.Nodes = earlier(starts), nodes(starts)
	switch {
	case current == nil && j.absent:
		o.Phase, o.Detail = evidence.PhaseGone, fmt.Sprintf("the cluster has no %s %s in namespace %s any more", j.kind(), j.ref.Name, j.Namespace)
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
		if strings.HasPrefix(e, "FailedCreate") && !hasty && (strings.Contains(e, "forbidden") || strings.Contains(e, "denied") || strings.Contains(e, "invalid")) {
			j.refused = &refusal{verdict.CodeLaunchRefused, "FailedCreate", "pods of the Job cannot be created: " + e}
			return
		}
	}
}

// over: the job has ended, by its conditions, or was deleted.
func (j *job) over(o evidence.Observation, current *batchv1.Job, deleted bool, starts [][]*podView, now time.Time) evidence.Observation {
	o.Phase = evidence.PhaseEnded
	patience := lostAfter + time.Duration(j.Grace)*time.Second // a lost node never says that its pods have ended
	abandoned := !deleted && !ended(current)                   // what could be had of it is here
	unlisted := j.listed.IsZero() && j.lacksPods()
	if !abandoned && (j.awaited(starts) || j.unended(starts) || unlisted) && j.held("awaited", true, now) < patience {
		o.Phase = evidence.PhaseEnding
	}
	failed := condition(current, batchv1.JobFailed)
	if failed == nil {
		failed = condition(current, batchv1.JobFailureTarget)
	}
	heaviest := j.troubles(current, deleted, starts)
	refused := j.refused
	if refused == nil && !deleted && !j.asked {
		refused = j.whyRefused(starts)
	}
	switch {
	case refused != nil:
		o.Word, o.Bad, o.Detail = refused.word, true, refused.text
	case heaviest != nil && heaviest.word == wordCancelled:
		o.Word, o.Detail = heaviest.word, heaviest.text
	case heaviest != nil:
		o.Word, o.Bad, o.Detail = heaviest.word, true, heaviest.text
	case failed != nil:
		o.Word, o.Bad, o.Detail = failed.Reason, true, phrase.Line(failed.Message)
	case condition(current, batchv1.JobComplete) != nil || condition(current, batchv1.JobSuccessCriteriaMet) != nil:
		o.Word = "Complete"
	case abandoned && current.DeletionTimestamp == nil:
		o.Word, o.Bad, o.Detail = wordNodeLost, true, "pods that were told to go do not say that they have ended: their nodes may be lost"
	default:
		o.Word, o.Detail = wordCancelled, "the "+j.kind()+" was deleted by somebody"
		if j.asked {
			o.Detail = "the " + j.kind() + " was deleted"
		}
	}
	if o.Bad && (refused != nil || !j.lacksPods()) && !j.began() {
		o.NotLaunched = o.Detail
		if o.NotLaunched == "" {
			o.NotLaunched = "it ended as " + o.Word + " before any rank began"
		}
		if refused != nil {
			o.NotLaunchedCode = refused.code
		}
	}
	o.Ranks = j.unfetched(starts)
	return o
}

// whyRefused says why no pod of a job that has ended could start: it may have ended
// before it was given up for that.
func (j *job) whyRefused(starts [][]*podView) *refusal {
	if j.began() {
		return nil
	}
	for _, pods := range starts {
		if len(pods) > 0 {
			if r := pods[len(pods)-1].stuck(true); r != nil {
				return r
			}
		}
	}
	return nil
}

// began reports whether any rank began, in any of its pods.
func (j *job) began() bool {
	for _, p := range j.pods {
		if p.began {
			return true
		}
	}
	return false
}

// troubles is the heaviest trouble of the newest pods.
func (j *job) troubles(current *batchv1.Job, deleted bool, starts [][]*podView) (heaviest *trouble) {
	ours := j.asked || j.refused != nil || suspended(current) || deleted || current.DeletionTimestamp != nil ||
		condition(current, batchv1.JobFailureTarget) != nil && condition(current, batchv1.JobFailureTarget).Reason == batchv1.JobReasonDeadlineExceeded
	for _, pods := range starts {
		if len(pods) == 0 {
			continue
		}
		if t := pods[len(pods)-1].trouble(ours); t != nil && (heaviest == nil || t.weight > heaviest.weight) {
			heaviest = t
		}
	}
	return heaviest
}

// ended reports whether a Job has ended by its conditions: counts say nothing, for
// a pod that succeeded may be one of many, and one that failed may be started again.
func ended(j *batchv1.Job) bool {
	return condition(j, batchv1.JobComplete) != nil || condition(j, batchv1.JobFailed) != nil
}

func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// earlier is how the starts of ranks before the newest ended.
func earlier(starts [][]*podView) []evidence.Earlier {
	var list []evidence.Earlier
	for n, pods := range starts {
		for _, p := range pods[:max(len(pods)-1, 0)] {
			rank := n
			list = append(list, evidence.Earlier{Word: p.endWord(), Nodes: p.Spec.NodeName, Rank: &rank})
		}
	}
	return list
}

// endWord says in a word or two how a pod ended.
func (p *podView) endWord() string {
	if t := p.trouble(false); t != nil {
		return t.word
	}
	if end := p.terminated(); end != nil {
		return fmt.Sprintf("exit code %d", end.ExitCode)
	}
	return "ended without a status"
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

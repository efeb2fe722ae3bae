package k8s

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
)

// job is what this process knows of one job. Objects that were deleted stay in it:
// what was seen of them is evidence.
type job struct {
	ref
	jobs map[types.UID]*batchv1.Job // the Job, or those of a JobSet
	gone map[types.UID]bool         // of jobs
	pods map[types.UID]*podView

	attempt *plan.Attempt // nil: not followed
	follow  context.Context
	absent  bool                 // the server has no such job
	asked   bool                 // somebody of this process asked for its end
	partial bool                 // not all that a rank left could be brought here
	crowded bool                 // other jobs of this process have pods in its namespace, and will give back what they use
	paused  bool                 // it was suspended after pods of it had been created
	refused *refusal             // it was given up before its ranks could start
	events  []string             // texts of events that tell why pods are not created
	askedAt time.Time            // when the server was last asked about it
	since   map[string]time.Time // by what: since when it has been so
	listed  time.Time            // when its pods were listed after its end
	final   *evidence.Observation
}

// refusal says why a job was given up.
type refusal struct{ code, word, text string }

// podView is one pod of a job, as it was seen last, and what was seen of it before:
// its last state may not tell that.
type podView struct {
	*corev1.Pod
	deleted    bool
	began      bool   // its container was seen to run
	endedFirst bool   // its container had ended before its deletion was asked for
	gaveWay    bool   // its deletion was asked for while its container ran
	fetch      *fetch // nil: not begun
}

// see takes over the newest state of a pod.
func (p *podView) see(o *corev1.Pod, deleted bool) {
	p.Pod, p.deleted = o, deleted
	p.began = p.began || p.started()
	ended := p.terminated() != nil
	p.endedFirst = p.endedFirst || ended && !p.leaving() && !p.gaveWay
	p.gaveWay = p.gaveWay || p.leaving() && !ended && !p.endedFirst
}

// leaving reports whether a pod was deleted, or is about to be.
func (p *podView) leaving() bool { return p.deleted || p.DeletionTimestamp != nil }

// rank is the rank that a pod runs, -1 when it does not say.
func (p *podView) rank() int {
	if n, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
		return n
	}
	return -1
}

// starts is how often the rank had failed before this pod.
func (p *podView) starts() int {
	n, _ := strconv.Atoi(p.Annotations[batchv1.JobIndexFailureCountAnnotation]) // absent: none
	return n
}

func newJob(r ref) *job {
	return &job{ref: r, jobs: map[types.UID]*batchv1.Job{}, gone: map[types.UID]bool{}, pods: map[types.UID]*podView{}, since: map[string]time.Time{}}
}

// tracked returns what is known of a job: of one that is new what its run's watch
// has seen already. The caller holds the lock.
func (t *Target) tracked(r ref) *job {
	j := t.jobs[r.key()]
	if j == nil {
		j = newJob(r)
		t.jobs[r.key()] = j
		if w := t.watchers[r.watchKey()]; w != nil {
			for _, store := range w.stores {
				for _, o := range store.List() {
					j.update(o, false)
				}
			}
		}
	}
	return j
}

// asked notes that this process asks for the end of a job.
func (t *Target) asked(r ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tracked(r).asked = true
}

// update takes over what a watch says of an object.
func (t *Target) update(w *watcher, key watchKey, o any, deleted bool) {
	t.mu.Lock()
	if t.watchers[key] != w { // it was ended: another knows better
		t.mu.Unlock()
		return
	}
	for _, j := range t.jobs {
		if key == j.watchKey() {
			j.update(o, deleted)
			t.fetchAll(j)
		}
	}
	t.mu.Unlock()
	t.notify()
}

// vanish notes that an object went while nobody looked.
func (t *Target) vanish(w *watcher, key watchKey, o any) {
	m, ok := o.(metav1.Object)
	if !ok {
		return
	}
	t.mu.Lock()
	for _, j := range t.jobs {
		if key == j.watchKey() && t.watchers[key] == w {
			j.settle(map[types.UID]string{m.GetUID(): ""}, nil)
			t.fetchAll(j)
		}
	}
	t.mu.Unlock()
	t.notify()
}

// update takes over an object when it is one of the job's.
func (j *job) update(o any, deleted bool) {
	switch o := o.(type) {
	case *batchv1.Job:
		if j.owns(o) {
			j.jobs[o.UID] = o
			j.paused = j.paused || suspended(o) && len(j.pods) > 0
			j.gone[o.UID] = deleted
		}
	case *corev1.Pod:
		if j.pods[o.UID] == nil { // one that is known stays so: a Job may be deleted and leave its pods
			owner := metav1.GetControllerOf(o)
			if owner == nil || !j.ownsUID(owner) || !namedBy(o, owner.Name) {
				return
			}
			j.pods[o.UID] = &podView{}
		}
		j.pods[o.UID].see(o, deleted)
	}
}

// namedBy reports whether a pod has a name that the Job gives: a copy of a pod that
// somebody made is no start of a rank. Long names are cut by Kubernetes.
func namedBy(o *corev1.Pod, job string) bool {
	const longest = 58 // of what a name is made from
	prefix := job + "-" + o.Annotations[batchv1.JobCompletionIndexAnnotation] + "-"
	return len(prefix) > longest || strings.HasPrefix(o.Name, prefix)
}

// known lists the versions of the objects of a job that are there as far as is known.
func (j *job) known() map[types.UID]string {
	known := map[types.UID]string{}
	for uid, o := range j.jobs {
		if !j.gone[uid] {
			known[uid] = o.ResourceVersion
		}
	}
	for uid, p := range j.pods {
		if !p.deleted {
			known[uid] = p.ResourceVersion
		}
	}
	return known
}

// isNews reports whether a pod of a list, which was asked for when those versions were
// known, tells more than a watch has told since.
func (j *job) isNews(known map[types.UID]string, o *corev1.Pod) bool {
	p := j.pods[o.UID]
	return p == nil || !p.deleted && p.ResourceVersion == known[o.UID]
}

// settle notes which of the objects that were known are not there any more.
func (j *job) settle(known map[types.UID]string, there map[types.UID]bool) {
	for uid := range known {
		if there[uid] {
			continue
		}
		if j.jobs[uid] != nil {
			j.gone[uid] = true
		}
		if p := j.pods[uid]; p != nil && !p.deleted {
			p.deleted = true
		}
	}
}

// owns reports whether a Job is the one that was submitted, or of the JobSet.
func (j *job) owns(o *batchv1.Job) bool {
	if !j.JobSet {
		return string(o.UID) == j.UID
	}
	owner := metav1.GetControllerOf(o)
	return owner != nil && string(owner.UID) == j.UID
}

// ownsUID reports whether a pod's owner is a Job of this one. The pod may have been
// seen before its Job was.
func (j *job) ownsUID(owner *metav1.OwnerReference) bool {
	if !j.JobSet {
		return string(owner.UID) == j.UID
	}
	return owner.Kind == "Job" && len(owner.Name) > len(j.Name) && owner.Name[:len(j.Name)+1] == j.Name+"-"
}

// current is the Job that is watched, and whether it was deleted; nil when none was
// seen.
func (j *job) current() (*batchv1.Job, bool) {
	var newest *batchv1.Job
	for _, o := range j.jobs {
		if newest == nil || cmp.Or(newest.CreationTimestamp.Compare(o.CreationTimestamp.Time), cmp.Compare(newest.UID, o.UID)) < 0 {
			newest = o
		}
	}
	if newest == nil {
		return nil, false
	}
	return newest, j.gone[newest.UID]
}

// starts returns the pods of each rank, the oldest first.
func (j *job) starts() [][]*podView {
	ranks := make([][]*podView, j.WorldSize)
	for _, p := range j.pods {
		if n := p.rank(); n >= 0 && n < j.WorldSize {
			ranks[n] = append(ranks[n], p)
		}
	}
	for _, pods := range ranks {
		slices.SortFunc(pods, func(a, b *podView) int {
			return cmp.Or(cmp.Compare(a.starts(), b.starts()), a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
				first(a.leaving(), b.leaving()), first(a.over(), b.over()), cmp.Compare(a.Name, b.Name))
		})
	}
	return ranks
}

// first puts what is so before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// held says for how long a thing has been so without interruption.
func (j *job) held(what string, is bool, now time.Time) time.Duration {
	if !is {
		delete(j.since, what)
		return 0
	}
	if _, was := j.since[what]; !was {
		j.since[what] = now
	}
	return now.Sub(j.since[what])
}

// forbidden reports whether the server says that it will not answer.
func forbidden(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// Follow implements deploy.Follower.
func (t *Target) Follow(ctx context.Context, a plan.Attempt, h deploy.Handle) {
	r, err := decode(h)
	if err != nil {
		return // Observe says so
	}
	t.mu.Lock()
	j := t.tracked(r)
	if j.attempt == nil || j.follow.Err() != nil {
		j.attempt, j.follow = &a, ctx
		for _, p := range j.pods {
			if p.fetch != nil && !p.fetch.done() {
				p.fetch = nil // the one that followed before has ended
			}
		}
	}
	over := j.final != nil
	if over {
		t.fetchAll(j)
	}
	t.mu.Unlock()
	if !over {
		_, _ = t.watch(r) //nolint:contextcheck // a watch is of many jobs, and ends with the last; Observe tells what is wrong
	}
}

package k8s

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"assay/deploy"
)

// watchKey is what one watch is about: the objects of one run in one namespace.
type watchKey struct{ kubeconfig, context, namespace, nonce string }

func (r ref) watchKey() watchKey { return watchKey{r.Kubeconfig, r.Context, r.Namespace, r.Nonce} }

// watcher follows the Jobs and pods of a run. The library under it lists and watches
// again whatever ends a watch: a server that was restarted, a version that is too
// old, a token that has changed.
type watcher struct {
	client  *client
	stop    context.CancelFunc
	synced  []cache.InformerSynced
	stores  []cache.Store
	settled bool // what was known before it began was compared; guarded by the target

	mu     sync.Mutex
	broken map[string]outage // by resource: what went wrong last, and since when without an answer
}

type outage struct {
	err   error
	since time.Time
}

// outageAfter is how long a server may be away before a person is told.
const outageAfter = 10 * time.Second

// watch returns the watcher of a job's run, which it starts when there is none, or
// none with the credentials of now.
func (t *Target) watch(r ref) (*watcher, error) {
	c, err := t.client(r.Kubeconfig, r.Context)
	if err != nil {
		return nil, err
	}
	key := r.watchKey()
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.watchers[key]; w != nil {
		if w.client == c {
			return w, nil
		}
		w.stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{client: c, stop: cancel, broken: map[string]outage{}}
	selector := labelNonce + "=" + labelValue(r.Nonce)
	t.inform(ctx, w, c, "jobs", apiBatch+r.Namespace+"/jobs", selector, &batchv1.Job{}, func() runtime.Object { return &batchv1.JobList{} }, key)
	t.inform(ctx, w, c, "pods", apiCore+r.Namespace+"/pods", selector, &corev1.Pod{}, func() runtime.Object { return &corev1.PodList{} }, key)
	t.watchers[key] = w
	return w, nil
}

// release ends the watch of a run when none of its jobs is looked at any more. The
// caller holds the lock.
func (t *Target) release(j *job) {
	key := j.watchKey()
	for _, other := range t.jobs {
		if other.watchKey() == key && other.final == nil {
			return
		}
	}
	if w := t.watchers[key]; w != nil {
		w.stop()
		delete(t.watchers, key)
	}
}

// drop ends a watch that does not work, so that the next one begins anew.
func (t *Target) drop(r ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.watchers[r.watchKey()]; w != nil {
		w.stop()
		delete(t.watchers, r.watchKey())
	}
}

// settle compares what was known before a watch began with what it found: nobody
// told what went between two watches. A watch may begin with what a server that is
// behind knows, so that what is missing is asked for.
func (t *Target) settle(ctx context.Context, w *watcher, key watchKey) error {
	t.mu.Lock()
	settled, missing := w.settled, false
	w.settled = true
	there := map[types.UID]bool{}
	for _, store := range w.stores {
		for _, o := range store.List() {
			if m, ok := o.(metav1.Object); ok {
				there[m.GetUID()] = true
			}
		}
	}
	for _, j := range t.jobs {
		if j.watchKey() == key {
			for uid := range j.known() {
				missing = missing || !there[uid]
			}
		}
	}
	t.mu.Unlock()
	if settled || !missing {
		return nil
	}
	err := t.census(ctx, w.client, key)
	if err != nil {
		t.mu.Lock()
		w.settled = false
		t.mu.Unlock()
	}
	return err
}

// census lists all objects of a run as they are now, and notes which of those that
// were known are gone.
func (t *Target) census(ctx context.Context, c *client, key watchKey) error {
	t.mu.Lock()
	known := map[*job]map[types.UID]string{}
	for _, j := range t.jobs {
		if j.watchKey() == key {
			known[j] = j.known()
		}
	}
	t.mu.Unlock()
	var jobs batchv1.JobList
	var pods corev1.PodList
	selector := labelNonce + "=" + labelValue(key.nonce)
	if err := c.list(ctx, apiBatch+key.namespace+"/jobs", selector, "", &jobs); err != nil {
		return unasked("list jobs in namespace "+key.namespace, err)
	}
	if err := c.list(ctx, apiCore+key.namespace+"/pods", selector, "", &pods); err != nil {
		return unasked("list pods in namespace "+key.namespace, err)
	}
	there := map[types.UID]bool{}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range jobs.Items {
		there[jobs.Items[i].UID] = true
	}
	for i := range pods.Items {
		there[pods.Items[i].UID] = true
	}
	for j, uids := range known {
		for i := range pods.Items {
			if j.isNews(uids, &pods.Items[i]) {
				j.update(&pods.Items[i], false)
			}
		}
		j.settle(uids, there)
		t.fetchAll(j)
	}
	return nil
}

// inform starts to follow one kind of object.
func (t *Target) inform(ctx context.Context, w *watcher, c *client, resource, path, selector string, kind runtime.Object, empty func() runtime.Object, key watchKey) {
	list, begin := c.listFunc(path, selector, empty), c.watchFunc(path, selector)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opt metav1.ListOptions) (runtime.Object, error) {
			o, err := list(ctx, opt)
			w.heard(resource, err, t.now())
			return o, err
		},
		WatchFuncWithContext: func(ctx context.Context, opt metav1.ListOptions) (watch.Interface, error) {
			i, err := begin(ctx, opt)
			w.heard(resource, err, t.now()) // of a server that is away the handler below is not told
			return i, err
		},
	}
	informer := cache.NewSharedInformer(lw, kind, 0)
	_ = informer.SetTransform(trim) // never fails before the start
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.heard(resource, err, t.now())
		t.notify()
	})
	update := func(o any) {
		w.heard(resource, nil, t.now())
		t.update(w, key, o, false)
	}
	reg, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    update,
		UpdateFunc: func(_, o any) { update(o) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				t.vanish(w, key, last.Obj)
				return
			}
			t.update(w, key, o, true)
		},
	})
	if err == nil { // it always is before the start
		w.synced = append(w.synced, reg.HasSynced)
	}
	w.stores = append(w.stores, informer.GetStore())
	go informer.RunWithContext(ctx)
}

// trim leaves out of an object what nobody looks at, for a run of many pods.
func trim(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	return o, nil
}

// heard notes whether the server answered.
func (w *watcher) heard(resource string, err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.broken, resource)
		return
	}
	since := now
	if o, was := w.broken[resource]; was {
		since = o.since
	}
	w.broken[resource] = outage{err: err, since: since}
}

// ready waits until the first lists are in.
func (w *watcher) ready(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		ready := true
		for _, synced := range w.synced {
			ready = ready && synced()
		}
		if ready {
			return nil
		}
		if err := w.refused(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err := w.away(time.Time{}); err != nil {
				return err
			}
			return fmt.Errorf("%w: the API server did not list the job's objects within %s", deploy.ErrUnavailable, limit)
		}
	}
}

// refused is the error when the server says no: asking again gives the same answer.
func (w *watcher) refused() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource, o := range w.broken {
		if forbidden(o.err) {
			return unasked("list and watch "+resource, o.err)
		}
	}
	return nil
}

// away is the error when the server has not answered for a while.
func (w *watcher) away(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for resource, o := range w.broken {
		if now.IsZero() || now.Sub(o.since) >= outageAfter {
			return unasked("watch "+resource, o.err)
		}
	}
	return nil
}

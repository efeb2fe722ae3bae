package k8s

import (
	"context"
	"errors"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay/deploy"
	"assay/pkg/evidence"
)

// patience is how long a test waits for what happens in the background.
const patience = 30 * time.Second

// newTarget returns a target whose watches end with the test.
func newTarget(t *testing.T) *Target {
	t.Helper()
	target := New(Options{})
	t.Cleanup(func() {
		target.mu.Lock()
		defer target.mu.Unlock()
		for _, w := range target.watchers {
			w.stop()
		}
	})
	return target
}

// until asks again until an answer is the right one, as a driver does: it waits for
// a change in between.
func until(t *testing.T, target *Target, handles []deploy.Handle, what string, right func([]evidence.Observation, error) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		seen, err := target.Observe(ctx, handles)
		if right(seen, err) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%s: not within %s, last %+v, %v", what, patience, seen, err)
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // the pause of a driver
		} else if err := target.Wait(ctx, handles); err != nil {
			t.Fatalf("%s: not within %s, last %+v", what, patience, seen)
		}
	}
}

func words(seen []evidence.Observation) string {
	var list []string
	for _, o := range seen {
		list = append(list, o.Word)
	}
	return strings.Join(list, " ")
}

func saying(want string) func([]evidence.Observation, error) bool {
	return func(seen []evidence.Observation, err error) bool { return err == nil && words(seen) == want }
}

// Jobs that a watch saw before anybody asked for them are known.
func TestJobsOfOneWatch(t *testing.T) {
	s := newAPIServer(t)
	a, b, c := jobNamed("a"), with(jobNamed("b"), batchv1.JobComplete), jobNamed("c")
	s.put(a)
	s.put(podOf(a, 0))
	s.put(b)
	s.put(endedPod(podOf(b, 0), 0))
	target := newTarget(t)
	handles := []deploy.Handle{s.handleOf(a, 1), s.handleOf(b, 1)}
	until(t, target, handles, "jobs that were there", saying("Running Complete"))
	s.put(c)
	s.put(podOf(c, 0))
	time.Sleep(200 * time.Millisecond) // that of which nobody is told comes too soon
	until(t, target, append(handles, s.handleOf(c, 1)), "a job that came later", saying("Running Complete Running"))
	if n := s.asked("GET"); n > 8 {
		t.Errorf("%d requests for three jobs: %q", n, s.requests)
	}
}

// What happened between two watches is known after the second began.
func TestWatchBeginsAgain(t *testing.T) {
	for name, between := range map[string]func(*testing.T, *apiServer){
		"cut off":   func(_ *testing.T, s *apiServer) { s.cut() },
		"410 Gone":  func(_ *testing.T, s *apiServer) { s.expire(); s.cut() },
		"restarted": func(_ *testing.T, s *apiServer) { s.stop(); s.start(s.addr) },
		"500 for a while": func(_ *testing.T, s *apiServer) {
			var left atomic.Int32
			left.Store(4)
			s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
				if left.Add(-1) < 0 {
					return false
				}
				sayNo(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed", nil)
				return true
			})
			s.cut()
		},
		"429": func(_ *testing.T, s *apiServer) {
			var left atomic.Int32
			left.Store(3)
			s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
				if left.Add(-1) < 0 {
					return false
				}
				w.Header().Set("Retry-After", "1")
				sayNo(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "slow down", nil)
				return true
			})
			s.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			a, b := jobNamed("a"), jobNamed("b")
			pa, pb := podOf(a, 0), podOf(b, 0)
			for _, o := range []metav1.Object{a, b, pa, pb} {
				s.put(o)
			}
			target, handles := newTarget(t), []deploy.Handle{s.handleOf(a, 1), s.handleOf(b, 1)}
			until(t, target, handles, "before", saying("Running Running"))
			between(t, s)
			s.put(endedPod(pa, 0))
			s.put(with(a, batchv1.JobComplete))
			s.drop(pb)
			s.drop(b)
			until(t, target, handles, "after", saying("Complete CANCELLED"))
		})
	}
}

// A job whose end is seen before that of its pods is over only when that is known too:
// two watches tell of them, and one may be late.
func TestPodsAreLate(t *testing.T) {
	s := newAPIServer(t)
	a := jobNamed("a")
	pa := podOf(a, 0)
	s.put(a)
	s.put(pa)
	target, h := newTarget(t), s.handleOf(a, 2)
	until(t, target, []deploy.Handle{h}, "before", func(seen []evidence.Observation, err error) bool { return err == nil && seen[0].Nodes == "node1" })
	s.answers(func(w http.ResponseWriter, r *http.Request) bool { // the watch of pods does not come back
		late := strings.Contains(r.URL.RawQuery, "watch=") && strings.HasSuffix(r.URL.Path, "/pods")
		if late {
			sayNo(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "starting", nil)
		}
		return late
	})
	s.cut()
	oom := endedPod(pa, 137)
	oom.Status.ContainerStatuses[0].State.Terminated.Reason = wordOOM
	s.put(oom)
	s.put(endedPod(podOf(a, 1), 0))
	s.put(with(a, batchv1.JobFailed))
	until(t, target, []deploy.Handle{h}, "after", func(seen []evidence.Observation, err error) bool {
		if err == nil && seen[0].Phase.Over() && seen[0].Word != wordOOM {
			t.Fatalf("ended without its pods: %+v", seen[0])
		}
		return err == nil && seen[0].Phase == evidence.PhaseEnded
	})
}

// A server that is behind does not make objects vanish that were seen.
func TestListIsBehind(t *testing.T) {
	s := newAPIServer(t)
	a := jobNamed("a")
	s.put(a)
	s.put(podOf(a, 0))
	target, h := newTarget(t), s.handleOf(a, 1)
	until(t, target, []deploy.Handle{h}, "before", saying("Running"))
	target.drop(s.refOf(a, 1))
	s.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("resourceVersion") != "0" || r.URL.Query().Get("watch") != "" {
			return false
		}
		kind, group := "PodList", "v1"
		if strings.HasSuffix(r.URL.Path, "/jobs") {
			kind, group = "JobList", "batch/v1"
		}
		reply(w, map[string]any{"apiVersion": group, "kind": kind, "metadata": map[string]any{"resourceVersion": "10"}, "items": []any{}})
		return true
	})
	for range 3 {
		seen, err := target.Observe(t.Context(), []deploy.Handle{h})
		if err != nil || words(seen) != "Running" {
			t.Fatalf("%+v, %v", seen, err)
		}
	}
}

// A watch that did not work is begun anew, and what went in between is not there.
func TestDeletedBetweenWatches(t *testing.T) {
	s := newAPIServer(t)
	a := jobNamed("a")
	pa := podOf(a, 0)
	s.put(a)
	s.put(pa)
	target, h := newTarget(t), s.handleOf(a, 1)
	until(t, target, []deploy.Handle{h}, "before", saying("Running"))
	target.drop(s.refOf(a, 1))
	s.drop(pa)
	s.drop(a)
	until(t, target, []deploy.Handle{h}, "after", saying("CANCELLED"))
}

// A token that ends is replaced by what the kubeconfig says then.
func TestTokenExpires(t *testing.T) {
	s := newAPIServer(t)
	a := jobNamed("a")
	s.put(a)
	s.put(podOf(a, 0))
	target, handles := newTarget(t), []deploy.Handle{s.handleOf(a, 1)}
	until(t, target, handles, "before", saying("Running"))
	s.accepts("second")
	s.cut()
	until(t, target, handles, "not accepted", func(_ []evidence.Observation, err error) bool {
		return errors.Is(err, deploy.ErrUnavailable) && strings.Contains(err.Error(), "log in again")
	})
	s.login("second")
	s.put(with(a, batchv1.JobComplete))
	s.put(endedPod(podOf(a, 0), 0))
	until(t, target, handles, "after", saying("Complete"))
}

// A server that is away is no state of a job for a while, and then an error.
func TestOutage(t *testing.T) {
	s := newAPIServer(t)
	a := jobNamed("a")
	s.put(a)
	s.put(podOf(a, 0))
	target, handles := newTarget(t), []deploy.Handle{s.handleOf(a, 1)}
	var later atomic.Int64
	target.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	until(t, target, handles, "before", saying("Running"))
	s.stop()
	until(t, target, handles, "noticed", func(seen []evidence.Observation, err error) bool {
		target.mu.Lock()
		w := target.watchers[s.refOf(a, 1).watchKey()]
		target.mu.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil || words(seen) != "Running" {
			t.Fatalf("at once: %+v, %v", seen, err)
		}
		return len(w.broken) == 2
	})
	later.Store(int64(outageAfter))
	_, err := target.Observe(t.Context(), handles)
	if !errors.Is(err, deploy.ErrUnavailable) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("after %s: %v", outageAfter, err)
	}
	s.start(s.addr)
	s.put(with(a, batchv1.JobComplete))
	s.put(endedPod(podOf(a, 0), 0))
	until(t, target, handles, "back", saying("Complete"))
}

// Nobody is asked while nothing happens, and nothing is left when the last job ended.
func TestWatchIsIdle(t *testing.T) {
	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) { watchIsIdle(t) })
}

func watchIsIdle(t *testing.T) {
	t.Helper()
	s := newAPIServer(t)
	a := jobNamed("a")
	pa := podOf(a, 0)
	s.put(a)
	s.put(pa)
	target, handles := newTarget(t), []deploy.Handle{s.handleOf(a, 1)}
	until(t, target, handles, "before", saying("Running"))
	for s.open() < 2 && t.Context().Err() == nil { // a list comes before its watch
		time.Sleep(time.Millisecond)
	}
	asked := s.asked("")
	for range 100 {
		if _, err := target.Observe(t.Context(), handles); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := target.Wait(ctx, handles); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("woken by nothing: %v", err)
	}
	if n := s.asked(""); n != asked {
		t.Errorf("%d requests although nothing happened: %q", n-asked, s.requests[asked:])
	}
	s.put(with(a, batchv1.JobComplete))
	s.put(endedPod(pa, 0))
	until(t, target, handles, "after", func(seen []evidence.Observation, err error) bool {
		return err == nil && seen[0].Phase == evidence.PhaseEnded && seen[0].Word == "Complete"
	})
	deadline := time.Now().Add(patience)
	for s.open() > 0 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if n := s.open(); n > 0 {
		t.Errorf("%d watches are still open", n)
	}
	s.served.CloseClientConnections()
	left := func() string { // of this test: what begins a goroutine gives it its label
		var all strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1) // a builder never fails
		for stack := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(stack, t.Name()) && strings.Contains(stack, "client-go/tools/cache") {
				return stack
			}
		}
		return ""
	}
	for left() != "" && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	if s := left(); s != "" {
		t.Errorf("goroutines are left:\n%s", s)
	}
}

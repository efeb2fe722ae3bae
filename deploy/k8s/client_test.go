package k8s

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay/deploy"
	"assay/pkg/evidence"
)

// kindOf is the kind of an error of the seam.
func kindOf(t *testing.T, err error) error {
	t.Helper()
	var is []error
	for _, kind := range []error{deploy.ErrRefused, deploy.ErrUnavailable, deploy.ErrAmbiguous} {
		if errors.Is(err, kind) {
			is = append(is, kind)
		}
	}
	if len(is) != 1 {
		t.Fatalf("%v is of the kinds %v", err, is)
	}
	return is[0]
}

func status(code int, reason metav1.StatusReason, message string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { sayNo(w, code, reason, message, nil) }
}

// TestClassify: what may have reached the server is never called refused, nor tried
// again here.
func TestClassify(t *testing.T) {
	const forbids = `jobs.batch is forbidden: User "ci" cannot create resource "jobs" in API group "batch" in the namespace "ns"`
	html := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>bad gateway</html>", code) }
	}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		made   error // of a creation
		want   string
	}{
		"401":      {status(401, metav1.StatusReasonUnauthorized, "Unauthorized"), deploy.ErrUnavailable, "log in again"},
		"403":      {status(403, metav1.StatusReasonForbidden, forbids), deploy.ErrRefused, forbids},
		"404":      {status(404, metav1.StatusReasonNotFound, `namespaces "ns" not found`), deploy.ErrRefused, `namespaces "ns" not found`},
		"409":      {status(409, metav1.StatusReasonAlreadyExists, `jobs.batch "x" already exists`), deploy.ErrRefused, "already exists"},
		"422":      {status(422, metav1.StatusReasonInvalid, "spec.completions: Invalid value"), deploy.ErrRefused, "Invalid value"},
		"500":      {status(500, metav1.StatusReasonInternalError, "etcdserver: request timed out"), deploy.ErrAmbiguous, "etcdserver"},
		"503":      {status(503, metav1.StatusReasonServiceUnavailable, "shutting down"), deploy.ErrUnavailable, "shutting down"},
		"504":      {status(504, metav1.StatusReasonTimeout, "Timeout: request did not complete"), deploy.ErrAmbiguous, "did not complete"},
		"502 page": {html(502), deploy.ErrAmbiguous, "create"},
		"429": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			status(429, metav1.StatusReasonTooManyRequests, "too many requests")(w, r)
		}, deploy.ErrUnavailable, "too many requests"},
		"reset":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, deploy.ErrAmbiguous, "create the Job x"},
		"half answer": {func(w http.ResponseWriter, r *http.Request) { cutAt(w, r, `{"kind":"Job"`, 8) }, deploy.ErrAmbiguous, "create the Job x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t)
			var asked atomic.Int32
			s.answers(func(w http.ResponseWriter, r *http.Request) bool {
				asked.Add(1)
				tt.answer(w, r)
				return true
			})
			c, err := newTarget(t).client(s.config, "")
			if err != nil {
				t.Fatal(err)
			}
			err = classify("create the Job x in namespace ns", c.create(t.Context(), apiBatch+"ns/jobs", &batchv1.Job{}, &batchv1.Job{}))
			if kind := kindOf(t, err); !errors.Is(kind, tt.made) || !strings.Contains(err.Error(), tt.want) || strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("%v\nwant %v with %q", err, tt.made, tt.want)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times to create", n)
			}
		})
	}
}

// A question has two answers: the server's, and that it could not be asked.
func TestUnasked(t *testing.T) {
	s := newAPIServer(t)
	c, err := newTarget(t).client(s.config, "")
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int32
	left.Store(2)
	s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		if left.Add(-1) < 0 {
			return false
		}
		w.Header().Set("Retry-After", "1")
		sayNo(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "slow down", nil)
		return true
	})
	var list batchv1.JobList
	if err := c.list(t.Context(), apiBatch+apiNamespace+"/jobs", "", "", &list); err != nil {
		t.Errorf("a list that was asked for too often at first: %v", err)
	}
	for _, code := range []int{403, 404, 500, 502, 504} {
		s.answers(func(w http.ResponseWriter, _ *http.Request) bool { sayNo(w, code, "", "words", nil); return true })
		err := unasked("list jobs", c.list(t.Context(), apiBatch+apiNamespace+"/jobs", "", "", &list))
		if kind := kindOf(t, err); !errors.Is(kind, deploy.ErrUnavailable) || !strings.Contains(err.Error(), "words") {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// What did not reach a server can be tried again, what may have cannot.
func TestNotSent(t *testing.T) {
	s := newAPIServer(t)
	s.answers(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	other := newAPIServer(t)
	plain, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second} // without TLS
	go func() { _ = served.Serve(plain) }()
	t.Cleanup(func() { _ = served.Close() })
	write := func(server string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		writeKubeconfig(t, path, server, nil, "first")
		return path
	}
	for name, tt := range map[string]struct {
		config string
		kind   error
	}{
		"refused":         {write("https://127.0.0.1:1"), deploy.ErrUnavailable},
		"no name":         {write("https://nowhere.invalid:6443"), deploy.ErrUnavailable},
		"not trusted":     {write("https://" + other.addr), deploy.ErrUnavailable},
		"no TLS":          {write("https://" + plain.Addr().String()), deploy.ErrUnavailable},
		"does not answer": {s.config, deploy.ErrAmbiguous},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := newTarget(t).client(tt.config, "")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err = classify("create the Job x", c.create(ctx, apiBatch+"ns/jobs", &batchv1.Job{}, nil))
			if kind := kindOf(t, err); !errors.Is(kind, tt.kind) {
				t.Errorf("%v\nwant %v", err, tt.kind)
			}
		})
	}
	c, err := newTarget(t).client(s.config, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := classify("create the Job x", c.create(ctx, apiBatch+"ns/jobs", &batchv1.Job{}, nil)); !errors.Is(err, context.Canceled) || errors.Is(err, deploy.ErrRefused) {
		t.Errorf("the end of the context: %v", err)
	}
}

// That somebody else says 404 is no word of the API server on a job.
func TestNotFoundByAProxy(t *testing.T) {
	s := newAPIServer(t)
	a := jobNamed("a")
	target, h := newTarget(t), s.handleOf(a, 1)
	var later atomic.Int64
	target.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	seen, err := target.Observe(t.Context(), []deploy.Handle{h})
	if err != nil || words(seen) != wordPending {
		t.Fatalf("%+v, %v", seen, err)
	}
	s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "404 page not found", 404)
		return true
	})
	later.Store(int64(unseenAfter))
	if seen, err := target.Observe(t.Context(), []deploy.Handle{h}); !errors.Is(err, deploy.ErrUnavailable) {
		t.Errorf("observed %+v, %v", seen, err)
	}
	if err := target.Cancel(t.Context(), h); !errors.Is(err, deploy.ErrUnavailable) {
		t.Errorf("cancelled: %v", err)
	}
	s.answers(nil)
	later.Add(int64(time.Minute / 10))
	until(t, target, []deploy.Handle{h}, "gone", func(seen []evidence.Observation, err error) bool {
		return err == nil && seen[0].Phase == evidence.PhaseGone
	})
	if n := s.asked("GET /apis/batch/v1/namespaces/ns/jobs/a"); n > 4 {
		t.Errorf("asked %d times", n)
	}
}

//go:build k8s

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"assay/pkg/verdict"
)

// A process that dies before it has created all objects of a job, or before it knows
// that one was created, leaves pods that wait. Who comes later completes what is there.
func TestK8sKilledAmongObjects(t *testing.T) {
	t.Parallel()
	for resource, arrives := range map[string]bool{"jobs": true, "configmaps": false, "secrets": true, "services": false} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			direct, at := s.env["KUBECONFIG"], make(chan bool, 9)
			s.behind(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
				if !creates(r, resource) {
					forward.ServeHTTP(w, r)
					return
				}
				if arrives {
					forward.ServeHTTP(httptest.NewRecorder(), r)
				}
				_, _ = io.Copy(io.Discard, r.Body) // only then does the end of the client show
				at <- true
				<-r.Context().Done() // it never gets an answer
			})
			s.extra["env_vars"] = map[string]any{"API_TOKEN": "hidden"}
			s.manifest(nil, 2, workload{name: "t", script: `[ "$API_TOKEN" = hidden ] || exit 3; ` + keepRes + figure})
			r := s.startRun()
			select {
			case <-at:
			case <-r.done:
				t.Fatalf("it ended before that: %s%s", &r.stdout, &r.stderr)
			}
			r.kill()
			s.env["KUBECONFIG"] = direct
			s.whole(s.assay("attach", "r", "--json").want(verdict.Pass).clean())
			s.once(1)
			s.gone()
		})
	}
}

// An API server that answers every seventh request with an error, or not at all, takes
// each job once and keeps nothing from its verdict.
func TestK8sHiccups(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	var asked atomic.Int64
	reset := func(w http.ResponseWriter) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close() // whatever it says
		}
	}
	s.behind(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		n := asked.Add(1)
		if n%7 != 0 || strings.Contains(r.URL.Path, "/version") { // a server that does not say its version takes no run
			forward.ServeHTTP(w, r)
			return
		}
		switch n / 7 % 5 {
		case 0:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		case 1:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case 2:
			http.Error(w, "something is wrong", http.StatusInternalServerError)
		case 3:
			reset(w)
		case 4:
			if r.Method == http.MethodPost || r.Method == http.MethodDelete { // done, and not said
				forward.ServeHTTP(httptest.NewRecorder(), r)
			}
			reset(w)
		}
	})
	var all []workload
	for i := range 6 {
		all = append(all, workload{name: fmt.Sprintf("job%d", i), script: keepRes + figure})
	}
	s.manifest(nil, 2, all...)
	res := s.runJSON().want(verdict.Pass).clean()
	s.whole(res)
	s.once(len(all))
	t.Logf("%d requests, %d notices:\n%s", asked.Load(), len(res.notices()), strings.Join(res.notices(), ""))
}

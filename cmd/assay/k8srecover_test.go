//go:build k8s

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"assay/deploy/k8s/k8stest"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// gated gives the pods a directory of this machine in which scripts wait for the
// test. It is not one in which runs are.
func (s *k8sSite) gated() {
	s.t.Helper()
	if err := os.MkdirAll(s.atGates(""), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.context["docker_mounts"] = map[string]any{"/gates": s.atGates("")}
}

func (s *k8sSite) atGates(name string) string { return filepath.Join(s.dir, "gates", name) }

// Scripts of ranks in a gated site.
const (
	arrive  = "touch /gates/$MAD_MODEL_NAME-$RANK; until [ -e /gates/go ]; do sleep 0.1; done; "
	figure  = "[ $RANK != 0 ] || echo performance: 7 tps"
	keepRes = `echo "of rank $RANK" >$ASSAY_RESULTS_DIR/left.txt; `
)

// awaitArrived waits until ranks of a job wait at the gate.
func (s *k8sSite) awaitArrived(job string, ranks int) {
	s.t.Helper()
	for n := range ranks {
		s.eventually(fmt.Sprintf("rank %d of %s to begin", n, job), func() bool { return exists(s.atGates(fmt.Sprintf("%s-%d", job, n))) })
	}
}

// letGo lets the ranks at the gate go on.
func (s *k8sSite) letGo() {
	s.t.Helper()
	if err := os.WriteFile(s.atGates("go"), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends an assay without warning.
func (r *running) kill() {
	r.t.Helper()
	_ = r.cmd.Process.Kill() // it may have ended by itself
	<-r.done
}

// interrupt sends an assay a signal.
func (r *running) interrupt(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// created counts the Jobs that assay ever asked for in the namespace of the site, and
// that were made.
func (s *k8sSite) created() int {
	s.t.Helper()
	n := 0
	for _, r := range s.AuditRequests("assay/", s.namespace) {
		if r.Verb == "create" && r.Resource == "jobs" && r.Code < 300 {
			n++
		}
	}
	return n
}

// once fails the test if more Jobs were made than there are jobs. Of a client that is
// killed while it asks, the server may not write down that it did what was asked.
func (s *k8sSite) once(jobs int) {
	s.t.Helper()
	if n := s.created(); n > jobs {
		s.t.Errorf("%d Jobs were created, want %d", n, jobs)
	}
}

// whole fails the test unless every rank of the first job has ended, and its log and
// results are here.
func (s *k8sSite) whole(r judged) {
	s.t.Helper()
	for _, rank := range r.Jobs[0].Ranks {
		dir := rundir.RankDir(s.attempt(r.Jobs[0].ID, 1), rank.Rank)
		left, err := os.ReadFile(filepath.Join(dir, rundir.ResultsDir, "left.txt"))
		if want := fmt.Sprintf("of rank %d\n", rank.Rank); err != nil || string(left) != want || rank.State != evidence.RankEnded {
			s.t.Errorf("rank %d is %s and left %q: %v", rank.Rank, rank.State, left, err)
		}
		if !exists(filepath.Join(dir, rundir.StdoutFile)) {
			s.t.Errorf("the log of rank %d is not here", rank.Rank)
		}
	}
}

// gone waits until nothing of assay's is left in the namespace of the site.
func (s *k8sSite) gone() {
	s.t.Helper()
	s.eventually("all objects to go", func() bool {
		return s.kubectl("get", "jobs,pods,services,configmaps,secrets", "--selector", "app.kubernetes.io/managed-by=assay", "--output", "name") == ""
	})
}

// jobObject is the name of the one Job in the namespace of the site, "" when there
// is none yet.
func (s *k8sSite) jobObject() string {
	s.t.Helper()
	return s.kubectl("get", "jobs", "--output", "jsonpath={.items[*].metadata.name}")
}

func TestK8sKilledWhileRanksRun(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"attach", "collect"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			s.gated()
			s.manifest(nil, 2, workload{name: "t", script: arrive + keepRes + figure})
			r := s.startRun()
			s.awaitArrived("t", 2)
			r.kill()
			if r := s.assay("status", "r").exits(exitcode.Pending); !strings.Contains(r.stdout+r.stderr, "assay attach r") {
				t.Errorf("status does not say how to go on:\n%s%s", r.stdout, r.stderr)
			}
			if how == "collect" {
				s.assay("collect", "r").exits(exitcode.Pending)
				s.letGo()
				s.kubectl("wait", "--for=condition=Complete", "job", "--all", "--timeout=90s")
				first := s.assay("collect", "r", "--json").want(verdict.Pass).clean()
				s.whole(first)
				if again := s.assay("collect", "r", "--json"); again.stdout != first.stdout {
					t.Errorf("collected again it is\n%s\nnot\n%s", again.stdout, first.stdout)
				}
			} else {
				attach := s.start("attach", "r", "--json")
				s.letGo()
				s.whole(attach.wait().want(verdict.Pass).clean())
			}
			s.assay("status", "r").exits(exitcode.Pass)
			s.once(1)
			s.gone()
		})
	}
}

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

// Wherever a process dies, the next one finds one job, and its verdict.
func TestK8sKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			s.manifest(nil, 2, workload{name: "t", script: keepRes + figure})
			r := s.startRun()
			s.eventually("the run to be there", func() bool { return exists(filepath.Join(s.dir, "runs", "r", rundir.LedgerFile)) })
			// From the submission to the end of a run it takes a few seconds.
			pause := time.Duration(rand.IntN(300)) * time.Millisecond
			if n >= 7 {
				pause = time.Duration(rand.IntN(5000)) * time.Millisecond
			}
			time.Sleep(pause)
			r.kill()
			made := s.created()
			res := s.assay("attach", "r", "--json").want(verdict.Pass).clean()
			s.whole(res)
			s.once(1)
			s.gone()
			t.Logf("killed %s after the run directory was there, with %d jobs created", pause, made)
		})
	}
}

func TestK8sKilledAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.gated()
	s.manifest(nil, 2, workload{name: "t", script: arrive + keepRes + figure})
	r := s.startRun()
	s.awaitArrived("t", 2)
	if err := r.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // so that it sees nothing of the end
		t.Fatal(err)
	}
	s.letGo()
	s.kubectl("wait", "--for=condition=Complete", "job", "--all", "--timeout=90s")
	r.kill()
	s.whole(s.assay("attach", "r", "--json").want(verdict.Pass).clean())
	s.once(1)
	s.gone()
}

func TestK8sCancel(t *testing.T) {
	t.Parallel()
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.manifest(nil, 2, workload{name: "t", script: arrive})
		r := s.startRun()
		s.awaitArrived("t", 2)
		r.interrupt(syscall.SIGINT)
		r.wait().exits(exitcode.Interrupted).reason("CANCELLED", "SIGINT")
		s.gone()
		again := s.assay("collect", "r", "--json").want(verdict.Error)
		again.reason("CANCELLED", "SIGINT")
	})
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(map[string]any{"node_selector": map[string]any{"assay/nowhere": "yes"}}, 2, workload{name: "t", script: figure})
		r := s.startRun()
		s.eventually("the job to wait", func() bool { return s.jobObject() != "" })
		r.interrupt(syscall.SIGTERM)
		r.wait().exits(exitcode.Terminated).reason("CANCELLED", "SIGTERM")
		s.gone()
	})
	t.Run("by another process, twice", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.manifest(nil, 2, workload{name: "t", script: arrive})
		r := s.startRun()
		s.awaitArrived("t", 2)
		s.assay("cancel", "r").exits(exitcode.Pass)
		s.assay("cancel", "r").exits(exitcode.Pass)
		r.wait().want(verdict.Error).reason("CANCELLED")
		s.assay("cancel", "r").exits(exitcode.Pass)
		s.gone()
	})
	t.Run("after the figure", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.manifest(nil, 2, workload{name: "t", script: figure + "; " + arrive})
		r := s.startRun()
		s.awaitArrived("t", 2)
		r.interrupt(syscall.SIGINT)
		r.wait().exits(exitcode.Interrupted)
		// What was measured is measured, and everything else is a warning.
		res := s.assay("collect", "r", "--json").want(verdict.Pass)
		res.warning("CANCELLED")
		s.gone()
	})
	t.Run("after the end", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(nil, 2, workload{name: "t", script: figure})
		first := s.runJSON().want(verdict.Pass).clean()
		s.assay("cancel", "r").exits(exitcode.Pass)
		if again := s.assay("collect", "r", "--json"); again.stdout != first.stdout {
			t.Errorf("after the cancel it is\n%s\nnot\n%s", again.stdout, first.stdout)
		}
	})
}

// A job whose run directory is gone is found by gc and ended.
func TestK8sLostRunDirectory(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.env["KUBECONFIG"] = s.configIn(s.namespace)
	s.gated()
	s.manifest(nil, 2, workload{name: "t", script: arrive})
	r := s.startRun()
	s.awaitArrived("t", 2)
	r.kill()
	if err := os.RemoveAll(filepath.Join(s.dir, "runs")); err != nil {
		t.Fatal(err)
	}
	if r := s.assay("gc"); !strings.Contains(r.stdout, s.jobObject()) {
		t.Errorf("gc does not name the job: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if s.jobObject() == "" {
		t.Error("gc ended a job that it was not told to end")
	}
	s.assay("gc", "--cancel").exits(exitcode.Pass)
	s.gone()
}

// configIn writes an administrator's kubeconfig whose context has a namespace.
func (s *k8sSite) configIn(namespace string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "kubeconfig")
	data, err := os.ReadFile(s.Kubeconfig)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(s.Dir, "bin", "kubectl"), "--kubeconfig", path, "config", "set-context", "--current", "--namespace", namespace)
	cmd.Env = []string{k8stest.EnvConfig + "=" + path}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return path
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

//go:build k8s

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

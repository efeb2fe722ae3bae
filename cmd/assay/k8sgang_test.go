//go:build k8s

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/pkg/exitcode"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// meet is a script whose ranks find rank 0 by the name that they are given.
const meet = `if [ $RANK = 0 ]; then
  for n in $(seq $((WORLD_SIZE - 1))); do nc -l -p $MASTER_PORT -e bash -c 'read word && echo "got $word" >&2'; done
else
  for i in $(seq 100); do echo $RANK | nc -w 5 $MASTER_ADDR $MASTER_PORT && break; sleep 0.2; done
fi; `

func TestK8sJobSet(t *testing.T) {
	t.Parallel()
	open := newK8sSite(t)
	open.JobSet()
	jobset := map[string]any{"jobset": true}
	t.Run("pass", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(jobset, 2, workload{name: "t", script: meet + keepRes + figure})
		r := s.runJSON().want(verdict.Pass).clean().state("Complete")
		s.whole(r)
		if got := s.read("runs/r/jobs/t/1/ranks/0/stderr"); !strings.Contains(got, "got 1") {
			t.Errorf("rank 1 did not reach rank 0 by its name: %q", got)
		}
		if left := s.kubectl("get", "jobsets,jobs,pods", "--output", "name"); left != "" {
			s.eventually("all to go", func() bool { return s.kubectl("get", "jobsets,jobs,pods,secrets,services", "--output", "name") == "" })
		}
	})
	t.Run("fail", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(jobset, 2, workload{name: "t", script: "[ $RANK = 0 ] || exit 3"})
		r := s.runJSON().want(verdict.Fail)
		r.reason("RANK_EXIT", "rank 1", "exited 3")
	})
	t.Run("killed, then attached", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.manifest(jobset, 2, workload{name: "t", script: arrive + keepRes + figure})
		r := s.startRun()
		s.awaitArrived("t", 2)
		r.kill()
		attach := s.start("attach", "r", "--json")
		s.letGo()
		s.whole(attach.wait().want(verdict.Pass).clean())
	})
}

// A cluster without JobSets says so before anything is submitted. The resource is
// hidden, because the cluster of the tests has it.
func TestK8sNoJobSets(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.behind(withoutJobSets)
	s.manifest(map[string]any{"jobset": true}, 2, workload{name: "t", script: figure})
	r := s.runJSON().exits(exitcode.Invalid)
	if !strings.Contains(r.stderr, "the cluster has no JobSet") || exists(filepath.Join(s.dir, "runs", "r", rundir.LedgerFile)) {
		t.Errorf("it does not say that the cluster has no JobSets:\n%s", r.stderr)
	}
	t.Log(r.stderr)
}

// A Job in a queue is suspended until something lets it start, which the test does in
// place of Kueue.
func TestK8sQueue(t *testing.T) {
	t.Parallel()
	queue := map[string]any{"queue": "team"}
	suspend := func(s *k8sSite, is bool) {
		s.kubectl("patch", "job", s.jobObject(), "--type", "merge", "--patch", fmt.Sprintf(`{"spec":{"suspend":%v}}`, is))
	}
	waits := func(s *k8sSite) {
		s.eventually("the job to be suspended", func() bool {
			r := s.assay("status", "r", "--json") // there may be no run yet
			return r.code == int(exitcode.Pending) && r.Jobs[0].Scheduler != nil && r.Jobs[0].Scheduler.State == "Suspended"
		})
	}
	t.Run("admitted, evicted, admitted", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.behind(withKueue)
		s.manifest(queue, 2, workload{name: "t", script: arrive + keepRes + figure})
		r := s.startRun()
		waits(s)
		if got := s.kubectl("get", "jobs", "--output", `jsonpath={.items[*].metadata.labels.kueue\.x-k8s\.io/queue-name}`); got != "team" {
			t.Errorf("the label of the queue is %q", got)
		}
		suspend(s, false)
		s.awaitArrived("t", 2)
		suspend(s, true)
		s.eventually("the pods to go", func() bool { return len(s.pods("")) == 0 })
		for n := range 2 {
			if err := os.Remove(s.atGates(fmt.Sprintf("t-%d", n))); err != nil {
				t.Fatal(err)
			}
		}
		waits(s)
		suspend(s, false)
		s.awaitArrived("t", 2)
		s.letGo()
		res := r.wait().want(verdict.Pass).state("Complete")
		s.whole(res)
		for _, w := range res.Jobs[0].Warnings {
			t.Logf("%s %s: %s", w.Code, w.Subject, w.Message)
			if strings.Contains(w.Message, "by somebody") {
				t.Errorf("an eviction is taken for a deletion: %s", w.Message)
			}
		}
	})
	t.Run("never admitted", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.behind(withKueue)
		s.manifest(map[string]any{"queue": "team", "max_pending": 3}, 2, workload{name: "t", script: figure})
		begun := time.Now()
		s.runJSON().want(verdict.Error).reason("LAUNCH_PENDING", "max_pending", "Suspended")
		t.Logf("given up after %s", time.Since(begun).Round(time.Millisecond))
		s.gone()
	})
}

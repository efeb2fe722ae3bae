//go:build k8s

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/deploy/k8s/k8stest"
	"assay/pkg/verdict"
)

// The tests of this file stop daemons that all tests use, so none of them is parallel:
// the parallel ones of the package wait until these are over.

// Ranks of a gated site that can be let go one by one, and say when they are done.
const stepwise = `touch /gates/$MAD_MODEL_NAME-$RANK; until [ -e /gates/go -o -e /gates/go-$RANK ]; do sleep 0.1; done; ` +
	`echo "log of $RANK"; ` + keepRes + figure + `; touch /gates/end-$MAD_MODEL_NAME-$RANK`

// letGoRank lets one rank go on, and waits until its script has ended.
func (s *k8sSite) letGoRank(n int) {
	s.t.Helper()
	if err := os.WriteFile(s.atGates("go-"+strconv.Itoa(n)), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.eventually(fmt.Sprintf("rank %d to end", n), func() bool { return exists(s.atGates(fmt.Sprintf("end-t-%d", n))) })
}

// logged fails the test unless the log of each rank is here.
func (s *k8sSite) logged(r judged) {
	s.t.Helper()
	for n := range r.Jobs[0].Ranks {
		if got := s.read(fmt.Sprintf("runs/r/jobs/t/1/ranks/%d/stdout", n)); !strings.HasPrefix(got, fmt.Sprintf("log of %d\n", n)) {
			s.t.Errorf("the log of rank %d is %q", n, got)
		}
	}
}

// notices are the lines of stderr that say that something could not be done.
func (r judged) notices() (lines []string) {
	for line := range strings.Lines(r.stderr) {
		if strings.Contains(line, "could not") || strings.Contains(line, "cannot") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Containers go on without their kubelet, and end: it says so when it is back.
func TestK8sFaultKubelet(t *testing.T) {
	s := newK8sSite(t)
	s.gated()
	s.manifest(nil, 2, workload{name: "t", script: stepwise})
	r := s.startRun()
	s.awaitArrived("t", 2)
	s.KillDaemon(k8stest.Kubelet)
	s.letGoRank(0)
	s.StartDaemon(k8stest.Kubelet)
	s.letGoRank(1)
	res := r.wait().want(verdict.Pass).clean().attempts(1).state("Complete")
	s.whole(res)
	s.logged(res)
}

// apiServerBack starts the API server. What else the cluster is made of would try it
// again only after pauses that grow, so it is started anew.
func (s *k8sSite) apiServerBack() {
	s.t.Helper()
	s.StartDaemon(k8stest.APIServer)
	for _, name := range []string{k8stest.ControllerManager, k8stest.Scheduler, k8stest.Kubelet} {
		s.KillDaemon(name)
		s.StartDaemon(name)
	}
}

// awayFor is longer than a server may be away before a person is told.
const awayFor = 12 * time.Second

func TestK8sFaultAPIServer(t *testing.T) {
	for name, ends := range map[string]bool{"while ranks run": false, "while ranks end": true} {
		t.Run(name, func(t *testing.T) {
			s := newK8sSite(t)
			s.gated()
			s.manifest(nil, 2, workload{name: "t", script: stepwise})
			r := s.startRun()
			s.awaitArrived("t", 2)
			s.KillDaemon(k8stest.APIServer)
			if ends {
				s.letGoRank(0)
				s.letGoRank(1)
			}
			time.Sleep(awayFor)
			s.apiServerBack()
			if !ends {
				s.letGoRank(0)
				s.letGoRank(1)
			}
			res := r.wait().want(verdict.Pass).clean().attempts(1).state("Complete")
			s.whole(res)
			s.logged(res)
			if n := res.notices(); len(n) == 0 || len(n) > 8 || !strings.Contains(n[0], "API server") {
				t.Errorf("%d notices:\n%s", len(n), strings.Join(n, ""))
			} else {
				t.Logf("%d notices, the first: %s", len(n), n[0])
			}
			s.once(1)
			s.gone()
		})
	}
}

// A server that dies while jobs are submitted takes each of them once.
func TestK8sFaultSubmission(t *testing.T) {
	const jobs = 12
	s := newK8sSite(t)
	var all []workload
	for i := range jobs {
		all = append(all, workload{name: fmt.Sprintf("job%02d", i), script: figure})
	}
	s.manifest(nil, 1, all...)
	pid, err := strconv.Atoi(strings.TrimSpace(s.Ctl("pid", k8stest.APIServer)))
	if err != nil {
		t.Fatal(err)
	}
	r := s.startRun()
	s.eventually("the first job to be submitted", func() bool {
		data, _ := os.ReadFile(s.attempt("job00", 1) + "/launch.json") // not there yet
		return strings.Contains(string(data), `"submitted"`)
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.KillDaemon(k8stest.APIServer)
	time.Sleep(3 * time.Second)
	s.apiServerBack()
	res := r.wait().want(verdict.Pass).clean()
	if len(res.Jobs) != jobs {
		t.Errorf("%d jobs, want %d", len(res.Jobs), jobs)
	}
	s.once(jobs)
	s.gone()
	t.Logf("%d notices:\n%s", len(res.notices()), strings.Join(res.notices(), ""))
	if n := len(res.notices()); n == 0 || n > 12 {
		t.Errorf("%d notices", n)
	}
}

// Without the controllers nothing becomes of a Job, and with the scheduler alone
// missing, nothing of its pods: both are waited for.
func TestK8sFaultControllers(t *testing.T) {
	t.Run("before pods are there", func(t *testing.T) {
		s := newK8sSite(t)
		s.manifest(nil, 2, workload{name: "t", script: keepRes + figure})
		s.KillDaemon(k8stest.ControllerManager)
		s.KillDaemon(k8stest.Scheduler)
		r := s.startRun()
		s.eventually("the Job to be there", func() bool { return s.jobObject() != "" })
		time.Sleep(5 * time.Second)
		s.StartDaemon(k8stest.ControllerManager)
		s.eventually("its pods to be there", func() bool { return len(s.pods("")) == 2 })
		time.Sleep(5 * time.Second)
		s.StartDaemon(k8stest.Scheduler)
		s.whole(r.wait().want(verdict.Pass).clean())
		s.gone()
	})
	t.Run("while ranks end", func(t *testing.T) {
		s := newK8sSite(t)
		s.gated()
		s.manifest(nil, 2, workload{name: "t", script: stepwise})
		r := s.startRun()
		s.awaitArrived("t", 2)
		s.KillDaemon(k8stest.ControllerManager)
		s.letGoRank(0)
		s.letGoRank(1)
		time.Sleep(10 * time.Second)
		s.StartDaemon(k8stest.ControllerManager)
		s.whole(r.wait().want(verdict.Pass).clean().state("Complete"))
		s.gone()
	})
}

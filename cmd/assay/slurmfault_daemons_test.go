//go:build slurm

package main

import (
	"strings"
	"testing"
	"time"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// outage is how long the controller is away. Its clients give up after 9 to 18 s.
const outage = 20 * time.Second

// controllerAway stops the controller under jobs at different moments, all in one
// outage: while one runs, while one ends, when one is to be submitted, and when the
// process that watched one is gone.
func controllerAway(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"NODES": "2"})
	runs, ends, fails, late, killed, unsure := on(t, c), on(t, c), on(t, c), on(t, c), on(t, c), on(t, c)

	running, ending, back := runs.gate("go"), ends.gate("end"), killed.gate("end")
	runs.manifest(nil, workload{name: "t", script: until(running) + measure})
	ends.manifest(nil, workload{name: "t", script: until(ending) + measure})
	fails.manifest(nil, workload{name: "t", script: until(ending) + rankOne3})
	late.manifest(nil, workload{name: "t", script: measure})
	unsure.manifest(nil, workload{name: "t", script: measure})
	killed.manifest(nil, workload{name: "t", script: until(back) + measure})

	a, b, f, k := runs.startRun(), ends.startRun(), fails.startRun(), killed.startRun()
	for _, s := range []*site{runs, ends, fails, killed} {
		s.begun("t", 1, 0, 1)
	}
	c.StopDaemon(slurmtest.Slurmctld)
	began := time.Now()
	l, u := late.startRun(), unsure.startRun()
	ends.open(ending)

	kill(t, []int{k.cmd.Process.Pid})
	<-k.done
	killed.open(back)
	attached := killed.start("attach", "r", "--json")

	unsure.eventually("the intent to submit", func() bool {
		rec, err := rundir.ReadLaunch(unsure.attempt("t", 1))
		return err == nil && rec.State == evidence.LaunchIntent
	})
	kill(t, []int{u.cmd.Process.Pid})
	<-u.done
	resumed := unsure.start("attach", "r", "--json")

	time.Sleep(outage - time.Since(began)) // the length of the outage is the scenario
	c.StartDaemon(slurmtest.Slurmctld)
	runs.open(running)

	together(t,
		scenario{"while a job runs", func(*testing.T) { a.wait().want(verdict.Pass).clean() }},
		scenario{"while a job ends", func(t *testing.T) {
			b.wait().want(verdict.Pass).clean()
			r := f.wait().want(verdict.Fail).reason("RANK_EXIT", "rank 1", "exited 3")
			blames(r, "rank 1 (node2)")
		}},
		scenario{"at submission", func(t *testing.T) {
			r := l.wait().want(verdict.Pass).clean()
			if !strings.Contains(r.stderr, "could not be submitted yet") {
				t.Errorf("nothing was said about the submission:\n%s", r.stderr)
			}
			submittedOnce(t, c, late)
		}},
		scenario{"and the watching process killed", func(*testing.T) { attached.wait().want(verdict.Pass).clean() }},
		scenario{"and the submitting process killed", func(t *testing.T) {
			resumed.wait().want(verdict.Pass).clean()
			submittedOnce(t, c, unsure)
		}},
	)
}

// submittedOnce fails the test unless the accounting knows one job of a site.
func submittedOnce(t *testing.T, c *slurmtest.Cluster, s *site) {
	t.Helper()
	launch, err := rundir.ReadLaunch(s.attempt("t", 1))
	if err != nil || launch.Handle == nil {
		t.Fatalf("no handle: %v", err)
	}
	name := c.Run("squeue", "--noheader", "--states=all", "--jobs="+launch.Handle.ID, "--Format=Name:160")
	jobs := 0
	for line := range strings.Lines(c.Run("squeue", "--noheader", "--states=all", "--Format=Name:160")) {
		if strings.TrimSpace(line) == strings.TrimSpace(name) {
			jobs++
		}
	}
	if jobs != 1 {
		t.Errorf("%d jobs are named %s, want 1", jobs, name)
	}
}

// accountingAway stops the accounting daemon under jobs: what the controller and
// the ranks say has to be enough, and is named.
func accountingAway(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"NODES": "2"})
	passes, fails, late, stopped := on(t, c), on(t, c), on(t, c), on(t, c)
	gate := passes.gate("go")
	passes.manifest(nil, workload{name: "t", script: until(gate) + measure})
	fails.manifest(nil, workload{name: "t", script: until(gate) + rankOne3})
	stopped.manifest(nil, workload{name: "t", script: "sleep 120"})
	late.manifest(nil, workload{name: "t", script: rankOne3})
	p, f, x := passes.startRun(), fails.startRun(), stopped.startRun()
	for _, s := range []*site{passes, fails} {
		s.begun("t", 1, 0, 1)
	}
	id := stopped.begun("t", 1, 0, 1)
	c.StopDaemon(slurmtest.Slurmdbd)
	l := late.startRun()
	passes.open(gate)
	c.Run("scancel", id)

	p.wait().want(verdict.Pass).clean().source("squeue").state("COMPLETED")
	for _, run := range []*running{f, l} {
		r := run.wait().want(verdict.Fail).source("squeue").state("FAILED").
			reason("RANK_EXIT", "rank 1 (node2)", "exited 3").
			reason("SCHED_STATE", "squeue", "FAILED")
		blames(r, "rank 1 (node2)")
	}
	x.wait().want(verdict.Error).source("squeue").state("CANCELLED").
		reason("CANCELLED", "somebody outside this run").
		reason("RANK_SIGNAL", "rank 1 (node2)", "SIGTERM")
}

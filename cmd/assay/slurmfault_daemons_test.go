//go:build slurm

package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// outage is how long the controller is away. Its clients give up after 9 to 18 s.
const outage = 20 * time.Second

// controllerAway stops the controller under jobs at different moments, all in one
// outage: while one runs, while one ends, when one is submitted, and when the
// process that watched or submitted one is gone.
func controllerAway(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"NODES": "2"})
	runs, ends, fails, watched := on(t, c), on(t, c), on(t, c), on(t, c)
	submits, unsure, early := on(t, c), on(t, c), on(t, c)
	running, ending, down := runs.gate("back"), ends.gate("end"), submits.gate("down")
	runs.manifest(nil, workload{name: "t", script: until(running) + measure})
	for _, s := range []*site{ends, watched} {
		s.manifest(nil, workload{name: "t", script: until(ending) + measure})
	}
	fails.manifest(nil, workload{name: "t", script: until(ending) + rankOne3})
	early.manifest(nil, workload{name: "t", script: measure})
	for _, s := range []*site{submits, unsure} {
		s.manifest(nil, workload{name: "t", script: measure})
		s.env["PATH"] = pathWith(t, "sbatch", `case "$*" in *--test-only*) ;; *) `+until(down)+`;; esac
			exec `+lookPath(t, "sbatch")+` "$@"`)
	}

	during, atEnd, failing, killed := runs.startRun(), ends.startRun(), fails.startRun(), watched.startRun()
	for _, s := range []*site{runs, ends, fails, watched} {
		s.begun("t", 1, 0, 1)
	}
	atSubmission, left := submits.startRun(), unsure.startRun()
	for _, s := range []*site{submits, unsure} {
		s.eventually("the intent to submit", func() bool {
			rec, err := rundir.ReadLaunch(s.attempt("t", 1))
			return err == nil && rec.State == evidence.LaunchIntent
		})
	}
	c.StopDaemon(slurmtest.Slurmctld)
	began := time.Now()
	ends.open(ending)
	submits.open(down)
	end(killed, left)
	attached, resumed := watched.start("attach", "r", "--json"), unsure.start("attach", "r", "--json")
	refused := early.startRun()
	time.Sleep(outage - time.Since(began)) // the length of the outage is the scenario
	c.StartDaemon(slurmtest.Slurmctld)
	runs.open(running)

	together(t,
		scenario{"before a run", func(t *testing.T) {
			r := refused.to(t).wait().exits(exitcode.Error)
			if !strings.Contains(r.stderr, "Slurmctld(primary)") || exists(early.attempt("t", 1)) {
				t.Errorf("it does not say what is away, or made a run all the same:\n%s", r.stderr)
			}
		}},
		scenario{"while a job runs", func(t *testing.T) { during.to(t).wait().want(verdict.Pass).clean() }},
		scenario{"while a job ends", func(t *testing.T) {
			atEnd.to(t).wait().want(verdict.Pass).clean()
			r := failing.to(t).wait().want(verdict.Fail).reason("RANK_EXIT", "rank 1 (node2)", "exited 3")
			blames(r, "rank 1 (node2)")
		}},
		scenario{"at submission", func(t *testing.T) {
			r := atSubmission.to(t).wait().want(verdict.Pass).clean()
			if !strings.Contains(r.stderr, "could not be submitted yet") {
				t.Errorf("nothing was said about the submission:\n%s", r.stderr)
			}
			submittedOnce(t, c, submits)
		}},
		scenario{"and the watching process killed", func(t *testing.T) { attached.to(t).wait().want(verdict.Pass).clean() }},
		scenario{"and the submitting process killed", func(t *testing.T) {
			resumed.to(t).wait().want(verdict.Pass).clean()
			submittedOnce(t, c, unsure)
		}},
	)
}

// end kills assays without warning.
func end(all ...*running) {
	for _, r := range all {
		kill(r.t, []int{r.cmd.Process.Pid})
		<-r.done
	}
}

// lookPath is the path of a command of the cluster.
func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
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

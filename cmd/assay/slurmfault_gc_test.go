//go:build slurm

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// orphaned is what gc says of a run that nobody drives.
type orphaned struct {
	RunID   string   `json:"run_id"`
	Dir     string   `json:"dir"`
	Pending int      `json:"jobs_pending"`
	Told    int      `json:"jobs_told_to_stop"`
	Lost    bool     `json:"run_directory_lost"`
	Over    bool     `json:"run_over"`
	JobIDs  []string `json:"job_ids"`
}

// gc runs assay gc and returns what it found, by run directory.
func (s *site) gc(flags ...string) map[string]orphaned {
	s.t.Helper()
	r := s.assay(append([]string{"gc", "--json"}, flags...)...)
	if r.code != 0 {
		s.t.Fatalf("gc: exit code %d\n%s", r.code, r.stderr)
	}
	var list []orphaned
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		s.t.Fatalf("%v\n%s", err, r.stdout)
	}
	found := map[string]orphaned{}
	for _, o := range list {
		found[o.Dir] = o
	}
	return found
}

// leftovers finds the jobs of runs whose process was killed, wherever their
// directory is or was, and ends them when it is told to. Jobs of a run that is
// driven, and of others, are left alone.
func leftovers(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"NODES": "2", "ACCOUNTING": "none"})
	dead, lost, live, elsewhere := on(t, c), on(t, c), on(t, c), on(t, c)
	gate := live.gate("go")
	ids := map[*site]string{}
	for _, s := range []*site{dead, lost, live} {
		s.manifest(nil, workload{name: "t", script: "echo up; " + until(gate) + measure})
	}
	// up waits until the workloads run: a rank whose directory goes before that fails.
	up := func(s *site) {
		for n := range 2 {
			path := filepath.Join(rundir.RankDir(s.attempt("t", 1), n), rundir.StdoutFile)
			s.eventually("the workload of a rank, "+path, func() bool {
				out, err := os.ReadFile(path)
				return err == nil && bytes.Contains(out, []byte("up\n"))
			})
		}
	}
	watched := live.startRun()
	ids[live] = live.begun("t", 1, 0, 1)
	for _, s := range []*site{dead, lost} {
		run := s.startRun()
		ids[s] = s.begun("t", 1, 0, 1)
		up(s)
		end(run)
	}
	if err := os.RemoveAll(filepath.Join(lost.dir, "runs")); err != nil {
		t.Fatal(err)
	}
	other := c.Sbatch("#!/bin/bash\nsleep 120\n", "--job-name=assay-notes", "--output=/dev/null")
	dirOf := func(s *site) string { return filepath.Join(s.dir, "runs", "r") }
	want := func(found map[string]orphaned, told int) {
		t.Helper()
		if len(found) != 2 {
			t.Errorf("found %d runs, want 2: %+v", len(found), found)
		}
		if o := found[dirOf(dead)]; o.RunID != "r" || o.Pending != 1 || o.Lost || o.Told != told {
			t.Errorf("the dead run: %+v, want %d told to stop", o, told)
		}
		if o := found[dirOf(lost)]; !o.Lost || o.Told != told || len(o.JobIDs) != 1 || o.JobIDs[0] != ids[lost] {
			t.Errorf("the lost run: %+v, want job %s, %d told to stop", o, ids[lost], told)
		}
	}
	want(dead.gc(), 0)
	want(elsewhere.gc(), 0)
	for s, id := range ids {
		if got := c.JobState(id); got != "RUNNING" {
			t.Errorf("gc ended job %s of %s: %s", id, s.dir, got)
		}
	}
	want(elsewhere.gc("--cancel"), 1)
	for _, s := range []*site{dead, lost} {
		s.eventually("the end of job "+ids[s], func() bool { return c.JobState(ids[s]) == "CANCELLED" })
	}
	if got := c.JobState(other); got != "RUNNING" {
		t.Errorf("gc ended somebody's job: %s", got)
	}
	c.Run("scancel", other)
	dead.assay("collect", "r", "--json").want(verdict.Error).
		reason("CANCELLED", "assay gc")
	live.open(gate)
	watched.wait().want(verdict.Pass).clean()
	late(t, c, live)
}

// late has a job of a run appear after the run has its verdicts, as a submission
// without an answer may.
func late(t *testing.T, c *slurmtest.Cluster, s *site) {
	dir := filepath.Join(s.dir, "runs", "r")
	r, err := rundir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	id := c.Sbatch("#!/bin/bash\nsleep 120\n", "--output=/dev/null", "--job-name=assay-"+r.Ledger.Nonce[:12]+"-t-1",
		"--comment=assay run=r nonce="+r.Ledger.Nonce+" job=t attempt=1 host="+host+" dir="+filepath.Join(dir, "jobs", "t", "1"))
	if o := s.gc()[dir]; !o.Over || o.Pending != 0 || o.Told != 0 || len(o.JobIDs) != 1 || o.JobIDs[0] != id {
		t.Errorf("gc says %+v of job %s", o, id)
	}
	if o := s.gc("--cancel")[dir]; !o.Over || o.Told != 1 {
		t.Errorf("gc --cancel says %+v", o)
	}
	s.eventually("the end of job "+id, func() bool { return c.JobState(id) == "CANCELLED" })
}

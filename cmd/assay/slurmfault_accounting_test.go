//go:build slurm

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// unaccounted runs what can happen to a job on a cluster that keeps no accounting.
func unaccounted(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"NODES": "2", "ACCOUNTING": "none"})
	together(t,
		scenario{"pass", func(t *testing.T) {
			s := on(t, c)
			s.manifest(nil, workload{name: "t", script: measure})
			s.runJSON().want(verdict.Pass).clean().source("squeue").state("COMPLETED")
		}},
		scenario{"fail", func(t *testing.T) {
			s := on(t, c)
			s.manifest(nil, workload{name: "t", script: rankOne3})
			r := s.runJSON().want(verdict.Fail).source("squeue").
				reason("RANK_EXIT", "rank 1 (node2)", "exited 3").
				reason("SCHED_STATE", "squeue", "FAILED", "exit code 3")
			blames(r, "rank 1 (node2)")
		}},
		scenario{"time limit", func(t *testing.T) {
			s := on(t, c)
			s.manifest(nil, workload{name: "t", script: "sleep 120"})
			run := s.startRun()
			s.tool("scontrol", "update", "JobId="+s.begun("t", 1, 0, 1), "EndTime=now")
			run.wait().want(verdict.Fail).source("squeue").state("TIMEOUT").
				reason("SCHED_STATE", "squeue", "TIMEOUT").
				reason("RANK_SIGNAL", "rank 0 (node1)", "SIGTERM").
				reason("RANK_SIGNAL", "rank 1 (node2)", "SIGTERM")
		}},
		scenario{"started again", func(t *testing.T) {
			s := on(t, c)
			s.manifest(nil, workload{name: "t", script: once(s) + measure})
			run := s.startRun()
			id := s.begun("t", 1, 0, 1)
			s.tool("scontrol", "requeue", id)
			end(run)
			startNow(s, c, id)
			s.assay("attach", "r", "--json").want(verdict.Pass).source("squeue").attempts(2).
				warning("RESTARTED", "started the job again", "not known")
		}},
		scenario{"cancelled by somebody", func(t *testing.T) {
			s := on(t, c)
			s.manifest(nil, workload{name: "t", script: "sleep 120"})
			run := s.startRun()
			s.tool("scancel", s.begun("t", 1, 0, 1))
			run.wait().want(verdict.Error).source("squeue").state("CANCELLED").
				reason("CANCELLED", "somebody outside this run")
		}},
		scenario{"cancelled by us", func(t *testing.T) {
			s := on(t, c)
			s.manifest(nil, workload{name: "t", script: "sleep 120"})
			run := s.startRun()
			s.begun("t", 1, 0, 1)
			if r := s.assay("cancel", "r"); r.code != 0 {
				t.Fatalf("cancel: exit code %d\n%s", r.code, r.stderr)
			}
			run.wait().want(verdict.Error).source("squeue").state("CANCELLED").
				reason("CANCELLED", "assay cancel")
		}},
	)
}

// purged lets the controller forget jobs that nobody watched: what the ranks left
// is all there is, and where they left nothing nobody is to blame.
func purged(t *testing.T) {
	c := slurmtest.Start(t, map[string]string{"NODES": "2", "ACCOUNTING": "none", "CONF": "MinJobAge=2"})
	forgotten := func(s *site, script string, starts int) judged {
		gate := s.gate("go")
		s.manifest(map[string]any{"marker_grace": 3}, workload{name: "t", script: until(gate) + script})
		run := s.startRun()
		id := s.begun("t", 1, 0, 1)
		for n := 2; n <= starts; n++ {
			c.Run("scontrol", "requeue", id)
			startNow(s, c, id)
			s.begun("t", n, 0, 1)
		}
		end(run)
		s.open(gate)
		s.eventually("the controller to forget job "+id, func() bool { return c.JobState(id) == "" })
		return s.assay("attach", "r", "--json")
	}
	together(t,
		scenario{"and measured", func(t *testing.T) {
			s := on(t, c)
			forgotten(s, measure, 1).want(verdict.Pass).source("markers")
		}},
		scenario{"and failed", func(t *testing.T) {
			r := forgotten(on(t, c), rankOne3, 1).want(verdict.Fail).source("markers").
				reason("RANK_EXIT", "rank 1 (node2)", "exited 3")
			blames(r, "rank 1 (node2)")
		}},
		scenario{"after a second start", func(t *testing.T) {
			forgotten(on(t, c), measure, 2).want(verdict.Pass).source("markers").attempts(2).
				warning("RESTARTED", "not known")
		}},
		scenario{"without a record", func(t *testing.T) {
			s := on(t, c)
			r := forgotten(s, "[ $RANK = 0 ] || kill -KILL $PPID", 1).want(verdict.Error).source("squeue").
				reason("SCHED_UNKNOWN", "rank 1 (node2)", "began and left no end", "squeue")
			r.warning("SCHED_UNKNOWN", "there is no accounting")
			if got := r.rank(0); got.State != evidence.RankEnded {
				t.Errorf("rank 0: %+v", got)
			}
			last := s.observations("t", 1)
			if o := last[len(last)-1]; o.Phase != evidence.PhaseGone {
				t.Errorf("the last observation is %+v, want gone", o)
			}
		}},
	)
}

// oddRecords breaks what is asked about jobs, on the cluster that tests share.
func oddRecords(t *testing.T) {
	c := slurmtest.Open(t)
	together(t,
		scenario{"no sacct", func(t *testing.T) { withoutSacct(t, c, pathWithout(t, "sacct")) }},
		scenario{"sacct fails", func(t *testing.T) {
			withoutSacct(t, c, pathWith(t, "sacct", "echo sacct: error: it is Sunday >&2; exit 1"))
		}},
		scenario{"sacct knows nothing", func(t *testing.T) { withoutSacct(t, c, pathWith(t, "sacct", "exit 0")) }},
		scenario{"sacct hangs", func(t *testing.T) { withoutSacct(t, c, pathWith(t, "sacct", "sleep 600")) }},
		scenario{"squeue fails", func(t *testing.T) { withoutSqueue(t, c) }},
		scenario{"late records", func(t *testing.T) { lateRecords(t, c) }},
		scenario{"records after the grace", func(t *testing.T) { tooLateRecords(t, c) }},
	)
}

// pathWith is a PATH that begins with a directory that has a command of our own.
func pathWith(t *testing.T, command, script string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, command), []byte("#!/bin/bash\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + ":" + os.Getenv("PATH")
}

// pathWithout is a PATH on which there is everything but a command.
func pathWithout(t *testing.T, command string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		programs, err := os.ReadDir(from)
		if err != nil {
			continue
		}
		for _, p := range programs {
			if p.Name() == command {
				continue
			}
			if err := os.Symlink(filepath.Join(from, p.Name()), filepath.Join(dir, p.Name())); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// withoutSacct runs what passes and what fails: both are judged by what squeue and
// the ranks say.
func withoutSacct(t *testing.T, c *slurmtest.Cluster, path string) {
	passes, fails := on(t, c, "PATH="+path), on(t, c, "PATH="+path)
	passes.manifest(nil, workload{name: "t", script: measure})
	fails.manifest(nil, workload{name: "t", script: rankOne3})
	p, f := passes.startRun(), fails.startRun()
	p.wait().want(verdict.Pass).clean().source("squeue").state("COMPLETED")
	r := f.wait().want(verdict.Fail).source("squeue").state("FAILED").
		reason("RANK_EXIT", "rank 1", "exited 3").
		reason("SCHED_STATE", "squeue", "FAILED")
	if got := r.Jobs[0].Reasons[0].Code; got != "RANK_EXIT" {
		t.Errorf("the first reason is %s", got)
	}
}

// withoutSqueue runs what fails while the queue cannot be asked: the accounting
// tells the end.
func withoutSqueue(t *testing.T, c *slurmtest.Cluster) {
	s := on(t, c, "PATH="+pathWith(t, "squeue", "echo squeue: error: it is Sunday >&2; exit 1"))
	s.manifest(nil, workload{name: "t", script: rankOne3})
	r := s.runJSON().want(verdict.Fail).source("sacct").state("FAILED").
		reason("RANK_EXIT", "rank 1", "exited 3")
	if !strings.Contains(r.stderr, "it is Sunday") {
		t.Errorf("nobody said why squeue could not be asked:\n%s", r.stderr)
	}
}

// hideRecords makes the records of rank 1 appear elsewhere, as a shared filesystem
// does that shows them late: under a batch script of our own, rank 1 sees another
// directory in the place of ranks/.
func hideRecords(s *site) (flags []string, hidden string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "templates", "slurm", "job.sh.tmpl"))
	if err != nil {
		s.t.Fatal(err)
	}
	hidden = filepath.Join(s.dir, "hidden")
	const plain = `	"$assay" rank --job "$job" --under slurm --master-addr`
	behind := `	bash -c '[ $SLURM_PROCID = 0 ] && exec "$@"; exec unshare --mount bash -c "mount --bind ` + hidden +
		` $RANKS && exec \"\$@\"" - "$@"' - "$assay" rank --job "$job" --under slurm --master-addr`
	if !strings.Contains(string(text), plain) {
		s.t.Fatalf("the template does not have the line %q", plain)
	}
	script := strings.Replace(string(text), plain, behind, 1)
	script = strings.ReplaceAll(script, "$RANKS", filepath.Join(s.attempt("t", 1), "ranks"))
	dir := filepath.Join(s.dir, "templates", "slurm")
	for _, d := range []string{dir, hidden} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "job.sh.tmpl"), []byte(script), 0o644); err != nil {
		s.t.Fatal(err)
	}
	return []string{"--template-dir", filepath.Dir(dir)}, hidden
}

// show lets the hidden records appear.
func (s *site) show(hidden string) {
	s.t.Helper()
	from, to := filepath.Join(hidden, "1"), rundir.RankDir(s.attempt("t", 1), 1)
	s.eventually("the end of rank 1", func() bool { return exists(filepath.Join(from, rundir.EndFile)) })
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		s.t.Fatal(err)
	}
}

// measureLast leaves the measurement to rank 1, whose records are late.
const measureLast = "[ $RANK = 0 ] || echo performance: 7 tps"

// The records of rank 1 appear within the grace: until then the run is pending, and
// says what is awaited.
func lateRecords(t *testing.T, c *slurmtest.Cluster) {
	s := on(t, c)
	flags, hidden := hideRecords(s)
	s.manifest(map[string]any{"marker_grace": 60}, workload{name: "t", script: measureLast})
	run := s.startRun(flags...)
	var seen judged
	s.eventually("the run to await records", func() bool {
		seen = s.assay("status", "r", "--json")
		return strings.Contains(seen.stdout, "awaited")
	})
	seen.want(verdict.Pending).exits(8).
		reason("LAUNCH_PENDING", "COMPLETED", "the records of 1 of 2 ranks are awaited")
	s.show(hidden)
	run.wait().want(verdict.Pass).clean()
	s.saw(1, evidence.PhaseEnding, "COMPLETED")
}

// The records of rank 1 do not appear within the grace: the verdict names it, and a
// later collect knows better.
func tooLateRecords(t *testing.T, c *slurmtest.Cluster) {
	s := on(t, c)
	flags, hidden := hideRecords(s)
	s.manifest(map[string]any{"marker_grace": 2}, workload{name: "t", script: measureLast})
	r := s.runJSON(flags...).want(verdict.Fail)
	if node := r.rank(1).Node; node == "" { // it left no record, and SLURM knows where it was
		t.Errorf("the verdict does not say where rank 1 was")
	}
	missing := "rank 1 (" + r.rank(1).Node + ")"
	r.reason("RANK_NOT_STARTED", missing)
	blames(r, missing)
	s.show(hidden)
	s.assay("collect", "r", "--json").want(verdict.Pass).clean()
}

//go:build slurm

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// waitsFor is a script of which every rank prints what is given, once, and then
// waits to be ended.
func waitsFor(rank0 string) string {
	return `[ $RANK != 0 ] || { ` + rank0 + `; }; touch "$ASSAY_RESULTS_DIR/waits"; while :; do sleep 1; done`
}

// awaitRanks waits until the ranks of the job wait to be ended.
func (s *session) awaitRanks(ranks ...string) {
	s.Helper()
	for _, rank := range ranks {
		path := s.path("jobs", "job", "1", "ranks", rank, "results", "waits")
		s.Await("rank "+rank+" waits", func() bool {
			_, err := os.Stat(path)
			return err == nil
		})
	}
}

// told is the reason of a rank of such a job that was told to stop. The rank that
// ended first is named first.
const told = `RANK_SIGNAL rank (0 \(node1\)|1 \(node2\)): rank \d \(node\d\) was told to stop by SIGTERM`

// on12 puts a job on two nodes that messages can name.
func on12() object { return object{"nodelist": "node[1-2]"} }

// ends are scenarios of jobs that the scheduler ends or starts again.
func ends() map[string]func(*session) {
	return map[string]func(*session){
		"time limit": func(s *session) {
			p, id := s.startRun(oneJob(2, entry(waitsFor("true")), on12()))
			s.awaitRanks("0", "1")
			s.Scontrol("update", "JobId="+id, "EndTime=now+1")
			p.wait().is(3, "FAIL benchmark 6").
				reasons(`SCHED_STATE squeue, sacct: .* said TIMEOUT.*`,
					told, told).
				warnings().ranks("0 node1 ended 143 SIGTERM", "1 node2 ended 143 SIGTERM")
			s.match("the scheduler's last word", s.last("1"), "ended TIMEOUT.*")
			s.match("the reason in perf.csv", s.row()["reason"], ".*TIMEOUT.*")
		},
		"time limit after a metric": func(s *session) {
			p, id := s.startRun(oneJob(2, entry(waitsFor("echo performance: 7 tps")), on12()))
			s.awaitRanks("0", "1")
			s.Scontrol("update", "JobId="+id, "EndTime=now+1")
			p.wait().is(0, "PASS benchmark 4").reasons().
				warnings(told, told, `SCHED_STATE squeue, sacct: .* said TIMEOUT.*`)
			s.match("performance in perf.csv", s.row()["performance"], "7")
		},
		"a minute that is over": func(s *session) { // as SLURM itself counts it
			s.run(oneJob(1, entry(waitsFor("true")), object{"time": "1"})).is(3, "FAIL benchmark 6").
				reasons(`SCHED_STATE squeue, sacct: .* said TIMEOUT.*`, `RANK_SIGNAL rank 0 \(node\d\): .*SIGTERM`)
		},
		"time limit of the model": func(s *session) {
			model := merge(entry(waitsFor("true")), object{"timeout": 1})
			late := `RANK_TIMEOUT rank (0 \(node1\)|1 \(node2\)): .* ran past its time limit of 1 s; it had been quiet for .*`
			s.run(oneJob(2, model, on12())).is(3, "FAIL benchmark 5").
				reasons(late, late, `SCHED_STATE squeue, sacct: .* said FAILED.*`)
		},
		"scontrol requeue": func(s *session) {
			script := `if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then ` + waitsFor("true") + `; fi; [ $RANK != 0 ] || echo performance: 7 tps`
			p, id := s.startRun(oneJob(2, entry(script), object{"requeue": true}))
			s.awaitRanks("0", "1")
			s.startAgain(id)
			r := p.wait().is(0, "PASS benchmark 4").reasons().
				warnings(`RESTARTED squeue, sacct: start 1 of the job ended on node.* as REQUEUED, and the scheduler started it again`).ranks(`0 node\d ended 0`, `1 node\d ended 0`)
			if j := r.job(); j.Attempts != 2 || j.Directory != "jobs/job/2" {
				s.Errorf("%d attempts, judged by %s", j.Attempts, j.Directory)
			}
			s.match("the scheduler's word on the first start", s.observations("1")[0].Word, "PENDING|CONFIGURING|RUNNING")
			s.match("the scheduler's last word", s.last("2"), "ended COMPLETED.*")
			s.match("attempt in perf.csv", s.row()["attempt"], "2")
		},
	}
}

// cancels are scenarios in which somebody ends the job.
func cancels() map[string]func(*session) {
	cancelled := func(s *session, p *started, code int, by string) {
		s.Helper()
		p.wait().is(code, "ERROR benchmark 1").
			reasons(`CANCELLED job: the run was cancelled by `+by+` before the job had ended`,
				`CANCELLED rank \d \(node\d\): .* was stopped: the run was cancelled by `+by, `CANCELLED rank \d \(node\d\): .*`, `SCHED_STATE squeue, sacct: .* said CANCELLED.*`)
		s.match("the scheduler's last word", s.last("1"), "ended CANCELLED.*")
		s.match("verdict in perf.csv", s.row()["verdict"], "ERROR")
		if left := s.queued(); left != "" {
			s.Errorf("left in the queue: %s", left)
		}
	}
	return map[string]func(*session){
		"assay cancel": func(s *session) {
			p, _ := s.startRun(oneJob(2, entry(waitsFor("true")), on12()))
			s.awaitRanks("0", "1")
			if r := s.assay("cancel", "r"); r.code != 0 || !strings.Contains(r.stdout, "1 job told to stop") {
				s.Errorf("cancel: %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			cancelled(s, p, 6, "assay cancel")
			if r := s.assay("cancel", "r"); r.code != 0 {
				s.Errorf("a second cancel: %d\n%s%s", r.code, r.stdout, r.stderr)
			}
		},
		"Ctrl-C": func(s *session) {
			p, _ := s.startRun(oneJob(2, entry(waitsFor("true")), on12()))
			s.awaitRanks("0", "1")
			p.signal(syscall.SIGINT)
			cancelled(s, p, 130, "SIGINT")
		},
		"Ctrl-C twice, then attach": func(s *session) {
			deaf := `trap "" TERM INT; touch "$ASSAY_RESULTS_DIR/waits"; [ $RANK != 0 ] || echo performance: 7 tps; for i in $(seq 20); do sleep 0.1; done; exit 0`
			p, id := s.startRun(oneJob(2, entry(deaf), on12()))
			s.awaitRanks("0", "1")
			p.signal(syscall.SIGINT)
			s.Await("the run is cancelled", func() bool { _, err := os.Stat(s.path("cancel.json")); return err == nil })
			p.signal(syscall.SIGINT)
			if r := p.wait(); r.code != 130 || !strings.Contains(r.stderr, "assay attach r") {
				s.Errorf("exit code %d\n%s", r.code, r.stderr)
			}
			s.assay("attach", "r", "--json").is(0, "PASS")
			s.Await("the job has ended", func() bool { return s.JobState(id) == "CANCELLED" })
		},
		"scancel by somebody else": func(s *session) {
			p, id := s.startRun(oneJob(2, entry(waitsFor("true")), on12()))
			s.awaitRanks("0", "1")
			s.Cluster.Run("scancel", id)
			p.wait().is(6, "ERROR benchmark 1").
				reasons(`CANCELLED job: the job was cancelled by somebody outside this run`, told, told, `CANCELLED squeue, sacct: .* said CANCELLED: by uid 0`)
			s.match("the scheduler's last word", s.last("1"), "ended CANCELLED: by uid 0")
		},
		"scancel of the step": func(s *session) {
			p, id := s.startRun(oneJob(2, entry(waitsFor("true")), object{"nodelist": "node[1-2]", "marker_grace": 1}))
			s.awaitRanks("0", "1")
			s.Cluster.Run("scancel", id+".0")
			r := p.wait().is(6, "ERROR benchmark 1")
			s.match("the first reason", r.stdout, `(?s).*the job was cancelled by somebody outside this run.*step 0 was cancelled by uid 0.*`)
		},
		"suspended": func(s *session) {
			p, id := s.startRun(oneJob(2, merge(entry(`[ $RANK != 0 ] || echo performance: 7 tps; touch "$ASSAY_RESULTS_DIR/waits"; for i in $(seq 20); do sleep 0.1; done`), object{"timeout": 6}), on12()))
			s.awaitRanks("0", "1")
			s.Scontrol("suspend", id)
			time.Sleep(6 * time.Second)
			s.Scontrol("resume", id)
			p.wait().is(0, "PASS benchmark 4").warnings(`RANK_NOTE rank 0 .* was stopped for .*`, `RANK_NOTE rank 1 .* was stopped for .*`)
		},
		"scancel after a metric": func(s *session) {
			p, id := s.startRun(oneJob(2, entry(waitsFor("echo performance: 7 tps")), on12()))
			s.awaitRanks("0", "1")
			s.Cluster.Run("scancel", id)
			p.wait().is(0, "PASS benchmark 4").
				warnings(told, told, `CANCELLED squeue, sacct: .* said CANCELLED: by uid 0`)
		},
		"max_pending": func(s *session) {
			s.run(oneJob(2, entry("echo performance: 1 never"), object{"reservation": s.reserve(), "max_pending": 2})).is(6, "ERROR benchmark 1").
				reasons(`LAUNCH_PENDING job: the job was not launched: it had waited for 2\.\d* s, the limit of max_pending; squeue said PENDING \(reason .*\)`)
			s.match("the reason in perf.csv", s.row()["reason"], ".*max_pending.*")
			if left := s.queued(); left != "" {
				s.Errorf("left in the queue: %s", left)
			}
		},
		"scancel by another user": func(s *session) {
			s.becomeNobody()
			p, id := s.startRun(oneJob(1, entry(waitsFor("true")), nil))
			s.awaitRanks("0")
			s.Cluster.Run("scancel", id) // by root
			p.wait().is(6, "ERROR benchmark 1").
				reasons(`CANCELLED job: the job was cancelled by somebody outside this run`, `RANK_SIGNAL rank 0 .*SIGTERM`, `CANCELLED squeue, sacct: .* said CANCELLED: by uid 0`)
		},
		"scancel before the start": func(s *session) {
			p, id := s.startRun(oneJob(2, entry("true"), object{"reservation": s.reserve()}))
			s.Cluster.Run("scancel", id)
			p.wait().is(6, "ERROR benchmark 1").
				reasons(`CANCELLED job: the job was cancelled by somebody outside this run`, `CANCELLED squeue, sacct: .* said CANCELLED: by uid 0`).
				ranks("0  not_started", "1  not_started")
		},
	}
}

// startAgain requeues a job and lets it start soon.
func (s *session) startAgain(id string) {
	s.Helper()
	s.Scontrol("requeue", id)
	s.Await("the first start is over", func() bool {
		return strings.Contains(s.Scontrol("show", "job", id), "JobState=PENDING Reason=BeginTime")
	})
	s.Scontrol("update", "JobId="+id, "StartTime=now+2") // a node refuses a start in the second of a cancellation
}

// reserve makes a reservation in which jobs wait for half a day, and returns its
// name.
func (s *session) reserve() string {
	s.Helper()
	name := "later" + filepath.Base(s.dir)
	later := time.Now().Add(12 * time.Hour).Format("2006-01-02T15:04:05")
	s.Scontrol("create", "reservation", "ReservationName="+name, "StartTime="+later, "Duration=10", "Nodes=node4", "Users=root", "Flags=OVERLAP")
	s.Cleanup(func() {
		s.endJobs() // or it could not be deleted
		if _, err := s.Try("scontrol", "delete", "ReservationName="+name); err != nil {
			s.Error(err)
		}
	})
	return name
}

// endJobs ends what a test that failed left in the queue.
func (s *session) endJobs() {
	var ids []string
	for line := range strings.Lines(s.queued()) {
		ids = append(ids, strings.Fields(line)[0])
	}
	if len(ids) == 0 {
		return
	}
	if _, err := s.Try("scancel", ids...); err != nil {
		s.Error(err)
	}
}

// becomeNobody makes the session one of a user without privileges.
func (s *session) becomeNobody() {
	s.Helper()
	u := s.Nobody()
	s.as, s.dir = &u, u.Home
}

// within fails when something took longer than it may.
func (s *session) within(what string, begun time.Time, limit time.Duration) {
	s.Helper()
	if took := time.Since(begun); took > limit {
		s.Errorf("%s took %s, more than %s", what, took.Round(time.Millisecond), limit)
	}
}

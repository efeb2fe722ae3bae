//go:build slurm

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// replaceTool puts a bash script before a tool of SLURM in the PATH of the
// session. In it, "$real" is the tool and "$dir" the session's directory.
func (s *session) replaceTool(name, script string) {
	s.Helper()
	real, err := exec.LookPath(name)
	if err != nil {
		s.Fatal(err)
	}
	head := "#!/bin/bash\nreal=" + real + "\ndir=" + s.dir + "\n"
	if name == "sbatch" { // the preflight asks what would become of the job, which submits nothing
		head += `case " $* " in *" --test-only "*) echo call >>"$dir/test-only.log"; exec "$real" "$@" ;; esac` + "\n"
	}
	s.write("tools/"+name, head+script)
	path := filepath.Join(s.dir, "tools") + ":" + os.Getenv("PATH")
	s.env = append(s.env, "PATH="+path)
}

// calls counts how often a tool that notes its calls in a file was called.
func (s *session) calls(name string) int {
	s.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
	if err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// submitted counts the jobs that were ever submitted for the session.
func (s *session) submitted() int {
	s.Helper()
	return strings.Count(s.Squeue("--states=all", "--Format=Comment:4096"), "dir="+s.dir+"/")
}

// waitsToGo is a script that measures when the test lets it go on.
func (s *session) waitsToGo() string {
	return `touch "$ASSAY_RESULTS_DIR/waits"; while [ ! -e '` + s.dir + `/go' ]; do sleep 0.1; done; [ $RANK != 0 ] || echo performance: 7 tps`
}

// recoveries are scenarios in which assay dies, or is not told the truth.
func recoveries() map[string]func(*session) {
	return map[string]func(*session){
		"kill -9, then attach": func(s *session) {
			p, _ := s.startRun(oneJob(2, entry(s.waitsToGo()), nil))
			s.awaitRanks("0", "1")
			p.signal(os.Kill)
			if r := p.wait(); r.code != -1 {
				s.Fatalf("exit code %d after SIGKILL", r.code)
			}
			if r := s.assay("status", "r"); r.code != 8 || !strings.Contains(r.stdout+r.stderr, "assay attach r") {
				s.Errorf("status: exit code %d, want 8\n%s%s", r.code, r.stdout, r.stderr)
			}
			attach := s.start("attach", "r", "--json")
			s.write("go", "now")
			attach.wait().is(0, "PASS benchmark 4").reasons().warnings().ranks(`0 node\d ended 0`, `1 node\d ended 0`)
			s.match("the scheduler's last word", s.last("1"), "ended COMPLETED")
			s.match("performance in perf.csv", s.row()["performance"], "7")
			s.once()
		},
		"kill -9, then collect after the end": func(s *session) {
			p, id := s.startRun(oneJob(2, entry(s.waitsToGo()), nil))
			s.awaitRanks("0", "1")
			p.signal(os.Kill)
			p.wait()
			s.write("go", "")
			s.Await("the job has ended", func() bool { return s.JobState(id) == "COMPLETED" })
			first := s.assay("collect", "r", "--json").is(0, "PASS benchmark 4")
			if again := s.assay("collect", "r", "--json"); again.stdout != first.stdout {
				s.Errorf("collected again:\n%s", again.stdout)
			}
			s.row()
		},
		"kill -9, a requeue, then attach": func(s *session) {
			script := `if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then ` + waitsFor("true") + `; fi; [ $RANK != 0 ] || echo performance: 7 tps`
			p, id := s.startRun(oneJob(2, entry(script), object{"requeue": true}))
			s.awaitRanks("0", "1")
			p.signal(os.Kill)
			p.wait()
			s.startAgain(id)
			s.Await("the second start has ended", func() bool { return s.JobState(id) == "COMPLETED" })
			r := s.assay("attach", "r", "--json").is(0, "PASS benchmark 4").
				warnings(`RESTARTED squeue, sacct: start 1 of the job ended on node.* as REQUEUED, and the scheduler started it again`)
			if n := r.job().Attempts; n != 2 {
				s.Errorf("%d attempts, want 2", n)
			}
			s.match("attempt in perf.csv", s.row()["attempt"], "2")
			s.once()
		},
		"kill -9, a requeue, then attach to what runs": func(s *session) {
			script := `if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then ` + waitsFor("true") + `; fi; ` + s.waitsToGo()
			p, id := s.startRun(oneJob(2, entry(script), object{"requeue": true}))
			s.awaitRanks("0", "1")
			p.signal(os.Kill)
			p.wait()
			s.startAgain(id)
			s.awaitFile(s.path("jobs", "job", "2", "ranks", "0", "begin.json"))
			attach := s.start("attach", "r", "--json")
			s.write("go", "now")
			attach.wait().is(0, "PASS benchmark 4").warnings(`RESTARTED .*`)
			s.once()
		},
		"kill -9 right after sbatch": func(s *session) {
			s.replaceTool("sbatch", `echo call >>"$dir/sbatch.log"
out=$("$real" "$@") || exit
kill -KILL $PPID
echo "$out"`)
			s.writeManifest(oneJob(2, entry(`[ $RANK != 0 ] || echo performance: 7 tps`), nil))
			if r := s.start(runArgs()...).wait(); r.code != -1 {
				s.Fatalf("exit code %d, want a death by SIGKILL\n%s", r.code, r.stderr)
			}
			if id := s.jobID("job"); id != "" {
				s.Fatalf("launch.json has job %s: nothing is left to find out", id)
			}
			s.assay("attach", "r", "--json").is(0, "PASS benchmark 4").warnings()
			s.once()
			if n := s.calls("sbatch"); n != 1 {
				s.Errorf("sbatch was called %d times, want 1", n)
			}
		},
		"kill -9 right before sbatch": func(s *session) {
			s.replaceTool("sbatch", `echo call >>"$dir/sbatch.log"
if [ ! -e "$dir/killed" ]; then touch "$dir/killed"; kill -KILL $PPID; sleep 60; fi
exec "$real" "$@"`)
			s.writeManifest(oneJob(2, entry(`[ $RANK != 0 ] || echo performance: 7 tps`), nil))
			if r := s.start(runArgs()...).wait(); r.code != -1 {
				s.Fatalf("exit code %d, want a death by SIGKILL\n%s", r.code, r.stderr)
			}
			s.assay("attach", "r", "--json").is(0, "PASS benchmark 4").warnings()
			s.once()
		},
		"no answer to a submission that arrived": func(s *session) {
			s.replaceTool("sbatch", `echo call >>"$dir/sbatch.log"
"$real" "$@" >/dev/null
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1`)
			r := s.run(oneJob(2, entry(`[ $RANK != 0 ] || echo performance: 7 tps`), nil))
			r.is(0, "PASS benchmark 4").warnings()
			s.once()
			if n := s.calls("sbatch"); n != 1 {
				s.Errorf("sbatch was called %d times, want 1", n)
			}
		},
		"no answer to a submission that did not arrive": func(s *session) {
			s.replaceTool("sbatch", `echo call >>"$dir/sbatch.log"
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1`)
			s.run(oneJob(2, entry(`echo performance: 7 never`), nil)).is(6, "ERROR benchmark 1").
				reasons(`LAUNCH_UNKNOWN job: .*Socket timed out.*not submitted again.*`)
			if n, jobs := s.calls("sbatch"), s.submitted(); n != 1 || jobs != 0 {
				s.Errorf("sbatch was called %d times and %d jobs were submitted, want 1 and 0", n, jobs)
			}
		},
		"squeue fails for a while": func(s *session) {
			s.replaceTool("squeue", `echo call >>"$dir/squeue.log"
if [ $(wc -l <"$dir/squeue.log") -le 2 ]; then echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1; fi
exec "$real" "$@"`)
			r := s.run(oneJob(2, entry(`sleep 1; [ $RANK != 0 ] || echo performance: 7 tps`), nil))
			r.is(0, "PASS benchmark 4").warnings()
		},
		"no sacct": func(s *session) {
			s.replaceTool("sacct", `echo "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection" >&2; exit 1`)
			s.run(oneJob(2, entry(`[ $RANK != 1 ] || exit 3`), on12())).is(3, "FAIL benchmark 5").
				reasons(`RANK_EXIT rank 1 \(node2\): rank 1 \(node2\) exited 3`, `SCHED_STATE squeue: squeue said FAILED.*`)
		},
	}
}

// once checks that one job was submitted for the session, and no second.
func (s *session) once() {
	s.Helper()
	if n := s.submitted(); n != 1 {
		s.Errorf("%d jobs were submitted, want 1", n)
	}
}

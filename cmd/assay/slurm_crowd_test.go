//go:build slurm

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// crowds are scenarios of many jobs at once, and of ranks that talk.
func crowds() map[string]func(*session) {
	return map[string]func(*session){
		"twenty jobs at once": func(s *session) {
			models := map[string]object{}
			for i := range 20 {
				models[fmt.Sprintf("job%02d", i)] = entry(fmt.Sprintf("echo performance: %d tps", i+1))
			}
			r := s.run(manyJobs(models, object{"nodes": 1}))
			if r.code != 0 || len(r.run.Jobs) != 20 {
				s.Fatalf("exit code %d, %d jobs\n%s", r.code, len(r.run.Jobs), r.stderr)
			}
			for i, j := range r.run.Jobs {
				if j.Verdict.String() != "PASS" || len(j.Measurements) != 1 || *j.Measurements[0].Value != float64(i+1) || len(j.Warnings) > 0 {
					s.Errorf("%s: %v %+v, warnings %v", j.Name, j.Verdict, j.Measurements, j.Warnings)
				}
			}
			if n := len(s.rows()); n != 20 {
				s.Errorf("perf.csv has %d rows, want 20", n)
			}
		},
		"two jobs at once": func(s *session) {
			models := map[string]object{}
			for i := range 6 {
				models[fmt.Sprintf("job%02d", i)] = entry("true")
			}
			s.replaceTool("sbatch", `"$real" "$@"; code=$?
squeue --noheader --states=PENDING,CONFIGURING,RUNNING --Format=Comment:4096 | grep -c "dir=$dir/" >>"$dir/depth.log"
exit $code`)
			r := s.run(manyJobs(models, object{"nodes": 1}), "--jobs", "2")
			if r.code != 5 || len(r.run.Jobs) != 6 {
				s.Fatalf("exit code %d, %d jobs\n%s", r.code, len(r.run.Jobs), r.stderr)
			}
			if depth := s.awaitFile(filepath.Join(s.dir, "depth.log")); strings.Trim(depth, "012\n") != "" {
				s.Errorf("more than 2 jobs were queued at once:\n%s", depth)
			}
		},
		"five hundred entries": fiveHundred,
		"ring all-reduce over two nodes": func(s *session) {
			root, err := filepath.Abs(filepath.Join("..", ".."))
			if err != nil {
				s.Fatal(err)
			}
			model := object{
				"scripts": filepath.Join(root, "models", "scripts", "allreduce"), "args": []string{"--max", "4MiB"}, "scope": "pair",
				"distributed": object{"launcher": "none", "nnodes": 2, "nproc_per_node": 1},
				"metrics":     []object{{"name": "allreduceBusGBs", "unit": "GB/s", "better": "higher", "aggregate": "root", "required": true}},
				"thresholds":  []object{{"metric": "allreduceBusGBs", "min": 0.001}},
			}
			r := s.run(oneJob(2, model, on12())).is(0, "PASS").reasons().warnings()
			m := r.job().Measurements
			if len(m) != 1 || m[0].Name != "allreduceBusGBs" || m[0].Unit != "GB/s" || m[0].Value == nil || *m[0].Value <= 0 {
				s.Errorf("measured %+v", m)
			}
			if nodes := strings.Join(r.job().Nodes, " "); nodes != "node1 node2" {
				s.Errorf("the verdict is about %s", nodes)
			}
			s.Logf("%+v", m)
		},
	}
}

// fiveHundred submits five hundred entries that have to wait, watches them for a
// while and cancels them. What it costs the controller does not grow with them.
func fiveHundred(s *session) {
	const entries = 500
	for _, tool := range []string{"sbatch", "squeue", "sacct", "scancel"} {
		s.replaceTool(tool, `date +%s.%N >>"$dir/`+tool+`.log"; exec "$real" "$@"`)
	}
	models := map[string]object{}
	for i := range entries {
		models[fmt.Sprintf("job%03d", i)] = entry("true")
	}
	s.writeManifest(manyJobs(models, object{"nodes": 1, "reservation": s.reserve()}))
	begun := time.Now()
	p := s.start(runArgs()...)
	s.Await("all are submitted", func() bool { return s.calls("sbatch") == entries && s.submitted() == entries })
	s.within("the submission", begun, time.Minute)
	asked := s.calls("squeue")
	s.Logf("%d submissions in %s, squeue called %d times meanwhile", entries, time.Since(begun).Round(time.Millisecond), asked)
	s.Await("the queue is asked again", func() bool { return s.calls("squeue") >= asked+2 })
	p.signal(syscall.SIGTERM)
	r := p.wait()
	if r.code != 143 || len(r.run.Jobs) != entries {
		s.Fatalf("exit code %d, %d jobs\n%s", r.code, len(r.run.Jobs), r.stderr)
	}
	for _, j := range r.run.Jobs {
		if j.Verdict.String() != "ERROR" || len(j.Reasons) == 0 || j.Reasons[0].Code != "CANCELLED" {
			s.Fatalf("%s: %v %v", j.Name, j.Verdict, j.Reasons)
		}
	}
	s.within("submitting, watching and cancelling", begun, 2*time.Minute)
	// One question a poll, every half second at most, and one to the accounting when
	// jobs have left the queue, a thousand at a time.
	seconds := int(time.Since(begun).Seconds()) + 1
	if n := s.calls("squeue"); n > 3*seconds {
		s.Errorf("squeue was called %d times in %d s", n, seconds)
	}
	if n := s.calls("sacct"); n > 11*seconds {
		s.Errorf("sacct was called %d times in %d s", n, seconds)
	}
	if n, tests := s.calls("sbatch"), s.calls("test-only"); n != entries || tests > 10 {
		s.Errorf("sbatch was called %d times, and %d times to test", n, tests)
	}
	if left := s.queued(); left != "" {
		s.Errorf("left in the queue: %.2000s", left)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "perf.csv")); err != nil || len(s.rows()) != entries {
		s.Errorf("perf.csv: %v, %d rows", err, len(s.rows()))
	}
}

//go:build slurm

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// places are scenarios about who runs assay, and where.
func places() map[string]func(*session) {
	return map[string]func(*session){
		"a user without privileges": func(s *session) {
			s.becomeNobody()
			r := s.run(oneJob(2, entry(`id -un >"$ASSAY_RESULTS_DIR/who"; [ $RANK != 0 ] || echo performance: 7 tps`), nil))
			r.is(0, "PASS benchmark 4").reasons().warnings().ranks(`0 node\d ended 0`, `1 node\d ended 0`)
			for _, path := range []string{
				s.path("run.json"), s.path("jobs", "job", "1", "job.sh"), s.path("jobs", "job", "1", "job.out"),
				s.path("jobs", "job", "1", "ranks", "1", "end.json"), s.path("jobs", "job", "1", "ranks", "1", "results", "who"),
				filepath.Join(s.dir, "runs", ".assay"), filepath.Join(s.dir, "perf.csv"),
			} {
				info, err := os.Stat(path)
				if err != nil {
					s.Error(err)
				} else if int(info.Sys().(*syscall.Stat_t).Uid) != s.as.UID {
					s.Errorf("%s belongs to somebody else", path)
				}
			}
			s.match("who the rank was", s.awaitFile(s.path("jobs", "job", "1", "ranks", "1", "results", "who")), "nobody\n")
			info, err := os.Stat(s.path())
			if err != nil || info.Mode().Perm() != 0o700 {
				s.Errorf("the run directory: %v %v, want 0700", info, err)
			}
		},
		"the environment of the shell does not leak": func(s *session) {
			s.env = append(s.env,
				"SBATCH_PARTITION=nowhere", "SBATCH_TIMELIMIT=0", "SBATCH_ACCOUNT=nobodys", "SBATCH_QOS=none", "SBATCH_WAIT=1", "SBATCH_JOB_NAME=leak",
				"SBATCH_EXPORT=ALL", "SLURM_EXPORT_ENV=ALL", "SLURM_NTASKS=7", "SLURM_NNODES=7", "SLURM_NTASKS_PER_NODE=3", "SLURM_KILL_BAD_EXIT=1",
				"SLURM_CPU_BIND=map_cpu:99", "SLURM_DISTRIBUTION=cyclic", "SLURM_JOB_NAME=leak", "SQUEUE_STATES=FAILED", "SQUEUE_FORMAT=%i",
				"SACCT_FORMAT=JobID", "SLURM_TIME_FORMAT=relative", "SLURM_MPI_TYPE=no-such", "SECRET_TOKEN=hunter2", "SLURM_JWT=hunter2")
			script := `env >"$ASSAY_RESULTS_DIR/env"; [ $RANK != 0 ] || echo performance: 7 tps`
			s.run(oneJob(2, entry(script), on12())).is(0, "PASS benchmark 4").warnings().ranks("0 node1 ended 0", "1 node2 ended 0")
			for _, rank := range []string{"0", "1"} {
				env := s.awaitFile(s.path("jobs", "job", "1", "ranks", rank, "results", "env"))
				for _, leak := range []string{"hunter2", "=nowhere", "=leak", "=nobodys", "SBATCH_", "SQUEUE_", "SACCT_", "=map_cpu", "=7\n", "=cyclic", "=no-such", "SLURM_KILL_BAD_EXIT"} {
					if strings.Contains(env+"\n", leak) {
						s.Errorf("rank %s has %q in its environment:\n%s", rank, leak, env)
					}
				}
			}
		},
		"more nodes than there are": func(s *session) {
			r := s.run(oneJob(9, entry("echo performance: 1 never"), nil))
			if r.code != 4 || !strings.Contains(r.stderr, "asks for 9 nodes, and partition main has 4") {
				s.Errorf("exit code %d, want 4\n%s", r.code, r.stderr)
			}
			if n := s.submitted(); n != 0 {
				s.Errorf("%d jobs were submitted", n)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "perf.csv")); !os.IsNotExist(err) {
				s.Errorf("perf.csv: %v, want none", err)
			}
		},
		"output_dir": func(s *session) {
			out := filepath.Join(s.dir, "scheduler %j out")
			if err := os.Mkdir(out, 0o755); err != nil {
				s.Fatal(err)
			}
			r := s.run(oneJob(2, entry(`[ $RANK != 0 ] || echo performance: 7 tps; echo to stderr >&2`), object{"output_dir": out}))
			r.is(0, "PASS benchmark 4")
			files, err := filepath.Glob(filepath.Join(s.dir, "scheduler*", "*"))
			if err != nil || len(files) != 1 || !strings.HasSuffix(files[0], "-"+s.jobID("job")+".out") {
				s.Errorf("output_dir holds %q, want one file that ends in the id of the job: %v", files, err)
			}
		},
		"a directory with an odd name": func(s *session) {
			s.dir = filepath.Join(s.dir, `a b 'ü' %j "q" $x #1 \y`)
			if err := os.Mkdir(s.dir, 0o755); err != nil {
				s.Fatal(err)
			}
			s.run(oneJob(2, entry(`[ $RANK != 0 ] || echo performance: 7 tps`), nil)).is(0, "PASS benchmark 4").warnings()
			s.awaitFile(s.path("jobs", "job", "1", "scheduler.jsonl"))
			if _, err := os.Stat(s.path("jobs", "job", "1", "job.out")); err != nil {
				s.Error(err)
			}
		},
		"no-wait": func(s *session) {
			s.writeManifest(oneJob(2, entry(s.waitsToGo()), nil))
			if r := s.assay(runArgs("--no-wait")...); r.code != 8 {
				s.Fatalf("exit code %d, want 8\n%s%s", r.code, r.stdout, r.stderr)
			}
			attach := s.start("attach", "r", "--json")
			s.awaitRanks("0", "1")
			s.write("go", "now")
			attach.wait().is(0, "PASS benchmark 4").warnings()
			s.row()
		},
		"results_dir": func(s *session) {
			model := merge(entry(`printf 'model,performance,metric\nm,7,tps\n' >"$MAD_OUTPUT_CSV"; echo $RANK >"$ASSAY_RESULTS_DIR/rank"`),
				object{"multiple_results": "results.csv"})
			s.run(oneJob(2, model, object{"results_dir": "gathered"})).is(0, "PASS").warnings()
			for rank, want := range map[string]string{"rank-0": "0\n", "rank-1": "1\n"} {
				s.match("what "+rank+" left", s.awaitFile(filepath.Join(s.dir, "gathered", "r", "job", "1", rank, "rank")), want)
				s.awaitFile(filepath.Join(s.dir, "gathered", "r", "job", "1", rank, "results.csv"))
			}
		},
		"values of an env_file are kept nowhere": func(s *session) {
			s.write("site.env", "TOKEN=hunter2hunter2\n")
			m := oneJob(2, entry(`[ "$TOKEN" = hunter2""hunter2 ] || exit 9; [ $RANK != 0 ] || echo performance: 7 tps`), nil)
			m["deployment_config"].(object)["env_file"] = "site.env"
			r := s.run(m, "--verbose").is(0, "PASS")
			if strings.Contains(r.stdout+r.stderr, "hunter2hunter2") {
				s.Errorf("printed:\n%s%s", r.stdout, r.stderr)
			}
			if err := filepath.WalkDir(s.path(), func(path string, d os.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				data, err := os.ReadFile(path)
				if strings.Contains(string(data), "hunter2hunter2") {
					s.Errorf("%s has the value", path)
				}
				return err
			}); err != nil {
				s.Fatal(err)
			}
			if out := s.Scontrol("show", "job", "--details", s.jobID("job")); strings.Contains(out, "hunter2hunter2") {
				s.Errorf("scontrol shows the value:\n%s", out)
			}
		},
		"shared_workspace": func(s *session) {
			r := s.run(oneJob(2, entry(`[ $RANK != 0 ] || echo performance: 7 tps`), object{"shared_workspace": "scratch"}))
			r.is(0, "PASS benchmark 4")
			want := filepath.Join(s.dir, "scratch", "runs", "r")
			if r.run.Dir != want {
				s.Errorf("the run is in %s, want %s", r.run.Dir, want)
			}
		},
		"the job starts where the manifest is": func(s *session) {
			// The run is started elsewhere; scripts are found beside the manifest.
			s.write("models/job.sh", "#!/bin/bash\n[ $RANK != 0 ] || echo performance: 7 tps\n")
			s.writeManifest(oneJob(2, object{"scripts": "models/job.sh"}, nil))
			if err := os.Mkdir(filepath.Join(s.dir, "elsewhere"), 0o755); err != nil {
				s.Fatal(err)
			}
			manifest := filepath.Join(s.dir, "m.json")
			s.dir = filepath.Join(s.dir, "elsewhere")
			s.assay("run", "-m", manifest, "--run-id", "r", "--json").is(0, "PASS benchmark 4")
		},
	}
}

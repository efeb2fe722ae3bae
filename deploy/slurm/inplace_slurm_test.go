//go:build slurm

package slurm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay/deploy/slurm/slurmtest"
)

// workplace is a directory with a manifest and the built binary, for scripts that
// are run inside allocations.
type workplace struct {
	*testing.T
	*slurmtest.Cluster
	dir string
}

// newWorkplace writes a manifest whose one entry runs a bash script on two nodes.
func newWorkplace(t *testing.T, script string) workplace {
	t.Helper()
	c := slurmtest.Open(t)
	w := workplace{t, c, c.SharedDir()}
	build := exec.Command("go", "build", "-o", filepath.Join(w.dir, "assay"), "assay/cmd/assay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	w.write("job.sh", script)
	w.write("m.json", fmt.Sprintf(`{"built_images": {"job": {"docker_image": null}}, "context": {},
		"built_models": {"job": {"name": "job", "command": ["bash", %q]}},
		"deployment_config": {"target": "slurm", "slurm": {"partition": "main", "nodes": 2, "time": "5"}}}`, filepath.Join(w.dir, "job.sh")))
	return w
}

func (w workplace) write(name, text string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
}

// read returns what all files of a pattern below the directory hold, in order.
func (w workplace) read(pattern string) string {
	w.Helper()
	paths, err := filepath.Glob(filepath.Join(w.dir, pattern))
	if err != nil {
		w.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			w.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// inside runs a bash script inside an allocation and returns what it printed and
// its exit code.
func (w workplace) inside(nodes int, script string) (string, int) {
	w.Helper()
	return w.code(w.Command("salloc", "--quiet", fmt.Sprintf("--nodes=%d", nodes), "bash", "-c", script))
}

func (w workplace) code(cmd *exec.Cmd) (string, int) {
	w.Helper()
	cmd.Dir = w.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	w.Logf("%s\n%s", cmd, out)
	return string(out), cmd.ProcessState.ExitCode()
}

// demand fails the test with what was printed when a text is not part of it.
func (w workplace) demand(text string, parts ...string) {
	w.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			w.Errorf("without %q:\n%s", p, text)
		}
	}
}

const measure = `echo "$RANK is on $SLURMD_NODENAME of $NNODES"; [ "$RANK" = 0 ] && echo "performance: 5 GB/s"; `

func TestSlurmInPlace(t *testing.T) {
	w := newWorkplace(t, measure+`[ "$RANK" = 1 ] && exit 3; true`)
	// What salloc or a user leaves in the environment is no option of our step.
	out, code := w.inside(3, `export SLURM_NTASKS=7 SLURM_NTASKS_PER_NODE=7 SLURM_KILL_BAD_EXIT=1 SLURM_DISTRIBUTION=cyclic SLURM_RESTART_COUNT=3 SLURM_WAIT=1 SLURM_OPEN_MODE=t
		./assay run -m m.json; code=$?
		echo "nodes $(scontrol show hostnames | head -n 2 | paste -sd ' ')"
		squeue --noheader --user="$(id -u)" --states=all --format='%i %j' | grep -- -job-1
		exit $code`)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	_, nodes, _ := strings.Cut(out, "\nnodes ")
	nodes, left, _ := strings.Cut(nodes, "\n")
	first, second, _ := strings.Cut(nodes, " ")
	w.demand(w.read("runs/*/jobs/job/1/ranks/0/stdout"), "0 is on "+first+" of 2")
	w.demand(w.read("runs/*/jobs/job/1/ranks/1/stdout"), "1 is on "+second+" of 2")
	w.demand(out, "PASS", "exited 3", "uses 2 of the 3 nodes of the allocation", "slurm.partition, slurm.time have no effect inside an allocation")
	// Jobs of other tests may be there; ours would carry the nonce of the run.
	var ledger struct{ Nonce string }
	if err := json.Unmarshal([]byte(w.read("runs/*/run.json")), &ledger); err != nil || len(ledger.Nonce) < 12 {
		t.Fatalf("nonce %q, %v", ledger.Nonce, err)
	}
	if strings.Contains(left, ledger.Nonce[:12]) {
		t.Errorf("a job was submitted: %s", left)
	}
}

// Inside an allocation a job that names its nodes runs on those, wherever they are in
// the allocation.
func TestSlurmInPlaceOnNamedNodes(t *testing.T) {
	w := newWorkplace(t, measure)
	w.write("job.py", `import json, sys
m = json.load(open("m.json")); m["built_models"]["job"]["scope"] = "node"; m["deployment_config"]["slurm"]["nodes"] = 1
json.dump(m, open("m.json", "w"))`)
	out, code := w.inside(3, `python3 job.py; last=$(scontrol show hostnames | tail -n 1); echo "last $last"
		./assay run -m m.json --nodes "$last"; echo "exit $?"; ./assay run -m m.json --nodes elsewhere`)
	if code != 4 {
		t.Errorf("exit code %d", code)
	}
	_, last, _ := strings.Cut(out, "last ")
	last, _, _ = strings.Cut(last, "\n")
	w.demand(out, "exit 0", "elsewhere is not in the allocation")
	w.demand(w.read("runs/*/jobs/job/1/ranks/0/stdout"), "0 is on "+last+" of 1")
}

func TestSlurmInPlaceRefusesMoreNodesThanThereAre(t *testing.T) {
	w := newWorkplace(t, "true")
	out, code := w.inside(1, "./assay run -m m.json")
	if code != 4 {
		t.Errorf("exit code %d", code)
	}
	w.demand(out, `entry "job" asks for 2 nodes, and the allocation has 1`)
	if _, err := os.Stat(filepath.Join(w.dir, "runs")); err == nil {
		t.Error("a run directory was made")
	}
}

func TestSlurmInPlaceOutlivesAssay(t *testing.T) {
	w := newWorkplace(t, measure+`for i in {1..600}; do [ -e go ] && exit 0; sleep 0.1; done; exit 9`)
	w.write("job.sh", strings.ReplaceAll(w.read("job.sh"), "-e go", "-e "+filepath.Join(w.dir, "go")))
	out, code := w.inside(2, `./assay run -m m.json & pid=$!
		until ls runs/*/jobs/job/1/ranks/1/begin.json 2>/dev/null && grep -q handle runs/*/jobs/job/1/launch.json; do sleep 0.05; done
		kill -9 $pid; wait $pid; ./assay status latest; echo "status $?"
		touch go
		./assay attach latest`)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.demand(out, "status 8", "PASS")
}

func TestSlurmInPlaceCancel(t *testing.T) {
	w := newWorkplace(t, measure+`trap 'echo told to end; sleep 0.5; exit 4' TERM; for i in {1..600}; do sleep 0.1; done`)
	out, code := w.inside(2, `./assay run -m m.json & pid=$!
		until ls runs/*/jobs/job/1/ranks/1/begin.json >/dev/null 2>&1 && grep -q 'on node' runs/*/jobs/job/1/ranks/1/stdout; do sleep 0.05; done
		./assay cancel latest; ./assay cancel latest; wait $pid; echo "run $?"; ./assay cancel latest`)
	if code != 0 {
		t.Errorf("exit code %d of cancel", code)
	}
	w.demand(out, "1 job")
	for _, rank := range []string{"0", "1"} {
		w.demand(w.read("runs/*/jobs/job/1/ranks/"+rank+"/stdout"), "told to end")
		w.demand(w.read("runs/*/jobs/job/1/ranks/"+rank+"/end.json"), `"stopped"`)
	}
}

// TestSlurmInPlaceEndsWithItsAllocation: the shell of salloc ends, and with it the
// allocation, while ranks run.
func TestSlurmInPlaceEndsWithItsAllocation(t *testing.T) {
	w := newWorkplace(t, "sleep 300")
	if _, code := w.inside(2, `./assay run -m m.json --no-wait
		until ls runs/*/jobs/job/1/ranks/1/begin.json >/dev/null 2>&1; do sleep 0.05; done`); code != 8 && code != 0 {
		t.Fatalf("exit code %d", code)
	}
	cmd := w.Command(filepath.Join(w.dir, "assay"), "attach", "latest") // from outside
	out, code := w.code(cmd)
	if code == 0 || strings.Contains(out, "PASS") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	said := w.read("runs/*/jobs/job/1/scheduler.jsonl")
	if !strings.Contains(said, `"phase":"ended"`) || !strings.Contains(said, `"bad":true`) {
		t.Errorf("SLURM was seen to say\n%s", said)
	}
}

// TestSlurmInPlaceAllocationCancelled: the accounting knows the step only as failed,
// and the job is judged as one that somebody cancelled.
func TestSlurmInPlaceAllocationCancelled(t *testing.T) {
	w := newWorkplace(t, "sleep 300")
	w.inside(2, `setsid ./assay run -m m.json >out 2>&1 &
		until ls runs/*/jobs/job/1/ranks/1/begin.json >/dev/null 2>&1; do sleep 0.05; done
		scancel $SLURM_JOB_ID; wait`)
	w.Await("the verdict", func() bool { return w.read("runs/*/verdict.json") != "" })
	w.demand(w.read("out"), "the job was cancelled by somebody outside this run", "has ended as CANCELLED, and everything in it")
	w.demand(w.read("runs/*/verdict.json"), `"verdict": "ERROR"`)
	w.demand(w.read("runs/*/jobs/job/1/ranks/0/end.json"), `"stopped"`)
}

// TestSlurmInPlaceOwnSteps: the script of the model starts its own steps.
func TestSlurmInPlaceOwnSteps(t *testing.T) {
	w := newWorkplace(t, `srun --nodes=2 --ntasks=2 bash -c 'trap "exit 4" TERM; echo "on $SLURMD_NODENAME"; for i in {1..600}; do [ -e go ] && break; sleep 0.1; done'; echo "performance: 7 GB/s"`)
	w.write("job.sh", strings.ReplaceAll(w.read("job.sh"), "-e go", "-e "+filepath.Join(w.dir, "go")))
	w.write("m.json", strings.Replace(w.read("m.json"), `"target": "slurm"`, `"target": "slurm", "distributed": {"launcher": "slurm_multi"}`, 1))
	out, code := w.inside(2, `touch go; ./assay run -m m.json; echo "run $?"; rm go
		./assay run -m m.json --run-id second & pid=$!
		until grep -q 'on node' runs/second/jobs/job/1/ranks/0/stdout 2>/dev/null; do sleep 0.05; done
		./assay cancel second; wait $pid; squeue --noheader --steps --jobs=$SLURM_JOB_ID --format=%j`)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.demand(out, "run 0", "GB/s 7", "1 job told to stop")
	w.demand(w.read("runs/second/jobs/job/1/ranks/0/end.json"), `"stopped"`)
	if _, steps, _ := strings.Cut(out, "verdict"); strings.Contains(steps, "\nbash\n") {
		t.Error("a step was left behind")
	}
}

// TestSlurmInPlaceInBatchScript: in somebody's own batch script, which takes the
// exit code of the run.
func TestSlurmInPlaceInBatchScript(t *testing.T) {
	w := newWorkplace(t, measure+"exit 3")
	id := w.Sbatch("#!/bin/bash\ncd "+w.dir+"\n./assay run -m m.json >out 2>&1\n", "--nodes=2", "--output=/dev/null")
	w.Await("the end of the job", func() bool { s := w.JobState(id); return s != "PENDING" && s != "RUNNING" && s != "COMPLETING" })
	if state := w.JobState(id); state != "COMPLETED" {
		t.Errorf("the job is %s", state)
	}
	w.demand(w.read("out"), "PASS", "exited 3")
}

// TestSlurmInPlaceInStep: inside a step, which holds all of the nodes.
func TestSlurmInPlaceInStep(t *testing.T) {
	w := newWorkplace(t, measure)
	cmd := w.Command("srun", "--nodes=2", "--ntasks=2", "--exclusive", "bash", "-c", `[ "$SLURM_PROCID" = 0 ] || exec sleep 5; ./assay run -m m.json`)
	if out, code := w.code(cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestSlurmInPlaceAsSomebody: without privileges, in a directory of one's own.
func TestSlurmInPlaceAsSomebody(t *testing.T) {
	w := newWorkplace(t, measure)
	u := w.Nobody()
	for _, name := range []string{"assay", "m.json", "job.sh"} {
		if err := os.Rename(filepath.Join(w.dir, name), filepath.Join(u.Home, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.dir = u.Home
	w.write("m.json", strings.Replace(w.read("m.json"), `"bash", "`, `"bash", "`+u.Home+`/job.sh", "`, 1))
	out, code := w.code(u.Command("salloc", "--quiet", "--nodes=2", "bash", "-c", "./assay check -m m.json --on-node && ./assay run -m m.json"))
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.demand(out, "PASS", "is seen to rename there")
}

// TestSlurmInPlaceWithoutController: slurmctld is away while a job runs and ends.
func TestSlurmInPlaceWithoutController(t *testing.T) {
	w := newWorkplace(t, measure+"sleep 3")
	ready := filepath.Join(w.dir, "ready")
	cmd := w.Command("salloc", "--quiet", "--nodes=2", "bash", "-c", "./assay run -m m.json >out 2>&1; echo $? >code; until [ -e "+ready+" ]; do sleep 0.1; done")
	cmd.Dir = w.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Await("the ranks", func() bool { return w.read("runs/*/jobs/job/1/ranks/1/begin.json") != "" })
	w.StopDaemon("slurmctld")
	w.Await("the end of their workload", func() bool { return w.read("runs/*/jobs/job/1/ranks/[01]/end.json") != "" })
	w.StartDaemon("slurmctld")
	w.Await("the verdict", func() bool { return w.read("code") != "" })
	if code := w.read("code"); code != "0\n" {
		t.Errorf("exit code %s", code)
	}
	w.demand(w.read("out"), "PASS")
	w.write("ready", "")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

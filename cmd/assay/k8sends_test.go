//go:build k8s

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/verdict"
)

// waitsForEnd is a script of which every rank says that it waits, and then waits to be
// ended.
const waitsForEnd = `echo "rank $RANK waits"; while :; do sleep 0.1; done`

// awaitRanks waits until the ranks of the job wait to be ended, and their logs have
// come.
func (s *k8sSite) awaitRanks(n int) {
	s.t.Helper()
	for rank := range n {
		path := filepath.Join(s.attempt("job", 1), "ranks", fmt.Sprint(rank), "stdout")
		s.eventually(fmt.Sprintf("rank %d waits", rank), func() bool {
			data, _ := os.ReadFile(path)
			return strings.Contains(string(data), "waits") // whether its line has an end is known when more comes
		})
	}
}

// podOf is the pod of a rank.
func (s *k8sSite) podOf(rank int) string {
	s.t.Helper()
	pods := s.pods(fmt.Sprintf("batch.kubernetes.io/job-completion-index=%d", rank))
	if len(pods) != 1 {
		s.t.Fatalf("rank %d has the pods %v", rank, pods)
	}
	return pods[0]
}

// check compares the whole of what was concluded; the texts are regular expressions.
func (s *k8sSite) check(r judged, code int, word string, reasons, warnings, ranks []string) {
	s.t.Helper()
	if r.code != code || len(r.Jobs) == 0 {
		s.t.Fatalf("exit code %d, want %d\n%s\n%s", r.code, code, r.stdout, r.stderr)
	}
	j := r.Jobs[0]
	s.same("verdict", []string{j.Verdict.String() + " " + j.Rule}, []string{word})
	s.same("reasons", saidBy(j.Reasons), reasons)
	s.same("warnings", saidBy(j.Warnings), warnings)
	s.same("ranks", endsOf(s.t, j), ranks)
	s.explained(r)
	if s.t.Failed() {
		s.t.Logf("%s\n%s", r.stdout, r.stderr)
	}
}

// explained fails the test unless collecting and judging again says the same.
func (s *k8sSite) explained(r judged) {
	s.t.Helper()
	again := s.assay("collect", "r", "--json")
	if again.code != r.code || again.stdout != r.stdout {
		s.t.Errorf("collect: exit code %d, want %d\n%s\nrun said\n%s", again.code, r.code, again.stdout, r.stdout)
	}
	why := s.assay("explain", "r")
	for _, x := range r.Jobs[0].Reasons {
		if !strings.Contains(why.stdout, x.Code) {
			s.t.Errorf("explain has no %s\n%s", x.Code, why.stdout)
		}
	}
}

// toldToStop is the reason of a rank that was told to stop.
const toldToStop = `RANK_SIGNAL rank \d \(node1\): rank \d \(node1\) was told to stop by SIGTERM`

func TestK8sPodDeletedBySomebody(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.manifest(nil, 2, workload{name: "job", script: "[ $RANK = 1 ] || { echo waits; sleep 3; exit 0; }; " + waitsForEnd})
	run := s.startRun()
	s.awaitRanks(2)
	pod := s.podOf(1)
	s.kubectl("delete", "pod", pod, "--wait=false")
	s.check(run.wait(), 6, "ERROR benchmark 1",
		[]string{
			"CANCELLED job: the job was cancelled by somebody outside this run", toldToStop,
			`CANCELLED kubernetes: kubernetes said CANCELLED: rank 1 \(pod ` + pod + ` on node1\) was deleted by somebody while it ran`,
		}, nil, []string{"0 node1 ended 0", "1 node1 ended 143 SIGTERM"})
}

// What ends well after it was told to stop has not done its work.
func TestK8sPodDeletedThatEndsWell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		k8s             map[string]any
		warnings, ranks []string
	}{
		"wrapped":   {nil, nil, []string{"0 node1 ended 143 SIGTERM"}},
		"unwrapped": {map[string]any{"wrapper": "none", "runner_image": nil}, []string{"EVIDENCE_THIN .*"}, []string{"0 node1 ended 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			s.manifest(c.k8s, 1, workload{name: "job", script: "trap 'exit 0' TERM; " + waitsForEnd})
			run := s.startRun()
			s.awaitRanks(1)
			s.kubectl("delete", "pod", s.podOf(0), "--wait=false")
			r := run.wait()
			if len(r.Jobs) == 1 { // the pod may be gone before its log was read to the end
				r.Jobs[0].Warnings = slices.DeleteFunc(r.Jobs[0].Warnings, func(w verdict.Reason) bool {
					return w.Code == verdict.CodeEvidenceUnreadable && strings.Contains(w.Message, "its log could not be read to its end")
				})
			}
			s.check(r, 6, "ERROR benchmark 1",
				[]string{"CANCELLED job: the job was cancelled by somebody outside this run", "RANK_SIGNAL rank 0 .* was told to stop by .*", "CANCELLED kubernetes: .* was deleted by somebody while it ran"},
				c.warnings, c.ranks)
		})
	}
}

func TestK8sJobDeletedBySomebody(t *testing.T) {
	t.Parallel()
	ends := []string{"0 node1 ended 143 SIGTERM", "1 node1 ended 143 SIGTERM"}
	said := "CANCELLED kubernetes: kubernetes said CANCELLED: the Job was deleted by somebody"
	t.Run("without a metric", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(nil, 2, workload{name: "job", script: waitsForEnd})
		run := s.startRun()
		s.awaitRanks(2)
		s.kubectl("delete", "jobs", "--all", "--wait=false")
		s.check(run.wait(), 6, "ERROR benchmark 1",
			[]string{"CANCELLED job: the job was cancelled by somebody outside this run", toldToStop, toldToStop, said}, nil, ends)
		row := s.perf()[0]
		s.same("perf.csv", []string{row["status"], row["verdict"], row["reason"]}, []string{"FAILURE", "ERROR", ".*cancelled by somebody.*"})
	})
	t.Run("after a metric", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(nil, 2, workload{name: "job", script: "[ $RANK != 0 ] || echo performance: 7 tps; " + waitsForEnd})
		run := s.startRun()
		s.awaitRanks(2)
		s.kubectl("delete", "jobs", "--all", "--wait=false")
		s.check(run.wait(), 0, "PASS benchmark 4", nil, []string{toldToStop, toldToStop, said}, ends)
	})
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(map[string]any{"node_selector": map[string]any{"none": "such"}}, 2, workload{name: "job", script: waitsForEnd})
		run := s.startRun()
		s.eventually("the pods are there", func() bool { return len(s.pods("app.kubernetes.io/managed-by=assay")) == 2 })
		s.kubectl("delete", "jobs", "--all", "--wait=false", "--cascade=background")
		s.check(run.wait(), 6, "ERROR benchmark 1",
			[]string{"CANCELLED job: the job was cancelled by somebody outside this run", said}, nil, []string{"0  not_started", "1  not_started"})
	})
}

// registry serves what a registry without an image answers, where pods' nodes see
// it, and returns its address.
func (s *k8sSite) registry() string {
	s.t.Helper()
	number, err := os.ReadFile(filepath.Join(s.Dir, "net"))
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "10."+strings.TrimSpace(string(number))+".255.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}`))
	})}
	go func() { _ = server.Serve(l) }()
	s.t.Cleanup(func() { _ = server.Close() })
	s.Ctl("registry", l.Addr().String())
	return l.Addr().String()
}

func TestK8sImageThatTheRegistryDoesNotHave(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	absent := s.registry() + "/team/absent:1"
	s.manifest(nil, 1,
		workload{name: "absent", model: map[string]any{"image": absent}, script: "true"},
		workload{name: "good", script: "echo performance: 1 ok"})
	r := s.runJSON()
	if r.code != 6 || len(r.Jobs) != 2 || r.Jobs[0].Verdict != verdict.Error || r.Jobs[1].Verdict != verdict.Pass {
		t.Fatalf("exit code %d\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	s.same("reasons", saidBy(r.Jobs[0].Reasons), []string{"IMAGE rank 0 .*" + absent + " cannot be had: .*not found.*", "SCHED_STATE kubernetes: .*"})
	s.endsAtOnce("absent")
	rows := s.perf()
	if len(rows) != 2 {
		t.Fatalf("perf.csv: %v", rows)
	}
	s.same("verdicts in perf.csv", []string{rows[0]["verdict"], rows[1]["verdict"]}, []string{"ERROR", "PASS"})
	s.same("the reason", []string{rows[0]["reason"]}, []string{".*" + absent + ".*"})
}

// endsAtOnce fails the test unless a job was given up when the pod said that its
// image cannot be pulled, which kubelets let it say up to 15 s after they tried. What
// may pass is waited for longer.
func (s *k8sSite) endsAtOnce(job string) {
	s.t.Helper()
	seen := s.observations(job, 1)
	said := slices.IndexFunc(seen, func(o evidence.Observation) bool { return o.Word == "ErrImagePull" || o.Word == "ImagePullBackOff" })
	end := slices.IndexFunc(seen, func(o evidence.Observation) bool { return o.Phase == evidence.PhaseEnding || o.Phase.Over() })
	if said < 0 || end < said || seen[end].At.Sub(seen[said].At) > 10*time.Second {
		s.t.Errorf("the job was not given up at once: %+v", seen)
	}
}

// A GPU that no node has is waited for, with the scheduler's words, until one has it.
func TestK8sGPUsThatComeLater(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.context["gpu_vendor"] = "NVIDIA"
	s.manifest(map[string]any{"gpu_count": 1}, 2, workload{name: "job", script: "echo performance: 2 gpus", model: map[string]any{"n_gpus": "1"}})
	run := s.startRun()
	s.eventually("the scheduler says that there is no GPU", func() bool {
		r := s.assay("status", "r", "--json")
		return r.code == 8 && len(r.Jobs) == 1 && r.Jobs[0].Scheduler != nil && r.Jobs[0].Scheduler.State == "Unschedulable" &&
			strings.Contains(r.Jobs[0].Scheduler.Detail, "Insufficient nvidia.com/gpu")
	})
	t.Cleanup(func() { s.Ctl("gpus", "0") })
	s.Ctl("gpus", "2")
	s.check(run.wait(), 0, "PASS benchmark 4", nil, nil, []string{"0 node1 ended 0", "1 node1 ended 0"})
}

// killWrapper kills the first process of the container of a rank, as the kernel does
// when a container runs out of memory as a whole.
func (s *k8sSite) killWrapper(pod string) {
	s.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		env, _ := os.ReadFile(file)
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if !strings.Contains("\x00"+string(env), "\x00ASSAY_POD_NAME="+pod+"\x00") || !strings.HasPrefix(string(cmd), "/assay/bin/assay\x00rank\x00--under\x00k8s\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.t.Fatalf("pod %s has no wrapper", pod)
}

// What a rank printed counts for nothing when nobody can say how it ended.
func TestK8sWrapperKilled(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.manifest(nil, 2, workload{name: "job", script: "[ $RANK = 1 ] || { echo waits; sleep 3; exit 0; }; echo performance: 7 tps; " + waitsForEnd})
	run := s.startRun()
	s.awaitRanks(2)
	s.killWrapper(s.podOf(1))
	s.check(run.wait(), 3, "FAIL benchmark 5",
		[]string{"RANK_LOST rank 1 .*", "SCHED_STATE kubernetes: .*FailedIndexes.*"}, nil, []string{"0 node1 ended 0", "1 node1 lost"})
}

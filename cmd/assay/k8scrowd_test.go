//go:build k8s

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/deploy/k8s/k8stest"
	"assay/pkg/verdict"
)

// requests counts what assay asked the API server about the namespace of the site.
func (s *k8sSite) requests() map[string]int {
	s.t.Helper()
	count := map[string]int{}
	for _, r := range s.AuditRequests("assay/", s.namespace) {
		name := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			name += "/" + r.Subresource
		}
		count[name]++
	}
	return count
}

// total is the sum of the counts.
func total(count map[string]int) (n int) {
	for _, c := range count {
		n += c
	}
	return n
}

// sockets counts the open sockets of a process.
func sockets(pid int) (n int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// Thirty jobs of two ranks each cost the API server what one costs, thirty times,
// and one watch of each kind.
func TestK8sCrowd(t *testing.T) {
	t.Parallel()
	const jobs = 30
	s := newK8sSite(t)
	var all []workload
	for i := range jobs {
		all = append(all, workload{name: fmt.Sprintf("job%02d", i), script: fmt.Sprintf("[ $RANK != 0 ] || echo performance: %d tps", i+1)})
	}
	s.manifest(map[string]any{"cpu": "10m"}, 2, all...)
	begun := time.Now()
	r := s.startRun()
	most := 0
	for ended := false; !ended; {
		most = max(most, sockets(r.cmd.Process.Pid))
		select {
		case <-r.done:
			ended = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	res := r.wait().want(verdict.Pass).clean()
	took := time.Since(begun)
	if len(res.Jobs) != jobs {
		t.Errorf("%d jobs, want %d", len(res.Jobs), jobs)
	}
	for i, j := range res.Jobs {
		if len(j.Measurements) != 1 || *j.Measurements[0].Value != float64(i+1) {
			t.Errorf("job %s measured %+v", j.ID, j.Measurements)
		}
	}
	s.once(jobs)
	count := s.requests()
	for _, what := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%5d %s", count[what], what)
	}
	t.Logf("%d jobs of 2 ranks took %s, %.1f requests a job, %d sockets at most", jobs, took.Round(time.Millisecond), float64(total(count))/jobs, most)
	// Three objects, one deletion, and the logs of two ranks: with a few questions that
	// are asked once, and logs that have to be asked for again. Events are asked for as
	// long as a pod has not started, which is longer on a busy machine.
	if n := total(count) - count["list events"]; n > 12*jobs {
		t.Errorf("%d requests for %d jobs", n, jobs)
	}
	if n := count["watch jobs"] + count["watch pods"]; n > 6 {
		t.Errorf("%d watches for one run", n)
	}
	if most > 20 {
		t.Errorf("%d sockets", most)
	}
	if rows := len(strings.Split(strings.TrimSpace(s.read("perf.csv")), "\n")); rows != jobs+1 {
		t.Errorf("perf.csv has %d lines, want %d", rows, jobs+1)
	}
	s.gone()
}

// read is the content of a file of the site.
func (s *k8sSite) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// TestK8sRing runs the all-reduce of the program in four pods, and holds its figure
// against a threshold.
func TestK8sRing(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		min  float64
		word verdict.Word
	}{"enough": {0.0001, verdict.Pass}, "too little": {1e6, verdict.Fail}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			s.manifest(nil, 4, workload{name: "ring", model: map[string]any{
				"image": k8stest.ImageTestbox, "scope": "group", "command": []string{"bash", "-c", `exec "$ASSAY_BIN" probe allreduce --max 4MiB`},
				"metrics":    []any{map[string]any{"name": "allreduceBusGBs", "unit": "GB/s", "better": "higher", "aggregate": "root", "required": true}},
				"thresholds": []any{map[string]any{"metric": "allreduceBusGBs", "min": at.min}},
			}})
			r := s.runJSON().want(at.word)
			m := r.Jobs[0].Measurements
			if len(m) != 1 || m[0].Name != "allreduceBusGBs" || m[0].Value == nil || *m[0].Value <= 0 {
				t.Fatalf("measured %+v", m)
			}
			if at.word == verdict.Fail {
				r.reason("THRESHOLD", "allreduceBusGBs")
			} else {
				r.clean()
			}
			t.Logf("%.4f GB/s between four pods", *m[0].Value)
		})
	}
}

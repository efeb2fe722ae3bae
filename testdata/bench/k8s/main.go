// Command k8s measures runs on the Kubernetes cluster of the environment and prints
// a table. It judges nothing: the targets are shown beside the figures.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const (
	image  = "localhost/testbox:1"
	runner = "localhost/assay-runner:test"
	rounds = 9
)

// suite is what the measurements share.
type suite struct {
	binary, dir, audit string
	rows               [][]string
}

func bench() error {
	binary, err := filepath.Abs("bin/assay")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assay-bench-k8s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &suite{binary: binary, dir: dir, audit: filepath.Join(os.Getenv("ASSAY_TEST_K8S"), "log", "audit.log")}
	for _, step := range []func() error{s.pairs, func() error { return s.crowd(1) }, func() error { return s.crowd(30) }} {
		if err := step(); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range append([][]string{{"WHAT", "MEDIAN", "BEST", "WORST", "TARGET"}}, s.rows...) {
		fmt.Fprintln(w, strings.Join(r, "\t"))
	}
	return w.Flush()
}

// pairs times the same job of two pods, one after the other, by kubectl and by assay,
// so that both meet the same moods of the machine.
func (s *suite) pairs() error {
	m, err := s.manifest(1)
	if err != nil {
		return err
	}
	var bare, own, more []time.Duration
	for i := range rounds + 1 {
		b, err := s.bare(i)
		if err != nil {
			return err
		}
		o, err := s.run(m)
		if err != nil {
			return err
		}
		if i > 0 { // the first is not counted
			bare, own, more = append(bare, b), append(own, o), append(more, o-b)
		}
	}
	s.add("kubectl apply and kubectl wait, true in 2 pods", "", bare)
	s.add("assay run, true in 2 pods, to the verdict", "", own)
	s.add("the difference of the two, pair by pair", "≤ 1 s", more)
	return nil
}

// bare is the least that gives the end of the same job.
func (s *suite) bare(i int) (time.Duration, error) {
	name := "bare-" + strconv.Itoa(i)
	yaml := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {job-name: %[1]s}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: %[1]s
      restartPolicy: Never
      containers:
      - {name: main, image: "%[2]s", imagePullPolicy: Never, command: ["true"], resources: {requests: {cpu: 20m, memory: 32Mi}}}
`, name, image)
	path := filepath.Join(s.dir, name+".yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		return 0, err
	}
	start := time.Now()
	for _, args := range [][]string{{"apply", "-f", path}, {"wait", "--for=condition=complete", "job/" + name, "--timeout=60s"}} {
		if out, err := exec.Command("kubectl", args...).CombinedOutput(); err != nil {
			return 0, fmt.Errorf("kubectl %s: %w\n%s", args[0], err, out)
		}
	}
	took := time.Since(start)
	return took, exec.Command("kubectl", "delete", "-f", path, "--wait=false").Run()
}

// manifest writes a manifest of n entries that run true in two pods each.
func (s *suite) manifest(n int) (string, error) {
	images, models := map[string]any{}, map[string]any{}
	for i := range n {
		key := fmt.Sprintf("m%03d", i)
		images[key] = map[string]any{"docker_image": image}
		models[key] = map[string]any{"name": key, "command": []string{"true"}, "distributed": map[string]any{"launcher": "none", "nnodes": 2, "nproc_per_node": 1}}
	}
	data, err := json.Marshal(map[string]any{
		"built_images": images, "built_models": models, "context": map[string]any{},
		"deployment_config": map[string]any{"target": "k8s", "k8s": map[string]any{
			"runner_image": runner, "image_pull_policy": "Never", "cpu": "20m", "memory": "32Mi", "cleanup": "always",
		}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, fmt.Sprintf("m-%d.json", n))
	return path, os.WriteFile(path, data, 0o600)
}

// run is one `assay run`. A run that measures nothing exits with 5.
func (s *suite) run(manifest string) (time.Duration, error) {
	cmd := exec.Command(s.binary, "run", "-q", "-m", manifest, "--runs", filepath.Join(s.dir, "runs"), "--perf-csv", "")
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(start)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 5) {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	return took, nil
}

func (s *suite) add(what, target string, times []time.Duration) {
	slices.Sort(times)
	show := func(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
	s.rows = append(s.rows, []string{what, show(times[len(times)/2]), show(times[0]), show(times[len(times)-1]), target})
}

// crowd runs n jobs of two pods at once and counts what the API server was asked.
func (s *suite) crowd(n int) error {
	m, err := s.manifest(n)
	if err != nil {
		return err
	}
	before, err := s.requests()
	if err != nil {
		return err
	}
	took, err := s.run(m)
	if err != nil {
		return err
	}
	time.Sleep(time.Second) // the log is written a little later
	after, err := s.requests()
	if err != nil {
		return err
	}
	asked := after - before
	s.rows = append(s.rows,
		[]string{fmt.Sprintf("assay run, %d jobs of 2 pods at once", n), took.Round(10 * time.Millisecond).String(), "", "", ""},
		[]string{fmt.Sprintf("requests to the API server a job, %d jobs, preflight and logs of pods included", n), fmt.Sprintf("%.1f", float64(asked)/float64(n)), "", "", ""})
	return nil
}

// requests counts the requests of assay in the audit log: those that began.
func (s *suite) requests() (int, error) {
	data, err := os.ReadFile(s.audit)
	if err != nil {
		return 0, err
	}
	count := 0
	for line := range strings.Lines(string(data)) {
		var e struct {
			Stage     string
			UserAgent string
			AuditID   string
		}
		if json.Unmarshal([]byte(line), &e) == nil && strings.HasPrefix(e.UserAgent, "assay/") && e.Stage != "ResponseStarted" {
			count++
		}
	}
	return count, nil
}

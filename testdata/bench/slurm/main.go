// Command slurm measures runs on the SLURM cluster of the environment and prints
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

// suite is what the measurements share.
type suite struct {
	binary, dir string
	rows        [][]string
}

func bench() error {
	binary, err := filepath.Abs("bin/assay")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assay-bench-slurm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &suite{binary: binary, dir: dir}
	for _, step := range []func() error{s.bare, s.pair, s.twenty, s.many, s.waiting} {
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

// manifest writes a manifest of n entries that each run a command on some nodes.
func (s *suite) manifest(n, nodes int, command ...string) (string, error) {
	images, models := map[string]any{}, map[string]any{}
	for i := range n {
		key := fmt.Sprintf("m%03d", i)
		images[key] = map[string]any{"docker_image": nil}
		models[key] = map[string]any{"name": key, "command": command}
	}
	data, err := json.Marshal(map[string]any{
		"built_images": images, "built_models": models, "context": map[string]any{},
		"deployment_config": map[string]any{"target": "slurm", "slurm": map[string]any{"nodes": nodes, "time": "10"}},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, fmt.Sprintf("m-%d-%d-%s.json", n, nodes, command[len(command)-1]))
	return path, os.WriteFile(path, data, 0o600)
}

// run is one `assay run`. A run that measures nothing exits with 5.
func (s *suite) run(manifest, path string) (time.Duration, error) {
	cmd := exec.Command(s.binary, "run", "-q", "-m", manifest, "--runs", filepath.Join(s.dir, "runs"), "--perf-csv", "")
	cmd.Env = append(os.Environ(), "PATH="+path)
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

// bare is the scheduler's own way to wait for the same job.
func (s *suite) bare() error {
	var times []time.Duration
	for range 5 {
		cmd := exec.Command("sbatch", "-W", "-N2", "--ntasks-per-node=1", "-o", "/dev/null", "--wrap", "srun true")
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("sbatch: %w\n%s", err, out)
		}
		times = append(times, time.Since(start))
	}
	s.add("sbatch -W, srun true on 2 nodes", "", times)
	return nil
}

func (s *suite) repeat(what, target string, n int, manifest string) error {
	var times []time.Duration
	for range n {
		took, err := s.run(manifest, os.Getenv("PATH"))
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	s.add(what, target, times)
	return nil
}

func (s *suite) pair() error {
	m, err := s.manifest(1, 2, "true")
	if err != nil {
		return err
	}
	return s.repeat("assay run, true on 2 nodes, to the verdict", "≤ 1.5 s", 15, m)
}

func (s *suite) twenty() error {
	m, err := s.manifest(20, 1, "true")
	if err != nil {
		return err
	}
	return s.repeat("assay run, 20 jobs of one node at once", "≤ 4 s", 5, m)
}

func (s *suite) many() error {
	m, err := s.manifest(500, 1, "true")
	if err != nil {
		return err
	}
	return s.repeat("assay run, 500 jobs of one node at once", "", 1, m)
}

// The window in which runs that wait are watched, and how long their jobs sleep:
// all of them run from its beginning to its end.
const (
	windowBegin, windowEnd = 40 * time.Second, 100 * time.Second
	sleepSeconds           = "110"
)

// waiting runs 1 and 200 jobs that sleep, at the same time, and counts the
// questions to the scheduler and the processor time of each run with all its
// commands while all the jobs run.
func (s *suite) waiting() error {
	counts := []int{1, 200}
	var all []*waitingRun
	begin := time.Now()
	for _, n := range counts {
		w, err := s.startWaiting(n)
		if err != nil {
			return err
		}
		all = append(all, w)
	}
	time.Sleep(windowBegin - time.Since(begin))
	var first []sample
	for _, w := range all {
		v, err := w.sample()
		if err != nil {
			return err
		}
		first = append(first, v)
	}
	time.Sleep(windowEnd - time.Since(begin))
	for i, w := range all {
		v, err := w.sample()
		if err != nil {
			return err
		}
		took := v.at.Sub(first[i].at)
		s.rows = append(s.rows,
			[]string{fmt.Sprintf("questions to the scheduler a minute, %d running jobs", counts[i]), fmt.Sprintf("%.1f", float64(v.queries-first[i].queries)/took.Minutes()), "", "", "follows the age of the youngest job"},
			[]string{fmt.Sprintf("processor time of assay and its commands meanwhile, %d jobs", counts[i]), fmt.Sprintf("%.2f %% of a core", 100*(v.cpu-first[i].cpu).Seconds()/took.Seconds()), "", "", "≤ 1 %"})
	}
	for _, w := range all {
		if err := w.cmd.Wait(); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 5 {
				return err
			}
		}
	}
	return nil
}

// waitingRun is an `assay run` whose questions are counted.
type waitingRun struct {
	cmd *exec.Cmd
	log string
}

func (s *suite) startWaiting(n int) (*waitingRun, error) {
	m, err := s.manifest(n, 1, "sleep", sleepSeconds)
	if err != nil {
		return nil, err
	}
	path, log, err := s.counted(n)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.binary, "run", "-q", "-m", m, "--runs", filepath.Join(s.dir, "runs"), "--perf-csv", "")
	cmd.Env = append(os.Environ(), "PATH="+path)
	return &waitingRun{cmd, log}, cmd.Start()
}

// sample is what a run has used up to a moment.
type sample struct {
	at      time.Time
	queries int
	cpu     time.Duration // of the process and of the commands it waited for
}

func (w *waitingRun) sample() (sample, error) {
	v := sample{at: time.Now()}
	data, err := os.ReadFile(w.log)
	if err != nil {
		return v, err
	}
	v.queries = strings.Count(string(data), "\n")
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
	if err != nil {
		return v, err
	}
	// Fields 14 to 17 of proc(5): utime, stime, cutime, cstime, in ticks of 10 ms.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, f := range fields[11:15] {
		ticks, err := strconv.Atoi(f)
		if err != nil {
			return v, err
		}
		v.cpu += time.Duration(ticks) * 10 * time.Millisecond
	}
	return v, nil
}

// counted makes a PATH whose squeue and sacct write a line to a log and then do
// their work.
func (s *suite) counted(n int) (path, log string, err error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("tools-%d", n))
	log = filepath.Join(dir, "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", "", err
	}
	for _, tool := range []string{"squeue", "sacct", "scontrol", "sinfo"} {
		real, err := exec.LookPath(tool)
		if err != nil {
			return "", "", err
		}
		script := fmt.Sprintf("#!/bin/sh\necho %s >>'%s'\nexec '%s' \"$@\"\n", tool, log, real)
		if err := os.WriteFile(filepath.Join(dir, tool), []byte(script), 0o700); err != nil {
			return "", "", err
		}
	}
	return dir + ":" + os.Getenv("PATH"), log, nil
}

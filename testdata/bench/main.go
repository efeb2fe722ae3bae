// Command bench measures whole commands of bin/assay on this machine and prints
// a table. It judges nothing: the targets are shown beside the figures.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/perfcsv"
	"assay/pkg/plan"
	"assay/pkg/run"
	"assay/pkg/rundir"
	"assay/pkg/verdict"

	"assay/deploy"
)

func main() {
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figure is one row of the table.
type figure struct {
	what, target string
	median, best time.Duration
	rss          int64 // KiB, of the largest run
}

func bench() error {
	binary, err := filepath.Abs("bin/assay")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assay-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := suite{binary: binary, dir: dir}
	for _, step := range []func() error{b.version, b.lint, b.overhead, b.collect, b.appendRows} {
		if err := step(); err != nil {
			return err
		}
	}
	return b.print()
}

type suite struct {
	binary, dir string
	figures     []figure
}

// measure runs a command n times after one that is not counted. before prepares
// each run.
func (s *suite) measure(what, target string, n int, before func() error, argv ...string) (figure, error) {
	f := figure{what: what, target: target}
	var times []time.Duration
	for i := range n + 1 {
		if before != nil {
			if err := before(); err != nil {
				return f, err
			}
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = s.dir
		start := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(start)
		if err != nil {
			return f, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			f.rss = max(f.rss, usage.Maxrss)
		}
		if i > 0 {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	f.median, f.best = times[len(times)/2], times[0]
	return f, nil
}

func (s *suite) add(what, target string, n int, before func() error, argv ...string) error {
	f, err := s.measure(what, target, n, before, argv...)
	s.figures = append(s.figures, f)
	return err
}

func (s *suite) version() error {
	return s.add("assay version", "≤ 20 ms", 21, nil, s.binary, "version")
}

// lint checks a manifest of 10,000 models. It is written piece by piece: what
// this process holds would count as the memory of the ones it starts.
func (s *suite) lint() error {
	path := filepath.Join(s.dir, "large.json")
	if err := writeLarge(path, 10000); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("assay lint, 10,000 models, %.1f MB", float64(info.Size())/1e6)
	return s.add(what, "≤ 0.4 s, ≤ 250 MB", 11, nil, s.binary, "lint", path)
}

func writeLarge(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	key := func(i int) string { return fmt.Sprintf("ci-model_%05d_ubuntu.amd", i) }
	comma := func(i int) string {
		if i == n-1 {
			return ""
		}
		return ","
	}
	fmt.Fprint(w, "{\n \"built_images\": {\n")
	for i := range n {
		fmt.Fprintf(w, `  %q: {"model": %[1]q, "docker_image": "registry.example.org/ci/%s", "dockerfile": "docker/model.ubuntu.amd.Dockerfile",
   "base_docker": "rocm/pytorch:latest", "local_image": false, "registry_image": null, "gpu_vendor": "AMD", "build_duration": 61.25}%s`+"\n", key(i), key(i), comma(i))
	}
	fmt.Fprint(w, " },\n \"built_models\": {\n")
	for i := range n {
		fmt.Fprintf(w, `  %q: {"name": "model_%d", "url": "", "dockerfile": "docker/model", "scripts": "scripts/model/run.sh", "n_gpus": "8",
   "owner": "team@example.org", "training_precision": "fp16", "multiple_results": "results.csv", "tags": ["pyt", "train"], "timeout": -1,
   "args": "--model %[1]s --batch 32", "data": "imagenet", "skip_gpu_arch": "", "additional_docker_run_options": "--shm-size 16G",
   "env_vars": {"HSA_NO_SCRATCH_RECLAIM": "1", "NCCL_DEBUG": "WARN"},
   "metrics": [{"name": "tokensPerSecond", "better": "higher", "help": "tokens that were trained on in a second, all ranks together"}]}%[3]s`+"\n", key(i), i, comma(i))
	}
	fmt.Fprint(w, " },\n \"context\": {\"gpu_vendor\": \"AMD\", \"guest_os\": \"UBUNTU\"}\n}\n")
	return errors.Join(w.Flush(), f.Close())
}

// overhead compares a run of one rank of `true` with the bare command.
func (s *suite) overhead() error {
	m := `{"built_images": {"a": {"docker_image": null}}, "built_models": {"a": {"name": "a", "command": ["true"]}}, "context": {}}`
	path := filepath.Join(s.dir, "true.json")
	if err := os.WriteFile(path, []byte(m), 0o600); err != nil {
		return err
	}
	bare, err := s.measure("true, bare", "", 21, nil, "true")
	if err != nil {
		return err
	}
	// A run that measures nothing exits with 5; the shell makes that a success.
	f, err := s.measure("assay run, one rank of true", "", 21, nil, "sh", "-c", `"$0" run -q -m "$1" --runs "$2"; test $? -eq 5`,
		s.binary, path, filepath.Join(s.dir, "runs"))
	if err != nil {
		return err
	}
	over := figure{what: "the same above the bare command", target: "≤ 60 ms", median: f.median - bare.median, best: f.best - bare.best}
	s.figures = append(s.figures, bare, f, over)
	return nil
}

// collect judges a run of 10,000 ranks that have ended.
func (s *suite) collect() error {
	const ranks = 10000
	now := time.Now().UTC().Truncate(time.Millisecond)
	job := plan.Job{Key: "wide", ID: "wide", Model: "wide", Scope: "job", NNodes: ranks, NProcPerNode: 1, RanksPerNode: 1, WorldSize: ranks,
		Launcher: "none", Deployment: "local", Program: plan.Program{Command: []string{"true"}}, Expect: verdict.Expectation{WorldSize: ranks}}
	manifest := []byte(`{"built_images": {"wide": {"docker_image": null}}, "built_models": {"wide": {"name": "wide", "command": ["true"], "distributed": {"nnodes": 10000}}}, "context": {}}`)
	l := rundir.Ledger{Version: rundir.LedgerVersion, RunID: "wide", Nonce: "n", ManifestDigest: run.Digest(manifest), Target: "local",
		CreatedAt: now, Concurrency: 1, Jobs: []rundir.Entry{{ID: "wide", Key: "wide"}}}
	r, err := rundir.Create(filepath.Join(s.dir, "wide-runs"), l, manifest)
	if err != nil {
		return err
	}
	if err := r.Commit(); err != nil {
		return err
	}
	dir, err := r.MakeAttemptDir("wide", 1)
	if err != nil {
		return err
	}
	a := plan.Attempt{Version: 1, RunID: "wide", Nonce: "n", ManifestDigest: l.ManifestDigest, Number: 1, Dir: dir, Job: job}
	if err := writeJSON(filepath.Join(dir, rundir.JobFile), a); err != nil {
		return err
	}
	if err := r.WriteLaunch(dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &deploy.Handle{Target: "local"}}); err != nil {
		return err
	}
	if err := r.AppendObservation(dir, evidence.Observation{Source: "local", Phase: evidence.PhaseEnded, Word: "ENDED", At: now}); err != nil {
		return err
	}
	for rank := range ranks {
		if err := writeRank(dir, a, rank, now); err != nil {
			return err
		}
	}
	again := func() error { return ignoreMissing(os.Remove(filepath.Join(dir, rundir.VerdictFile))) }
	return s.add("assay collect, 10,000 ranks", "≤ 0.5 s", 7, again, s.binary, "collect", "-q", r.Dir)
}

// writeRank leaves what a rank that measured something leaves.
func writeRank(dir string, a plan.Attempt, rank int, now time.Time) error {
	d := rundir.RankDir(dir, rank)
	if err := os.MkdirAll(d, 0o700); err != nil {
		return err
	}
	id := a.Identity(rank)
	host := fmt.Sprintf("node%05d", rank)
	return errors.Join(
		writeJSON(filepath.Join(d, rundir.BeginFile), evidence.Begin{Version: 1, Identity: id, Host: host, Node: host, StartedAt: now}),
		writeJSON(filepath.Join(d, rundir.MetricsFile), evidence.Metrics{Version: 1, Readings: []metric.Reading{
			{Name: "triad", Value: 12.5, Text: "12.5", Unit: "GBs", Source: metric.SourcePerformance, Place: "stdout:1"}}}),
		writeJSON(filepath.Join(d, rundir.EndFile), evidence.End{Version: 1, Identity: id, Host: host, Node: host, StartedAt: now, FinishedAt: now.Add(time.Second),
			ElapsedSeconds: 1, Outcome: evidence.OutcomeExited, Metrics: true}),
	)
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// appendRows compares an append to a perf.csv of 1,000,000 rows with one to an
// empty file.
func (s *suite) appendRows() error {
	row := perfcsv.Row{Model: "model", Performance: "12.5", Metric: "triad", Status: perfcsv.StatusSuccess, Verdict: "PASS", RunID: "run"}
	large := filepath.Join(s.dir, "large.csv")
	batch := make([]perfcsv.Row, 1000)
	for i := range batch {
		batch[i] = row
	}
	for range 1000 {
		if _, err := perfcsv.Append(large, batch); err != nil {
			return err
		}
	}
	info, err := os.Stat(large)
	if err != nil {
		return err
	}
	for _, c := range []struct{ what, path string }{
		{"append a row to an empty perf.csv", filepath.Join(s.dir, "empty.csv")},
		{fmt.Sprintf("append a row to one of 1,000,000 rows (%.0f MB)", float64(info.Size())/1e6), large},
	} {
		var times []time.Duration
		for range 101 {
			if c.path != large {
				if err := ignoreMissing(os.Remove(c.path)); err != nil {
					return err
				}
			}
			start := time.Now()
			if _, err := perfcsv.Append(c.path, []perfcsv.Row{row}); err != nil {
				return err
			}
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		s.figures = append(s.figures, figure{what: c.what, target: "the same", median: times[len(times)/2], best: times[0]})
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *suite) print() error {
	fmt.Printf("%s, %s/%s, %d CPUs\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHAT\tMEDIAN\tBEST\tPEAK MEMORY\tTARGET")
	for _, f := range s.figures {
		memory := "-"
		if f.rss > 0 {
			memory = fmt.Sprintf("%.0f MB", float64(f.rss)/1e3)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.what, round(f.median), round(f.best), memory, f.target)
	}
	return w.Flush()
}

func round(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}

// Package collect reads the evidence of a job from its attempt directory. It
// concludes nothing: what is not there is reported as not there.
package collect

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"

	"assay/pkg/evidence"
	"assay/pkg/hostlist"
	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// maxMarker is the largest marker or metrics.json that is read, in bytes.
const maxMarker = 256 << 20

// Evidence reads all that the directory dir of attempt a says. cancel is the
// run's request to end, nil when there is none. An error means that the
// directory could not be read, not that something is missing from it.
func Evidence(dir string, a plan.Attempt, cancel *evidence.Cancel) (evidence.Evidence, error) {
	e := evidence.Evidence{Job: a.Job.ID, Attempt: a.Number, WorldSize: a.Job.WorldSize, Cancel: cancel}
	launch, err := rundir.ReadLaunch(dir)
	if err != nil {
		return e, err
	}
	e.Launch = launch.Launch
	if e.Scheduler, err = rundir.LastObservation(dir); err != nil {
		return e, err
	}
	e.Ranks = make([]evidence.Rank, a.Job.WorldSize)
	over := e.Scheduler != nil && e.Scheduler.Phase.Over()
	placed := placement(e.Scheduler, a.Job)
	eachRank(len(e.Ranks), func(rank int) {
		r := readRank(rundir.RankDir(dir, rank), a.Identity(rank), a.Job, over)
		if note := e.Scheduler.Note(rank); note != "" && r.State != evidence.RankEnded && r.Unreadable == "" {
			r.Unreadable = note
		}
		if r.Node == "" && r.Host == "" && placed != nil {
			r.Node = placed[rank/max(a.Job.RanksPerNode, 1)]
		}
		e.Ranks[rank] = r
	})
	return e, nil
}

// placement is the node of each node rank, by what the scheduler says of the job's
// nodes: ranks that left nothing cannot say where they were to run. It is nil when
// that is not known.
func placement(o *evidence.Observation, j plan.Job) []string {
	if o == nil || o.Nodes == "" {
		return nil
	}
	hosts, err := hostlist.Expand(o.Nodes)
	if err != nil || len(hosts) != j.NNodes || j.WorldSize != j.NNodes*max(j.RanksPerNode, 1) {
		return nil
	}
	return hosts
}

// eachRank calls f for every rank, on all processors: a job has up to tens of
// thousands of ranks, and each is a few small files.
func eachRank(n int, f func(rank int)) {
	workers := min(runtime.GOMAXPROCS(0)*2, n)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for rank := w; rank < n; rank += workers {
				f(rank)
			}
		})
	}
	wg.Wait()
}

// readRank reads the folder of one rank. over says that the target saw the end
// of the job, so that a rank without an end marker runs no more.
func readRank(dir string, want evidence.Identity, job plan.Job, over bool) evidence.Rank {
	r := evidence.Rank{Rank: want.Rank}
	var end evidence.End
	switch found := readMarker(filepath.Join(dir, rundir.EndFile), &end, &r); {
	case found && end.Identity != want:
		r.Stale = mismatch(rundir.EndFile, end.Identity, want)
	case found:
		fillEnd(&r, end)
		readMetrics(dir, end, job, &r)
		return r
	}
	var begin evidence.Begin
	switch found := readMarker(filepath.Join(dir, rundir.BeginFile), &begin, &r); {
	case found && begin.Identity != want:
		r.Stale = mismatch(rundir.BeginFile, begin.Identity, want)
		r.State = evidence.RankNotStarted
	case found:
		r.Host, r.Node, r.StartedAt = begin.Host, begin.Node, begin.StartedAt
		r.State = evidence.RankRunning
		if over {
			r.State = evidence.RankLost
		}
	default:
		r.State = evidence.RankNotStarted
	}
	return r
}

func fillEnd(r *evidence.Rank, end evidence.End) {
	r.State = evidence.RankEnded
	r.Host, r.Node = end.Host, end.Node
	r.Outcome, r.ExitCode, r.Signal = end.Outcome, end.ExitCode, end.Signal
	r.Code, r.Message = end.Code, end.Message
	r.Skip, r.Said, r.QuietSeconds = end.Skip, end.Said, end.QuietSeconds
	r.ElapsedSeconds, r.StartedAt, r.FinishedAt = end.ElapsedSeconds, end.StartedAt, end.FinishedAt
	r.Steps, r.Results, r.Lost = end.Steps, end.Results, end.Lost
}

// readMarker reads a marker. One that is missing or empty is "not yet"; one that
// cannot be understood is "not yet" as well, and is remembered.
func readMarker(path string, v any, r *evidence.Rank) bool {
	data, err := regular.ReadFile(path, maxMarker)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(data) == 0) {
		return false
	}
	if err == nil {
		err = parseMarker(data, v)
	}
	if err != nil {
		r.Unreadable = fmt.Sprintf("%s: %v", filepath.Base(path), err)
		return false
	}
	return true
}

// parseMarker looks at the version first: the rest of an unknown one may mean
// anything.
func parseMarker(data []byte, v any) error {
	var format struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &format); err != nil {
		return err
	}
	if format.Version != evidence.MarkerVersion {
		return fmt.Errorf("it has format version %d, this assay knows %d", format.Version, evidence.MarkerVersion)
	}
	return json.Unmarshal(data, v)
}

// mismatch says which part of a marker's identity is not the expected one.
func mismatch(file string, got, want evidence.Identity) string {
	type field struct {
		name      string
		got, want any
	}
	for _, f := range []field{
		{"run", got.RunID, want.RunID},
		{"nonce", got.Nonce, want.Nonce},
		{"manifest digest", got.ManifestDigest, want.ManifestDigest},
		{"job", got.Job, want.Job},
		{"attempt", got.Attempt, want.Attempt},
		{"rank", got.Rank, want.Rank},
		{"world size", got.WorldSize, want.WorldSize},
	} {
		if f.got != f.want {
			return fmt.Sprintf("%s is of %s %v, not %v", file, f.name, f.got, f.want)
		}
	}
	return ""
}

// readMetrics adds what an ended rank measured.
func readMetrics(dir string, end evidence.End, job plan.Job, r *evidence.Rank) {
	if job.SkipMetrics {
		return
	}
	if end.Metrics {
		var m evidence.Metrics
		switch {
		case readMarker(filepath.Join(dir, rundir.MetricsFile), &m, r):
			r.Readings = append(r.Readings, m.Readings...)
			r.Problems = append(r.Problems, m.Problems...)
		case r.Unreadable == "":
			r.Unreadable = rundir.MetricsFile + " is missing or empty, though the end marker says that it was written"
		}
	}
	if end.Results == nil || end.Results.File == "" {
		return
	}
	rows, problems, err := readResults(filepath.Join(dir, rundir.ResultsDir, end.Results.File), end.Results.Declared)
	if err != nil && r.Unreadable == "" {
		r.Unreadable = fmt.Sprintf("the kept results file %s: %v", end.Results.File, err)
	}
	r.Readings = append(r.Readings, rows...)
	r.Problems = append(r.Problems, problems...)
}

// readResults reads the kept copy of a results CSV.
func readResults(path, declared string) ([]metric.Reading, []metric.Problem, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	rows, _, problems := metric.ParseResults(f, declared)
	return rows, problems, nil
}

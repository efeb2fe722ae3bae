package rank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// reserveSize is what is set aside on disk for the end marker, in bytes, so that
// a workload that fills the disk cannot take its own evidence away.
const reserveSize = 64 << 10

const reserveFile = ".reserve"

func identity(a plan.Attempt, rank int) evidence.Identity {
	return evidence.Identity{
		RunID: a.RunID, Nonce: a.Nonce, ManifestDigest: a.ManifestDigest,
		Job: a.Job.ID, Attempt: a.Number, Rank: rank, WorldSize: a.Job.WorldSize,
	}
}

// refuseSecondStart fails when this rank of this attempt has begun before. What
// another run left in the same place does not count and is removed.
func refuseSecondStart(dir string, id evidence.Identity) error {
	path := filepath.Join(dir, rundir.BeginFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "rank %d: %w", id.Rank, err)
	}
	var b evidence.Begin
	if json.Unmarshal(data, &b) == nil && b.Identity == id {
		return exitcode.Errorf(exitcode.Error,
			"rank %d of job %s, attempt %d, has already begun: process %d on %s at %s; it is not started twice",
			id.Rank, id.Job, id.Attempt, b.PID, b.Host, b.StartedAt.Format(time.RFC3339))
	}
	for _, name := range []string{
		rundir.BeginFile, rundir.EndFile, rundir.StdoutFile, rundir.StderrFile,
		rundir.MetricsFile, rundir.ResultsDir, rundir.WorkDir,
	} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return exitcode.Errorf(exitcode.Error, "rank %d: left by another run: %w", id.Rank, err)
		}
	}
	return nil
}

// writeBegin makes the begin marker durable.
func (w *wrapper) writeBegin() error {
	err := writeJSON(filepath.Join(w.dir, rundir.BeginFile), w.fileMode, evidence.Begin{
		Version: evidence.MarkerVersion, Identity: w.end.Identity,
		Host: w.end.Host, Node: w.end.Node, PID: os.Getpid(), StartedAt: w.end.StartedAt,
	})
	if err != nil {
		return exitcode.Errorf(exitcode.Error, "rank %d: the begin marker cannot be written, so nothing was started: %w", w.rank, err)
	}
	return nil
}

// finish writes metrics.json and the end marker. Room is made when the disk is
// full: first what was set aside, then the ends of the logs.
func (w *wrapper) finish() error {
	w.end.FinishedAt = time.Now().UTC()
	w.end.ElapsedSeconds = w.end.FinishedAt.Sub(w.end.StartedAt).Seconds()
	_ = os.Remove(filepath.Join(w.dir, reserveFile))
	if err := w.writeMetrics(); err != nil {
		w.end.Lost = sentence(w.end.Lost, fmt.Sprintf("metrics.json could not be written: %v", err))
	}
	path := filepath.Join(w.dir, rundir.EndFile)
	err := writeJSON(path, w.fileMode, w.end)
	for i := 0; err != nil && i < 2; i++ {
		w.stdout.giveBack(reserveSize)
		w.stderr.giveBack(reserveSize)
		w.end.Stdout, w.end.Stderr = w.stdout.log(), w.stderr.log()
		err = writeJSON(path, w.fileMode, w.end)
	}
	if err != nil {
		return exitcode.Errorf(exitcode.Error,
			"rank %d ended (%v, exit code %d) but its end marker cannot be written: %w", w.rank, w.end.Outcome, w.end.ExitCode, err)
	}
	return nil
}

// writeMetrics writes metrics.json durably when anything was read.
func (w *wrapper) writeMetrics() error {
	w.live.stop()
	m := w.metrics()
	if len(m.Readings) == 0 && len(m.Problems) == 0 {
		return nil
	}
	if err := writeJSON(filepath.Join(w.dir, rundir.MetricsFile), w.fileMode, m); err != nil {
		return err
	}
	w.end.Metrics = true
	return nil
}

// metrics is what stands: picked up from the output, then the workload's own file.
func (w *wrapper) metrics() evidence.Metrics {
	m := w.passedBy()
	m.Readings = append(m.Readings, w.fileReadings...)
	m.Problems = append(m.Problems, w.fileProblems...)
	return m
}

// passedBy is what was picked up from the output so far.
func (w *wrapper) passedBy() evidence.Metrics {
	readings, problems := w.collector.Result()
	return evidence.Metrics{
		Version: evidence.MarkerVersion, Readings: append([]metric.Reading{}, readings...), Problems: problems,
	}
}

func writeJSON(path string, mode fs.FileMode, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(data, '\n'), mode)
}

// reserve sets room aside. A filesystem that cannot do that goes without.
func reserve(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, reserveFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	_ = unix.Fallocate(int(f.Fd()), 0, 0, reserveSize)
	_ = f.Close()
}

// makeRankDir creates the directory of a rank, which is as private or as shared
// as the attempt directory it lies in. That has to be there: where it is not,
// the evidence would end up on a disk that nobody looks at.
func makeRankDir(attempt, dir string) (fs.FileMode, error) {
	info, err := os.Stat(attempt)
	if err != nil {
		return 0, fmt.Errorf("the attempt directory cannot be seen from this node; the run directory must be on a filesystem that every node mounts: %w", err)
	}
	mode := info.Mode() & (fs.ModePerm | fs.ModeSetgid)
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := makeDir(d, mode); err != nil {
			return 0, err
		}
	}
	return mode, nil
}

// makeDir creates a directory with exactly this mode, unless it is there.
func makeDir(path string, mode fs.FileMode) error {
	err := os.Mkdir(path, mode.Perm())
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

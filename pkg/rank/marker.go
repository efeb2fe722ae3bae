package rank

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/metric"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// patience is how long the wrapper tries to write what it knows to a full disk.
const patience = 10 * time.Second

// finish writes metrics.json and the end marker. Room is made when the disk is
// full: first what was set aside, then the ends of the logs; then somebody else
// may make room.
func (w *wrapper) finish() error {
	w.end.FinishedAt = time.Now().UTC()
	w.end.ElapsedSeconds = (w.end.FinishedAt.Sub(w.end.StartedAt) - w.waited).Seconds()
	w.live.stop()
	w.end.Skip, w.end.Said = w.reader.words()
	if err := w.regain(); err != nil {
		return w.unwritten(err)
	}
	_ = os.Remove(w.file(reserveFile))
	began := time.Now()
	if err := insist(w.writeMetrics, w.makeRoom, patience/2); err != nil {
		w.end.Lost = sentence(w.end.Lost, fmt.Sprintf("metrics.json could not be written: %v", err))
	}
	end := func() error {
		w.end.Stdout, w.end.Stderr = w.stdout.log(), w.stderr.log()
		return w.put(rundir.EndFile, w.end)
	}
	if err := insist(end, w.makeRoom, patience-time.Since(began)); err != nil {
		return w.unwritten(err)
	}
	w.restoreBegin()
	return nil
}

// makeRoom gives up the ends of the logs.
func (w *wrapper) makeRoom() {
	w.stdout.giveBack(reserveSize)
	w.stderr.giveBack(reserveSize)
}

func (w *wrapper) unwritten(err error) error {
	return exitcode.Errorf(exitcode.Error,
		"rank %d ended (%v, exit code %d) but its end marker cannot be written: %w", w.rank, w.end.Outcome, w.end.ExitCode, err)
}

// restoreBegin puts the begin marker back when the workload changed it. The end
// marker says all that counts, so nothing depends on it.
func (w *wrapper) restoreBegin() {
	var now evidence.Begin
	data, err := regular.ReadFile(w.file(rundir.BeginFile), maxMarker)
	if err == nil && json.Unmarshal(data, &now) == nil && now == w.begin() {
		return
	}
	if err := w.put(rundir.BeginFile, w.begin()); err != nil {
		w.note("the begin marker cannot be restored: %v", err)
	}
}

// put writes a file of the wrapper's own, whatever the workload has put in its
// place.
func (w *wrapper) put(name string, v any) error {
	path := w.file(name)
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return durable.WriteJSON(path, v, w.fileMode)
}

// writeMetrics writes metrics.json durably when anything was read.
func (w *wrapper) writeMetrics() error {
	m := w.metrics()
	if len(m.Readings) == 0 && len(m.Problems) == 0 {
		return os.RemoveAll(w.file(rundir.MetricsFile)) // what lies there is not ours
	}
	if err := w.put(rundir.MetricsFile, m); err != nil {
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
	readings, problems := w.reader.collector.Result()
	return evidence.Metrics{
		Version: evidence.MarkerVersion, Readings: append([]metric.Reading{}, readings...), Problems: problems,
	}
}

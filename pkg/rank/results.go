package rank

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// maxMetricsJSON is the largest metrics.json that is read, in bytes.
const maxMetricsJSON = 16 << 20

// stamp tells whether a file is the one that was there before. Times are of the
// same host and filesystem, and only compared for equality.
type stamp struct {
	size     int64
	modified time.Time
	inode    uint64
}

// stampOf follows links; ok is false when there is no such file.
func stampOf(path string) (s stamp, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, false
	}
	s = stamp{size: info.Size(), modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s, true
}

// resultsWatch knows where results may appear and what lay there before.
type resultsWatch struct {
	declared   string
	candidates []string
	before     map[string]stamp
}

// watchResults lists the places of the declared results file, and remembers what
// is there: a file that an earlier run left is no result of this one.
func (w *wrapper) watchResults(p *prepared) *resultsWatch {
	r := &resultsWatch{declared: w.attempt.Job.Expect.MultipleResults, before: map[string]stamp{}}
	r.candidates = w.resultsCandidates(p)
	for _, path := range r.candidates {
		if s, ok := stampOf(path); ok {
			r.before[path] = s
		}
	}
	for _, place := range w.nearbyDirs(p) {
		for _, path := range csvFiles(place) {
			if s, ok := stampOf(path); ok {
				r.before[path] = s
			}
		}
	}
	return r
}

// resultsCandidates: the results directory, the working directory and its parent
// (scripts write ../results.csv), and for rank 0 the directory of the program. A
// path that is absolute or leaves its directory is looked for as it stands.
func (w *wrapper) resultsCandidates(p *prepared) []string {
	declared := w.attempt.Job.Expect.MultipleResults
	if declared == "" {
		return nil
	}
	if filepath.IsAbs(declared) {
		return []string{filepath.Clean(declared)}
	}
	var out []string
	add := func(dir string) {
		if path := filepath.Join(dir, declared); !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	results := filepath.Join(w.dir, rundir.ResultsDir)
	if filepath.IsLocal(declared) {
		add(results)
		if path := w.outputCSV(); !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	add(p.work)
	if filepath.IsLocal(declared) && !strings.Contains(filepath.Clean(declared), "/") && !ownFile(declared) {
		add(w.dir)
	}
	if w.rank == 0 && p.source != "" {
		add(p.source)
	}
	return out
}

// ownFile reports whether the wrapper itself keeps a file of this name.
func ownFile(name string) bool {
	return slices.Contains([]string{
		rundir.BeginFile, rundir.EndFile, rundir.StdoutFile, rundir.StderrFile,
		rundir.MetricsFile, rundir.WrapperLog, rundir.ResultsDir, rundir.WorkDir,
	}, filepath.Clean(name))
}

// collect looks for the results file and the workload's metrics.json.
func (w *wrapper) collect(p *prepared) {
	if w.end.Outcome == evidence.OutcomeRefused {
		return
	}
	if !w.attempt.Job.SkipMetrics {
		w.readMetricsJSON()
	}
	if p.results.declared == "" {
		return
	}
	found := w.findResults(p)
	if found.File == "" {
		found.Nearby = w.nearby(p)
	}
	w.end.Results = found
}

// findResults takes the first candidate that is new, and copies it into the
// results directory unless it is there.
func (w *wrapper) findResults(p *prepared) *evidence.Results {
	r := &evidence.Results{Declared: p.results.declared}
	for _, path := range p.results.candidates {
		r.Tried = append(r.Tried, path)
		now, ok := stampOf(path)
		if !ok {
			continue
		}
		if before, was := p.results.before[path]; was && before == now {
			r.Stale = append(r.Stale, path)
			continue
		}
		name, err := w.keepResults(path)
		if err != nil {
			w.note("results: %v", err)
			w.end.Lost = sentence(w.end.Lost, fmt.Sprintf("results file %s could not be kept: %v", path, err))
			continue
		}
		r.File, r.Path = name, path
		return r
	}
	return r
}

// keepResults makes a durable copy in the results directory and returns its name
// there. A file that lies there already is only made durable.
func (w *wrapper) keepResults(path string) (string, error) {
	src, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer src.Close()
	dir := filepath.Join(w.dir, rundir.ResultsDir)
	if name, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(name) {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			return name, errors.Join(src.Sync(), durable.SyncDir(filepath.Dir(path)))
		}
	}
	name := filepath.Base(path)
	if err := w.makeDir(rundir.ResultsDir); err != nil { // the workload may have removed it
		return "", err
	}
	return name, durable.Copy(filepath.Join(dir, name), src, w.fileMode)
}

// readMetricsJSON reads the metrics.json that the workload left.
func (w *wrapper) readMetricsJSON() {
	for _, place := range []string{rundir.ResultsDir, rundir.WorkDir} {
		name := place + "/" + rundir.MetricsFile
		data, err := regular.ReadFile(w.file(name), maxMetricsJSON)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			w.fileProblems = append(w.fileProblems, metric.Problem{
				Code: metric.CodeUnreadable, Message: unreadable(name, err), Source: metric.SourceMetricsJSON,
			})
			continue
		}
		readings, problems := metric.ParseJSON(data, w.attempt.Job.Expect.Declared(), name)
		w.fileReadings = append(w.fileReadings, readings...)
		w.fileProblems = append(w.fileProblems, problems...)
		return
	}
}

// unreadable says why a file of the workload cannot be read.
func unreadable(name string, err error) string {
	switch {
	case errors.Is(err, regular.ErrTooLarge):
		return fmt.Sprintf("%s is too large: it may have at most %d MiB", name, maxMetricsJSON>>20)
	case errors.Is(err, regular.ErrNotRegular):
		return name + " is not a regular file"
	}
	return fmt.Sprintf("%s cannot be read: %v", name, cause(err))
}

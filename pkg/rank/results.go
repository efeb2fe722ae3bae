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
	declared string
	places   []*place
	nearby   map[string]stamp   // CSV files
	metrics  map[string]*digest // of what lay in the places of metrics.json
}

// watchResults lists the places of the declared results file, and claims those
// that are not the rank's own.
func (w *wrapper) watchResults(p *prepared) *resultsWatch {
	r := &resultsWatch{declared: w.attempt.Job.Expect.MultipleResults}
	for _, path := range w.resultsCandidates(p) {
		r.places = append(r.places, &place{path: path})
	}
	for _, at := range r.places {
		w.secure(at)
	}
	return r
}

// lookBefore remembers what is there right before the workload starts: what an
// earlier run or a pre-script left is no result of this one.
func (w *wrapper) lookBefore(p *prepared) {
	r := p.results
	for _, at := range r.places {
		w.secure(at)
		at.before = digestOf(at.path)
	}
	r.nearby, r.metrics = map[string]stamp{}, map[string]*digest{}
	for _, in := range w.nearbyDirs(p) {
		for _, path := range csvFiles(in) {
			if s, ok := stampOf(path); ok {
				r.nearby[path] = s
			}
		}
	}
	for _, name := range metricsPlaces() {
		r.metrics[name] = digestOf(w.file(name))
	}
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

// collect looks for the results file and the workload's metrics.json. It comes
// after the post-scripts, which may make them of what the workload left.
func (w *wrapper) collect(p *prepared) {
	if w.end.Outcome == evidence.OutcomeRefused || p.results.nearby == nil {
		return
	}
	if !w.attempt.Job.SkipMetrics {
		w.readMetricsJSON(p)
	}
	if p.results.declared == "" {
		w.suggest(p)
		return
	}
	found := w.findResults(p)
	if found.File == "" {
		found.Nearby = w.nearby(p)
	}
	w.end.Results = found
}

// suggest names what looks like results when none are declared and nothing was
// measured.
func (w *wrapper) suggest(p *prepared) {
	if w.attempt.Job.SkipMetrics || len(w.metrics().Readings) > 0 {
		return
	}
	if nearby := w.nearby(p); len(nearby) > 0 {
		w.end.Results = &evidence.Results{Nearby: nearby}
	}
}

// findResults takes the first place with something new in it, and copies that
// into the results directory unless it is there.
func (w *wrapper) findResults(p *prepared) *evidence.Results {
	r := &evidence.Results{Declared: p.results.declared}
	for _, at := range p.results.places {
		r.Tried = append(r.Tried, at.path)
		if _, ok := stampOf(at.path); !ok {
			continue
		}
		name, err := w.keepResults(at)
		var no *objected
		switch {
		case errors.As(err, &no):
			r.Refused = append(r.Refused, no.Error())
		case err != nil:
			w.note("results: %v", err)
			w.end.Lost = sentence(w.end.Lost, fmt.Sprintf("results file %s could not be kept: %v", at.path, err))
		case name == "":
			r.Stale = append(r.Stale, at.path)
		default:
			r.File, r.Path = name, at.path
			return r
		}
	}
	return r
}

// objected says that something new does not count, and why.
type objected struct{ path, why string }

func (o *objected) Error() string { return o.path + " " + o.why }

// keepResults makes a durable copy of what is new in the results directory and
// returns its name there, or "" when nothing is new. A file that lies there
// already is only made durable.
func (w *wrapper) keepResults(at *place) (string, error) {
	src, err := regular.Open(at.path)
	if err != nil {
		return "", err
	}
	defer src.Close()
	fresh, whole, err := at.before.fresh(src)
	if fresh == nil || err != nil {
		return "", err
	}
	dir := filepath.Join(w.dir, rundir.ResultsDir)
	name := filepath.Base(at.path)
	if inside, err := filepath.Rel(dir, at.path); err == nil && filepath.IsLocal(inside) {
		name = inside
		if info, err := os.Lstat(at.path); whole && err == nil && info.Mode().IsRegular() {
			return name, errors.Join(src.Sync(), durable.SyncDir(filepath.Dir(at.path)))
		}
	}
	if err := w.makeDir(rundir.ResultsDir); err != nil { // the workload may have removed it
		return "", err
	}
	if why := at.objection(); why != "" {
		return "", &objected{at.path, why}
	}
	err = durable.Copy(filepath.Join(dir, name), fresh, w.fileMode)
	if why := at.objection(); err == nil && why != "" { // said while it was copied
		return "", &objected{at.path, why}
	}
	return name, err
}

// readMetricsJSON reads the metrics.json that the workload left.
func (w *wrapper) readMetricsJSON(p *prepared) {
	for _, name := range metricsPlaces() {
		if before, now := p.results.metrics[name], digestOf(w.file(name)); before != nil && now != nil && *before == *now {
			w.note("%s is as it was before the workload, and does not count", name)
			continue
		}
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

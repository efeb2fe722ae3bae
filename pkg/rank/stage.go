package rank

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"assay/pkg/rundir"
)

// stageLimit is the number of entries above which a directory is not linked.
const stageLimit = 4096

// stage fills the rank's working directory with links to the entries of source,
// so that the workload finds what lies beside it and still writes into a
// directory of its own. Never linked: what the workload is going to write as its
// results, because a leftover of an earlier run must not be taken for them and
// ranks must not share them, and the directory that this run lies in.
func (w *wrapper) stage(source string) {
	if source == "" {
		return
	}
	dir, err := os.Open(source)
	if err != nil {
		w.note("nothing is linked into the working directory: %v", err)
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(stageLimit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		w.note("nothing is linked into the working directory: %v", err)
		return
	}
	if len(names) > stageLimit {
		w.note("%s has more than %d entries, so none is linked into the working directory", source, stageLimit)
		return
	}
	skip := w.neverLinked(source)
	for _, name := range names {
		if !skip[name] {
			w.link(filepath.Join(source, name))
		}
	}
}

// link puts a link to target into the working directory.
func (w *wrapper) link(target string) {
	name := filepath.Join(w.dir, rundir.WorkDir, filepath.Base(target))
	if err := os.Symlink(target, name); err != nil && !errors.Is(err, os.ErrExist) {
		w.note("not linked: %v", err)
	}
}

func (w *wrapper) neverLinked(source string) map[string]bool {
	skip := map[string]bool{"perf.csv": true, rundir.MetricsFile: true}
	if d := filepath.Clean(w.attempt.Job.Expect.MultipleResults); filepath.IsLocal(d) && d != "." {
		first, _, _ := strings.Cut(d, string(filepath.Separator))
		skip[first] = true
		skip[filepath.Base(d)] = true
	}
	if inside, err := filepath.Rel(realPath(source), realPath(w.attempt.Dir)); err == nil && filepath.IsLocal(inside) {
		first, _, _ := strings.Cut(inside, string(filepath.Separator))
		skip[first] = true
	}
	return skip
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

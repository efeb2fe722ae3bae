package rank

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// launch starts a program of the rank with its output going to the logs. The
// guard follows the first one: it costs the workload no time.
func (w *wrapper) launch(p *prepared, c command) (*child, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	attr := func() *os.ProcAttr {
		return &os.ProcAttr{Dir: p.work, Env: p.env, Files: []*os.File{null, w.stdout.w, w.stderr.w}}
	}
	started, err := w.tree.start(c.path, c.argv, attr())
	if errors.Is(err, syscall.ENOEXEC) && !isBinary(c.path) { // a script without `#!`
		if bash, ferr := p.find(append([]string{"bash", c.path}, c.argv[1:]...)); ferr == nil {
			started, err = w.tree.start(bash.path, bash.argv, attr())
		}
	}
	if err == nil && w.guard == nil {
		w.guard = startGuard(w.tree, filepath.Join(w.dir, rundir.ResultsDir))
	}
	return started, err
}

// isBinary reports whether a file is an ELF program: one of another architecture
// must not be read as a script.
func isBinary(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "\x7fELF"
}

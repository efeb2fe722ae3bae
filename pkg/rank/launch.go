package rank

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// launchStep starts a pre- or post-script. Its output goes to the logs of the
// workload, and is no word of the workload.
func (w *wrapper) launchStep(p *prepared, c command, who string) (*child, error) {
	w.label(who)
	return w.launch(p, c, w.stdout.steps.w, w.stderr.steps.w)
}

// launchWorkload starts the workload.
func (w *wrapper) launchWorkload(p *prepared, c command) (*child, error) {
	w.label(workloadLabel)
	w.spoke.Store(int64(time.Since(w.end.StartedAt)))
	return w.launch(p, c, w.stdout.workload.w, w.stderr.workload.w)
}

// label says in the logs whose words come next.
func (w *wrapper) label(who string) {
	w.stdout.begin(who)
	w.stderr.begin(who)
}

// launch starts a program of the rank. The guard follows the first one: it costs
// the workload no time.
func (w *wrapper) launch(p *prepared, c command, stdout, stderr *os.File) (*child, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	attr := func() *os.ProcAttr {
		return &os.ProcAttr{Dir: p.work, Env: p.env, Files: []*os.File{null, stdout, stderr}}
	}
	started, err := w.tree.start(c.path, c.argv, attr())
	if errors.Is(err, syscall.ENOEXEC) && !isBinary(c.path) { // a script without `#!`
		if bash, ferr := p.find(append([]string{"bash", c.path}, c.argv[1:]...)); ferr == nil {
			started, err = w.tree.start(bash.path, bash.argv, attr())
		}
	}
	if err == nil && w.guard == nil && os.Getpid() != 1 { // with the first process of a container all others die
		w.guard = startGuard(w.tree, filepath.Join(w.dir, rundir.ResultsDir), w.stdout, w.stderr)
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

package rank

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// shared is a meeting in an attempt directory that all ranks see. Each rank writes in
// its own directory alone; its markers say what they say anyway.
type shared struct {
	attempt plan.Attempt
	rank    int
	mode    fs.FileMode
	host    string // this one
}

// stated is the file that a rank leaves for the others.
type stated struct {
	evidence.Identity
	State
}

// Tell implements Meeting. That a rank has begun, and that it is over, its markers say.
func (s *shared) Tell(_ context.Context, now State) error {
	if (now.Stage == StageBegun && now.Note == "") || now.Stage == StageOver {
		return nil
	}
	data, err := json.Marshal(stated{s.attempt.Identity(s.rank), now})
	if err != nil {
		return err
	}
	path := filepath.Join(rundir.RankDir(s.attempt.Dir, s.rank), rundir.StateFile)
	return durable.Replace(path, append(data, '\n'), s.mode)
}

// Ask implements Meeting. Directories are read before what is in them: on network
// filesystems a new file is hidden by a cache until then.
func (s *shared) Ask(_ context.Context, rank int) (State, error) {
	dir := rundir.RankDir(s.attempt.Dir, rank)
	if _, err := os.ReadDir(filepath.Dir(dir)); err != nil {
		return State{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return State{}, nil // it has not begun
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	read := func(name string, into any) bool {
		if !there[name] {
			return false
		}
		data, err := regular.ReadFile(filepath.Join(dir, name), maxMarker)
		return err == nil && json.Unmarshal(data, into) == nil
	}
	id := s.attempt.Identity(rank)
	var begin evidence.Begin
	began := read(rundir.BeginFile, &begin) && begin.Identity == id
	died := began && s.died(begin)
	if died { // it may have left its end since the directory was read
		there[rundir.EndFile] = true
	}
	var end evidence.End
	if read(rundir.EndFile, &end) && end.Identity == id {
		return State{Stage: StageOver, Node: end.Node, Outcome: end.Outcome, ExitCode: end.ExitCode}, nil
	}
	var now stated
	switch {
	case died:
		return State{Stage: StageOver, Node: begin.Node}, nil
	case read(rundir.StateFile, &now) && now.Identity == id:
		return now.State, nil
	case began:
		return State{Stage: StageBegun, Node: begin.Node}, nil
	}
	return State{}, nil
}

// died reports whether the wrapper of a rank does not run any more. That can be said
// of one on this host alone, and of none in a container, which counts its processes by
// itself.
func (s *shared) died(b evidence.Begin) bool {
	if b.Host != s.host || b.PID <= 1 || s.attempt.Job.Container != nil || s.attempt.Job.K8s != nil {
		return false
	}
	return errors.Is(syscall.Kill(b.PID, 0), syscall.ESRCH)
}

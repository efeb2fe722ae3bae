package rank

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"assay/pkg/durable"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// shared is a meeting in an attempt directory that all ranks see. Each rank writes in
// its own directory alone; its markers say what they say anyway.
type shared struct {
	attempt plan.Attempt
	rank    int
	mode    fs.FileMode
	kernel  string // where this process counts as one; empty: that is not known
}

// stated is the file that a rank leaves for the others.
type stated struct {
	evidence.Identity
	State
	Wrapper procfs.Handle `json:"wrapper,omitzero"`
	Kernel  string        `json:"kernel,omitempty"` // that the wrapper is a process of
}

// ownKernel names where pids of this process mean what they mean here: this boot of
// this machine, whatever it is called, and the name space of processes. It is empty
// when that is not known.
func ownKernel() string {
	boot, err := procfs.BootID()
	if err != nil || boot == "" {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return boot + " " + space
}

// Tell implements Meeting. That a rank is over its end marker says.
func (s *shared) Tell(_ context.Context, now State) error {
	if now.Stage == StageOver {
		return nil
	}
	said := stated{Identity: s.attempt.Identity(s.rank), State: now}
	if self, err := procfs.Read(os.Getpid()); err == nil {
		said.Wrapper, said.Kernel = self.Handle(), s.kernel
	}
	data, err := json.Marshal(said)
	if err != nil {
		return err
	}
	path := filepath.Join(rundir.RankDir(s.attempt.Dir, s.rank), rundir.StateFile)
	return durable.Replace(path, append(data, '\n'), s.mode)
}

// Ask implements Meeting. Directories are read before what is in them: on network
// filesystems a new file is hidden by a cache until then. What is there and cannot be
// read now says nothing about the rank.
func (s *shared) Ask(_ context.Context, rank int) (State, error) {
	dir := rundir.RankDir(s.attempt.Dir, rank)
	if _, err := os.ReadDir(filepath.Dir(dir)); err != nil {
		return State{}, err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{}, nil // it has not begun
	case err != nil:
		return State{}, err
	}
	return s.read(dir, entries, s.attempt.Identity(rank))
}

// read reads how far a rank is from the files in its directory.
func (s *shared) read(dir string, entries []fs.DirEntry, id evidence.Identity) (State, error) {
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	var now stated
	var end evidence.End
	if has(rundir.StateFile) {
		if err := readRecord(dir, rundir.StateFile, &now); err != nil {
			return State{}, err
		}
	}
	if now.Identity != id {
		now = stated{}
	}
	died := s.died(now)
	if died || has(rundir.EndFile) { // it may have left its end since the directory was read
		if err := readRecord(dir, rundir.EndFile, &end); err != nil {
			return State{}, err
		}
	}
	switch {
	case end.Identity == id:
		return State{Stage: StageOver, Node: end.Node, Outcome: end.Outcome, ExitCode: end.ExitCode}, nil
	case died:
		return State{Stage: StageOver, Node: now.Node}, nil
	case now.Stage != StageUnknown:
		return now.State, nil
	case !has(rundir.BeginFile):
		return State{}, nil
	}
	var begin evidence.Begin
	if err := readRecord(dir, rundir.BeginFile, &begin); err != nil || begin.Identity != id {
		return State{}, err
	}
	return State{Stage: StageBegun, Node: begin.Node}, nil
}

// readRecord decodes a file of a rank. What is not there, or is none of those that ranks
// write, leaves into as it is.
func readRecord(dir, name string, into any) error {
	data, err := regular.ReadFile(filepath.Join(dir, name), maxMarker)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, regular.ErrNotRegular), errors.Is(err, regular.ErrTooLarge):
		return nil
	case err != nil:
		return fmt.Errorf("%s of the rank cannot be read: %w", name, err)
	}
	_ = json.Unmarshal(data, into) // what is no record has no identity of one
	return nil
}

// died reports whether the wrapper of a rank does not run any more. That can be said
// of a process of the same kernel alone, and not where a container counts its processes
// by itself. Names of hosts tell nothing: all may have the same.
func (s *shared) died(said stated) bool {
	if s.kernel == "" || said.Kernel != s.kernel || said.Wrapper.PID <= 1 {
		return false
	}
	p, err := procfs.Read(said.Wrapper.PID)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return p.Start != said.Wrapper.Start || p.Ended()
}

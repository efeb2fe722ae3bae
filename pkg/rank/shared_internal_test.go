package rank

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/procfs"
	"assay/pkg/rundir"
)

// meetingAt gives a place where ranks meet, and what rank 0 is called in its records.
func meetingAt(t *testing.T) (*shared, evidence.Identity) {
	t.Helper()
	s := &shared{attempt: plan.Attempt{RunID: "r", Nonce: "n", Number: 1, Dir: t.TempDir(), Job: plan.Job{ID: "job", WorldSize: 2}}, rank: 1, mode: 0o600, kernel: ownKernel()}
	if s.kernel == "" {
		t.Fatal("this kernel has no name")
	}
	if err := os.MkdirAll(rundir.RankDir(s.attempt.Dir, 1), 0o700); err != nil {
		t.Fatal(err)
	}
	return s, s.attempt.Identity(0)
}

func (s *shared) leave(t *testing.T, name string, what any) {
	t.Helper()
	data, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	dir := rundir.RankDir(s.attempt.Dir, 0)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *shared) want(t *testing.T, want State) {
	t.Helper()
	got, err := s.Ask(t.Context(), 0)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// A wrapper is known to have ended where its pid means the same, whatever hosts are
// called: all may be called localhost.
func TestWhoDied(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	self, err := procfs.Read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	gone, again := procfs.Handle{PID: cmd.Process.Pid, Start: self.Start}, self.Handle()
	again.Start++
	s, id := meetingAt(t)
	ready := State{Stage: StageReady, Node: "localhost"}
	for name, tt := range map[string]struct {
		wrapper procfs.Handle
		kernel  string
		want    State
	}{
		"lives":               {self.Handle(), s.kernel, ready},
		"ended":               {gone, s.kernel, State{Stage: StageOver, Node: "localhost"}},
		"pid is another's":    {again, s.kernel, State{Stage: StageOver, Node: "localhost"}},
		"of another boot":     {gone, "other pid:[1]", ready},
		"of an unknown place": {gone, "", ready},
		"not known":           {procfs.Handle{}, s.kernel, ready},
	} {
		s.leave(t, rundir.BeginFile, evidence.Begin{Identity: id, Host: "localhost", Node: "localhost", PID: gone.PID})
		s.leave(t, rundir.StateFile, stated{Identity: id, State: ready, Wrapper: tt.wrapper, Kernel: tt.kernel})
		t.Run(name, func(t *testing.T) { s.want(t, tt.want) })
	}
	s.leave(t, rundir.EndFile, evidence.End{Identity: id, Outcome: evidence.OutcomeExited, ExitCode: 4})
	s.leave(t, rundir.StateFile, stated{Identity: id, State: ready, Wrapper: gone, Kernel: s.kernel})
	s.want(t, State{Stage: StageOver, Outcome: evidence.OutcomeExited, ExitCode: 4})
}

// A rank has not begun when it has no directory. One that cannot be read now says
// nothing of the kind.
func TestRecordsThatCannotBeRead(t *testing.T) {
	s, id := meetingAt(t)
	s.want(t, State{})
	dir := rundir.RankDir(s.attempt.Dir, 0)
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // ENOTDIR
		t.Fatal(err)
	}
	if got, err := s.Ask(t.Context(), 0); err == nil {
		t.Errorf("a directory that cannot be read: %+v", got)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	s.leave(t, rundir.BeginFile, evidence.Begin{Identity: id, Node: "a"})
	s.want(t, State{Stage: StageBegun, Node: "a"})
	for _, name := range []string{rundir.StateFile, rundir.EndFile} {
		path := filepath.Join(dir, name)
		if err := os.Symlink(name, path); err != nil { // ELOOP
			t.Fatal(err)
		}
		if got, err := s.Ask(t.Context(), 0); err == nil {
			t.Errorf("%s cannot be read: %+v", name, got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

package procfs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func TestProcess(t *testing.T) {
	// A name with everything that could be taken for the end of the name.
	path := filepath.Join(t.TempDir(), ") Z 1 (")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, path); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	p, err := Read(pid)
	if err != nil || p.PID != pid || p.Parent != os.Getpid() || p.Group != pid || p.Session != pid || p.Start == 0 || p.Ended() {
		t.Errorf("%+v, %v", p, err)
	}
	all, err := All()
	if err != nil || !slices.ContainsFunc(all, func(q Process) bool { return q.PID == pid && q.Start == p.Start }) {
		t.Errorf("not among %d processes: %v", len(all), err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if q, err := Read(pid); err == nil && q.Start == p.Start {
		t.Errorf("still there: %+v", q)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

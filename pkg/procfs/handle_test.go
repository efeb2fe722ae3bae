package procfs

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

func TestHandle(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Read(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if args, err := Args(p.PID); err != nil || !slices.Equal(args, []string{"sleep", "300"}) {
		t.Errorf("arguments %q, %v", args, err)
	}
	other := Handle{PID: p.PID, Start: p.Start + 1}
	if other.Alive() {
		t.Error("a process of another time is taken for this one")
	}
	if err := other.Signal(syscall.SIGKILL); err != nil || !p.Handle().Alive() {
		t.Errorf("a signal for a process that has ended reached another: %v", err)
	}
	if err := p.Handle().Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the signal did not end the process")
	}
	if p.Handle().Alive() {
		t.Error("a process that has ended is alive")
	}
	if err := p.Handle().Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

func TestBootID(t *testing.T) {
	if id, err := BootID(); err != nil || len(id) != 36 {
		t.Errorf("%q, %v", id, err)
	}
}

package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Handle names a process of this boot for good: pids are used again, a pid with
// its start time is not.
type Handle struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
}

// Alive says whether this very process still runs. A zombie does not.
func (h Handle) Alive() bool {
	now, err := Read(h.PID)
	return err == nil && now.Start == h.Start && !now.Ended()
}

// Signal sends sig to this very process, or does nothing when it has ended.
func (h Handle) Signal(sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(h.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pid %d: %w", h.PID, err)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	// Checked after the pidfd is open, so that the pid cannot change hands between.
	if !h.Alive() {
		return nil
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("pid %d: %w", h.PID, err)
	}
	return nil
}

// Handle names the process for good.
func (p Process) Handle() Handle { return Handle{PID: p.PID, Start: p.Start} }

// BootID identifies the running kernel; it changes with every boot.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// Args returns the arguments of a process, the first of which names the program.
// There are none of a kernel thread or a zombie.
func Args(pid int) ([]string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(data) == 0 {
		return nil, err
	}
	var args []string
	for _, arg := range bytes.Split(bytes.TrimSuffix(data, []byte{0}), []byte{0}) {
		args = append(args, string(arg))
	}
	return args, nil
}

// Package procfs reads the process table of Linux, /proc (proc(5)).
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// Process is what /proc/<pid>/stat says of a process.
type Process struct {
	PID     int
	State   byte // 'R' runs, 'S' sleeps, 'Z' is a zombie …
	Parent  int
	Group   int
	Session int
	Start   uint64 // clock ticks after boot; with the pid it names a process for good
}

// Ended says that nothing is left of the process but its entry in the table.
func (p Process) Ended() bool { return p.State == 'Z' || p.State == 'X' }

// Read returns one process. The error is fs.ErrNotExist when there is none.
func Read(pid int) (Process, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	data, err := os.ReadFile(path)
	if errors.Is(err, syscall.ESRCH) { // it ended between the open and the read
		err = fmt.Errorf("%s: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return Process{}, err
	}
	// The command name stands in parentheses and may itself hold any character.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 || len(fields[0]) != 1 {
		return Process{}, fmt.Errorf("%s has an unexpected form", path)
	}
	p := Process{PID: pid, State: fields[0][0]}
	var errs [4]error
	p.Parent, errs[0] = strconv.Atoi(string(fields[1]))
	p.Group, errs[1] = strconv.Atoi(string(fields[2]))
	p.Session, errs[2] = strconv.Atoi(string(fields[3]))
	p.Start, errs[3] = strconv.ParseUint(string(fields[19]), 10, 64)
	return p, errors.Join(errs[:]...)
}

// All returns the processes of this machine that can be seen. One that ends
// meanwhile may be missing.
func All() ([]Process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]Process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := Read(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

package envfile

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// endSession kills what is left of a session.
func endSession(session int) {
	_ = syscall.Kill(-session, syscall.SIGKILL) // all of the group that it began with at once
	for range 10 {
		left := membersOf(session)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 {
			return
		}
	}
}

// membersOf lists the processes of a session that have not ended.
func membersOf(session int) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var out []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid pgrp session …; the name may hold anything.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(fields) > 3 && string(fields[3]) == strconv.Itoa(session) && string(fields[0]) != "Z" {
			out = append(out, pid)
		}
	}
	return out
}

package envfile

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"assay/pkg/procfs"
)

// newMark is a variable, as NAME=value, that nothing else has: what the file
// starts inherits it, whatever session it goes to. Its name is one of the
// reader's own, so that it is no variable of the file.
func newMark() string { return ownPrefix + "mark_" + rand.Text() + "=1" }

// endStarted kills what is left of a session, and what carries the mark in its
// environment. A process may be starting another one, or be between two programs,
// where it has no environment: two looks in a row must find nothing.
func endStarted(session int, mark string) {
	_ = syscall.Kill(-session, syscall.SIGKILL) // all of the group that it began with at once
	for look, clean := 0, 0; look < 50 && clean < 2; look++ {
		left := startedBy(session, mark)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		clean++
		if len(left) > 0 {
			clean = 0
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// startedBy lists the processes of a session, or with the mark, that have not
// ended.
func startedBy(session int, mark string) []int {
	all, err := procfs.All()
	if err != nil {
		return nil
	}
	var pids []int
	for _, p := range all {
		if !p.Ended() && (p.Session == session || carries(p.PID, mark)) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// carries reports whether a process was started with the variable. The
// environment of another user's process cannot be read, and is none of ours.
func carries(pid int, mark string) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(data, []byte{0}), func(kv []byte) bool { return string(kv) == mark })
}

package envfile

import (
	"syscall"

	"assay/pkg/procfs"
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
	all, err := procfs.All()
	if err != nil {
		return nil
	}
	var pids []int
	for _, p := range all {
		if p.Session == session && !p.Ended() {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

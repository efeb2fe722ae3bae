package local

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reaper takes the exit status of wrappers that this process started, so that
// they leave the process table. One goroutine does it for all of them, however
// many. The zero value is ready to use.
type reaper struct {
	mu      sync.Mutex
	waiting map[int]bool // pids without a status yet
	status  map[int]syscall.WaitStatus
	running bool
}

// add begins to wait for a child.
func (r *reaper) add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting, r.status = map[int]bool{}, map[int]syscall.WaitStatus{}
	}
	r.waiting[pid] = true
	if !r.running {
		r.running = true
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGCHLD)
		go r.run(signals)
	}
	r.collect() // it may have ended before the signal was asked for
}

// run takes what has ended whenever a child has, until nothing is waited for.
func (r *reaper) run(signals chan os.Signal) {
	defer signal.Stop(signals)
	for range signals {
		r.mu.Lock()
		r.collect()
		done := len(r.waiting) == 0
		if done {
			r.running = false
		}
		r.mu.Unlock()
		if done {
			return
		}
	}
}

// collect takes the status of every child that has ended. Only known pids are
// asked for: other children belong to other parts of the program.
func (r *reaper) collect() {
	for pid := range r.waiting {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		switch {
		case got == pid:
			r.status[pid] = status
			delete(r.waiting, pid)
		case errors.Is(err, syscall.ECHILD):
			delete(r.waiting, pid)
		}
	}
}

// exited returns the exit code of a child that ended by itself. ok is false when
// it runs, was killed, or is no child of this process.
func (r *reaper) exited(pid int) (code int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.collect()
	status, known := r.status[pid]
	if !known || !status.Exited() {
		return 0, false
	}
	return status.ExitStatus(), true
}

package rank

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"assay/pkg/procfs"
)

// tree is everything that descends from the wrapper. As a subreaper the wrapper
// is given every orphan below it, so nothing gets away by daemonising.
type tree struct {
	changed chan os.Signal // SIGCHLD: a child ended, or an orphan was given to us

	mu      sync.Mutex
	managed map[int]bool // children that are waited for by the one who started them
	spared  map[int]bool // children that outlive the workload: services of a pre-script
	hidden  map[int]bool // children that no signal is passed to: the guard
}

func newTree() (*tree, error) {
	t := &tree{changed: make(chan os.Signal, 1), managed: map[int]bool{}, spared: map[int]bool{}, hidden: map[int]bool{}}
	signal.Notify(t.changed, syscall.SIGCHLD)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return t, fmt.Errorf("this process cannot become a subreaper, so a daemon of the workload may outlive it: %w", err)
	}
	return t, nil
}

func (t *tree) close() { signal.Stop(t.changed) }

// child is a process that the wrapper started.
type child struct {
	pid   int
	done  chan struct{} // closed at its end
	state *os.ProcessState
	err   error
}

// start starts a process in its own process group. The kernel kills it should
// the wrapper die; that is tied to the thread that forks, which therefore lives
// as long as the child.
func (t *tree) start(path string, argv []string, attr *os.ProcAttr) (*child, error) {
	attr.Sys = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return t.fork(path, argv, attr, func(int) {})
}

// startHidden starts a process that lives on when the wrapper dies, and that is
// no part of what is signalled and waited for.
func (t *tree) startHidden(path string, argv []string, attr *os.ProcAttr) (*child, error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true}
	return t.fork(path, argv, attr, func(pid int) { t.hidden[pid] = true })
}

// fork starts a process and waits for it on a thread of its own. Note is called
// before anything can see the new process.
func (t *tree) fork(path string, argv []string, attr *os.ProcAttr, note func(pid int)) (*child, error) {
	c := &child{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		t.mu.Lock()
		p, err := os.StartProcess(path, argv, attr)
		if err == nil {
			c.pid = p.Pid
			t.managed[c.pid] = true
			note(c.pid)
		}
		t.mu.Unlock()
		started <- err
		if err != nil {
			return
		}
		c.state, c.err = p.Wait()
		t.mu.Lock()
		delete(t.managed, c.pid)
		delete(t.hidden, c.pid)
		t.mu.Unlock()
		close(c.done)
	}()
	return c, <-started
}

// spareAll takes the children that are there now for services of a pre-script.
func (t *tree) spareAll() {
	left := t.orphans()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pid := range left {
		t.spared[pid] = true
	}
}

// spareNone makes the services of the pre-scripts ordinary descendants again.
func (t *tree) spareNone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.spared)
}

// orphans reaps what has ended and returns the children that nobody waits for
// and that are not spared. While any of them lives the tree is not empty, and
// when there is none, no descendant is left but those of managed children.
func (t *tree) orphans() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		var left []int
		reaped := 0
		for _, pid := range ownChildren() {
			if t.managed[pid] {
				continue
			}
			if ended, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err == nil && ended == pid {
				delete(t.spared, pid)
				reaped++
			} else if !t.spared[pid] {
				left = append(left, pid)
			}
		}
		if reaped == 0 {
			return left
		}
		// What ended may have left children of its own to us.
	}
}

// signal sends sig to every descendant, parents first, but not to what is spared
// or hidden. It returns how many there were.
func (t *tree) signal(sig syscall.Signal) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	parents, err := processes()
	if err != nil { // no /proc: the process groups are all that is known
		for pid := range t.managed {
			if !t.hidden[pid] {
				_ = syscall.Kill(-pid, sig)
			}
		}
		return len(t.managed)
	}
	below := map[int][]int{}
	for pid, parent := range parents {
		below[parent] = append(below[parent], pid)
	}
	found := 0
	for queue := []int{os.Getpid()}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range below[queue[0]] {
			if t.spared[pid] || t.hidden[pid] {
				continue
			}
			_ = syscall.Kill(pid, sig)
			found++
			queue = append(queue, pid)
		}
	}
	return found
}

// ownChildren lists the children of this process, from all of its threads. This
// is done after every end of a child, so it goes straight to the kernel.
func ownChildren() []int {
	tasks, err := os.Open("/proc/self/task")
	if err != nil {
		return nil
	}
	defer tasks.Close()
	threads, err := tasks.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var data []byte
	known := false
	for _, thread := range threads {
		fd, err := unix.Open("/proc/self/task/"+thread+"/children", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // the thread has ended, or the kernel has no such file
		}
		known = true
		data = readAll(fd, data)
		_ = unix.Close(fd)
	}
	if !known {
		return childrenByParent(os.Getpid()) // a kernel without CONFIG_PROC_CHILDREN
	}
	var out []int
	for _, word := range bytes.Fields(data) {
		if n, err := strconv.Atoi(string(word)); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func readAll(fd int, data []byte) []byte {
	var buf [4096]byte
	for {
		n, err := unix.Read(fd, buf[:])
		if n <= 0 || err != nil {
			return data
		}
		data = append(data, buf[:n]...)
	}
}

func childrenByParent(pid int) []int {
	parents, _ := processes()
	var out []int
	for p, parent := range parents {
		if parent == pid {
			out = append(out, p)
		}
	}
	return out
}

// processes maps every process to its parent.
func processes() (map[int]int, error) {
	all, err := procfs.All()
	if err != nil {
		return nil, err
	}
	parents := make(map[int]int, len(all))
	for _, p := range all {
		parents[p.PID] = p.Parent
	}
	return parents, nil
}

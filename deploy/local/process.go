package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/procfs"
)

// process names a process for good: pids are used again, a pid with its start
// time is not.
type process struct {
	Rank  int    `json:"rank"`
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
}

// bootID identifies the running kernel; it changes with every boot.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// alive says whether this very process still runs. A zombie does not.
func (p process) alive() bool {
	now, err := procfs.Read(p.PID)
	return err == nil && now.Start == p.Start && !now.Ended()
}

// signal sends sig to this very process, or does nothing when it has ended.
func (p process) signal(sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rank %d (pid %d): %w", p.Rank, p.PID, err)
	}
	defer closeFD(fd)
	// Checked after the pidfd is open, so that the pid cannot change hands between.
	if !p.alive() {
		return nil
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("rank %d (pid %d): %w", p.Rank, p.PID, err)
	}
	return nil
}

// closeFD closes a descriptor that nothing was written to, so that there is
// nothing to lose.
func closeFD(fd int) { _ = unix.Close(fd) }

// maxWatched bounds the file descriptors of one wait. Beyond it the first ones
// stand for all: some process of the job ends last, and every wait looks at
// those that still run.
const maxWatched = 512

// waitAny returns when one of the processes ends or ctx does.
func waitAny(ctx context.Context, running []process) error {
	if len(running) > maxWatched {
		running = running[:maxWatched]
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	defer closeFD(wake)
	fds := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}}
	defer func() {
		for _, f := range fds[1:] {
			closeFD(int(f.Fd))
		}
	}()
	for _, p := range running {
		fd, err := unix.PidfdOpen(p.PID, 0)
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		if err != nil {
			return pause(ctx, 200*time.Millisecond)
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		if !p.alive() {
			return nil
		}
	}
	return poll(ctx, wake, fds)
}

// poll blocks until a descriptor is ready. The end of ctx makes wake ready.
func poll(ctx context.Context, wake int, fds []unix.PollFd) error {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	})
	// wake must stay open until a running AfterFunc has written to it.
	defer func() {
		if !stop() {
			<-done
		}
	}()
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return errors.Join(err, ctx.Err())
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

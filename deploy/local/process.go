package local

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/procfs"
)

// process is the wrapper of one rank.
type process struct {
	Rank int `json:"rank"`
	procfs.Handle
}

// signal sends sig to this very process, or does nothing when it has ended.
func (p process) signal(sig syscall.Signal) error {
	if err := p.Signal(sig); err != nil {
		return fmt.Errorf("rank %d: %w", p.Rank, err)
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
		if !p.Alive() {
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

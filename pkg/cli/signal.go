package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"assay/pkg/exitcode"
	"assay/pkg/signame"
)

// stoppedBy is the cause of a context that a signal ended.
type stoppedBy struct{ sig os.Signal }

func (s stoppedBy) Error() string { return "stopped by " + signame.Of(s.sig) }

// code is the exit code of the signal: 128 and its number.
func (s stoppedBy) code() exitcode.Code {
	if sig, ok := s.sig.(syscall.Signal); ok {
		return exitcode.Code(128 + int(sig))
	}
	return exitcode.Interrupted
}

// interruptible returns a context that ends when the process is asked to stop.
// What was started under it, an env_file being sourced for one, ends with it.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it ignored
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		select {
		case sig := <-signals:
			cancel(stoppedBy{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}

// interrupted gives what went wrong under a context that a signal ended the exit
// code of that signal: 128 and its number.
// One that came too late to make anything go wrong counts as well.
func interrupted(ctx context.Context, err error) error {
	var stop stoppedBy
	if !errors.As(context.Cause(ctx), &stop) {
		return err
	}
	return exitcode.Errorf(stop.code(), "%w, before anything was run", stop)
}

// surviveClosedPipes lets a write to a pipe that nobody reads fail with EPIPE,
// where the default would end the process: a run has to go on. The signal is
// caught, not ignored, because processes inherit what is ignored.
func surviveClosedPipes() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

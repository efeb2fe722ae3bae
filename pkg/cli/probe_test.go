package cli

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"

	"assay/pkg/exitcode"
	"assay/pkg/probe"
)

// A server that is told to stop found nothing wrong, and does not say that it did.
func TestProbeThatIsToldToStop(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := net.SplitHostPort(l.Addr().String())
	port, err := strconv.Atoi(text)
	if err = errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	for sig, want := range map[syscall.Signal]exitcode.Code{syscall.SIGTERM: exitcode.Terminated, syscall.SIGINT: exitcode.Interrupted} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stoppedBy{sig})
		err := workloadError(probe.TCP(ctx, probe.TCPOptions{Role: "server", Addr: "127.0.0.1", Port: port}, t.Output()))
		if exitcode.Of(err) != want {
			t.Errorf("%v: exit code %d, want %d: %v", sig, exitcode.Of(err), want, err)
		}
	}
	if err := workloadError(errors.New("corrupt")); exitcode.Of(err) != exitcode.Fail {
		t.Errorf("exit code %d of a wrong result", exitcode.Of(err))
	}
}

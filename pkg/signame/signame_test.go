package signame

import (
	"os"
	"syscall"
	"testing"
)

type unnamed struct{}

func (unnamed) Signal()        {}
func (unnamed) String() string { return "another kind" }

func TestOf(t *testing.T) {
	for sig, want := range map[os.Signal]string{
		syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL", syscall.Signal(40): "signal 40", unnamed{}: "another kind",
	} {
		if got := Of(sig); got != want {
			t.Errorf("%v is called %q, want %q", sig, got, want)
		}
	}
}

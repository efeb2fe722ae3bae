// Package signame knows the names of signals.
package signame

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Of is the name of a signal, such as "SIGINT"; one without a name gets its
// number.
func Of(sig os.Signal) string {
	n, ok := sig.(syscall.Signal)
	if !ok {
		return sig.String()
	}
	if name := unix.SignalName(n); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(n))
}

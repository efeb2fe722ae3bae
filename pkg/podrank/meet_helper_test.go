package podrank

import (
	"net"
	"strconv"
	"testing"
)

func listenOn(t *testing.T, port int) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func splitAddr(addr string) (host, port string, err error) { return net.SplitHostPort(addr) }

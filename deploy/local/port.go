package local

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// The ports offered to jobs lie below the range that Linux hands out for
// outgoing connections (32768 and up), so that none is taken by chance between
// the check and its use.
const (
	firstPort = 20000
	lastPort  = 32000
)

// portAllocator finds a rendezvous port for each job: distinct among the jobs of
// this process, and free when it was looked at. The zero value is ready to use.
type portAllocator struct {
	mu    sync.Mutex
	taken map[int]bool
}

// take returns want if it is free and not given out, or else a free port. The
// search starts at a place that depends on seed, so that runs which start at the
// same time do not meet.
func (p *portAllocator) take(want int, seed string) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		p.taken = map[int]bool{}
	}
	if want != 0 && !p.taken[want] {
		free, err := portFree(want)
		if err != nil {
			return 0, err
		}
		if free {
			p.taken[want] = true
			return want, nil
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed))
	const count = lastPort - firstPort
	start := int(h.Sum32() % count)
	for i := range count {
		port := firstPort + (start+i)%count
		if p.taken[port] {
			continue
		}
		free, err := portFree(port)
		if err != nil {
			return 0, err
		}
		if free {
			p.taken[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("no TCP port between %d and %d is free on this machine for the ranks to meet", firstPort, lastPort)
}

// portFree says whether a TCP port can be listened on at all addresses.
func portFree(port int) (bool, error) {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // listening does not wait
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot check whether port %d is free: %w", port, err)
	}
	return true, l.Close()
}

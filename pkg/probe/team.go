package probe

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"assay/pkg/exitcode"
)

// wordBytes is the size of an element of the triad arrays.
const wordBytes = 8

// arrays are the three arrays of a triad in one mapping that nothing has touched
// yet, so that each page is placed near the CPU that first writes it.
type arrays struct {
	mapping []byte
	x       [3][]float64
}

// newArrays maps three arrays of n elements each.
func newArrays(n int) (*arrays, error) {
	mapping, err := unix.Mmap(-1, 0, 3*n*wordBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, exitcode.Errorf(exitcode.Error,
			"three arrays of %s cannot be allocated: %w: choose a smaller size", formatSize(int64(n)*wordBytes), err)
	}
	// Large pages keep the address translation out of the measurement. Where the
	// kernel has none the figure is that of small pages.
	_ = unix.Madvise(mapping, unix.MADV_HUGEPAGE)
	words := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(mapping))), 3*n) //nolint:gosec // a mapping begins at a page, so it is aligned
	return &arrays{mapping, [3][]float64{words[:n:n], words[n : 2*n : 2*n], words[2*n:]}}, nil
}

// free unmaps the arrays. Nothing may use them afterwards.
func (a *arrays) free() error { return unix.Munmap(a.mapping) }

// team is a set of workers, each bound to one CPU and owning one part of the
// arrays: what it touches first is what it works on later.
type team struct {
	workers []chan func(lo, hi int)
	done    chan error
}

// newTeam starts one worker a CPU and divides n elements among them.
func newTeam(cpus []int, n int) (*team, error) {
	t := &team{done: make(chan error)}
	for i, cpu := range cpus {
		lo, hi := share(n, i, len(cpus)), share(n, i+1, len(cpus))
		work := make(chan func(lo, hi int))
		t.workers = append(t.workers, work)
		go func() {
			t.done <- pin(cpu)
			for do := range work {
				do(lo, hi)
				t.done <- nil
			}
		}()
	}
	var first error
	for range t.workers {
		if err := <-t.done; err != nil && first == nil {
			first = err
		}
	}
	if first != nil {
		t.close()
		return nil, first
	}
	return t, nil
}

// share is where part i of parts begins. Parts begin at whole pages, so that two
// workers never write to one page.
func share(n, i, parts int) int {
	const page = 4096 / wordBytes
	if i == parts {
		return n
	}
	return int(int64(n)*int64(i)/int64(parts)) / page * page
}

// each runs do on every worker and returns when all are done.
func (t *team) each(do func(lo, hi int)) {
	for _, work := range t.workers {
		work <- do
	}
	for range t.workers {
		<-t.done //nolint:errcheck // work gives no error, only pinning does
	}
}

// close ends the workers.
func (t *team) close() {
	for _, work := range t.workers {
		close(work)
	}
}

// triad computes a[i] = b[i] + q*c[i]. The compiler of Go does not vectorise;
// eight elements a turn, through array pointers that need one bounds check each,
// keep the loop waiting for memory rather than for itself.
func triad(a, b, c []float64, q float64) {
	for len(a) >= 8 && len(b) >= 8 && len(c) >= 8 {
		x, y, z := (*[8]float64)(a), (*[8]float64)(b), (*[8]float64)(c)
		x[0] = y[0] + q*z[0]
		x[1] = y[1] + q*z[1]
		x[2] = y[2] + q*z[2]
		x[3] = y[3] + q*z[3]
		x[4] = y[4] + q*z[4]
		x[5] = y[5] + q*z[5]
		x[6] = y[6] + q*z[6]
		x[7] = y[7] + q*z[7]
		a, b, c = a[8:], b[8:], c[8:]
	}
	for i := range a {
		a[i] = b[i] + q*c[i]
	}
}

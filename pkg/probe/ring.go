package probe

import (
	"io"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// ring moves data around the ranks: it receives from the left neighbour and sends
// to the right one, both at the same time.
//
// An all-reduce over n ranks cuts the data into n segments and takes 2(n-1) steps.
// In each a rank receives one segment; in the first n-1 it adds it to its own, in
// the others it keeps it. What was received in one step is exactly what must be
// sent in the next, so every chunk goes on as soon as it is there.
type ring[T float] struct {
	group   *group
	data    []T // the largest message
	scratch []T // one chunk; with one rank a second copy of data
	token   []T // what the barrier sums

	queue   chan []byte // chunks for the sender; nil asks for a word on flushed
	flushed chan struct{}
	stopped chan struct{}
	sendErr atomic.Pointer[lostError]
}

// newRing starts the sender. With one rank there are no neighbours; data is then
// copied into a second buffer in place of being sent.
func newRing[T float](g *group, data []T) *ring[T] {
	r := &ring[T]{group: g, data: data, token: make([]T, g.size)}
	if g.size == 1 {
		r.scratch = make([]T, len(data))
		return r
	}
	chunk := max(g.sweep.ChunkBytes/int(unsafe.Sizeof(data[0])), 1)
	r.scratch = make([]T, chunk)
	// The queue holds all chunks of one operation. Were it shorter, every rank could
	// wait for room in its queue while none receives.
	perSegment := (len(data)/g.size+1)/chunk + 1
	r.queue = make(chan []byte, 2*(g.size-1)*perSegment+2)
	r.flushed = make(chan struct{}, 2) // both words of an operation, so that the sender never waits
	r.stopped = make(chan struct{})
	go r.send()
	return r
}

// send writes chunks to the right neighbour until the queue is closed. After an
// error it only drains the queue.
func (r *ring[T]) send() {
	defer close(r.stopped)
	for chunk := range r.queue {
		if chunk == nil {
			r.flushed <- struct{}{}
			continue
		}
		if r.sendErr.Load() != nil {
			continue
		}
		err := r.group.right.SetWriteDeadline(time.Now().Add(r.group.opt.StallTimeout))
		if err == nil {
			_, err = r.group.right.Write(chunk)
		}
		if err != nil {
			r.sendErr.Store(r.group.lostRight(err))
			// The receiving side may wait for a rank that waits for what was not sent.
			_ = r.group.left.Close()
		}
	}
}

// stop ends the sender. Its connection must be closed, or the queue be empty.
func (r *ring[T]) stop() {
	if r.queue != nil {
		close(r.queue)
		<-r.stopped
	}
}

// barrier returns when every rank has entered it: one element of each rank is
// summed, and that sum needs them all.
func (r *ring[T]) barrier() error {
	if r.group.size == 1 {
		return nil
	}
	clear(r.token)
	return r.allReduce(r.token)
}

// allReduce replaces data by the sum over all ranks. When it returns the data has
// also left for the neighbour and may be changed.
func (r *ring[T]) allReduce(data []T) error {
	n, rank := r.group.size, r.group.opt.Rank
	if n == 1 {
		copy(r.scratch, data)
		return nil
	}
	for chunk := range slices.Chunk(segment(data, rank, n), len(r.scratch)) {
		r.queue <- bytesOf(chunk)
	}
	for step := range 2 * (n - 1) {
		// The second half overwrites what the first half sends. That it has left shows
		// already in that it has come round, but only a word from the sender says so to
		// the memory model. All of the first half is in the queue one step before.
		switch step {
		case n - 2:
			r.queue <- nil
		case n - 1:
			<-r.flushed
		}
		part := segment(data, (rank-step-1+2*n)%n, n)
		adds, last := step < n-1, step == 2*(n-1)-1
		for chunk := range slices.Chunk(part, len(r.scratch)) {
			err := r.receive(chunk, adds, !last)
			if err == nil {
				continue
			}
			if sendErr := r.sendErr.Load(); sendErr != nil {
				return sendErr
			}
			return err
		}
	}
	r.queue <- nil
	<-r.flushed
	if sendErr := r.sendErr.Load(); sendErr != nil {
		return sendErr
	}
	return nil
}

// receive takes a chunk from the left neighbour and passes it on if it goes on.
func (r *ring[T]) receive(chunk []T, adds, goesOn bool) error {
	target := chunk
	if adds {
		target = r.scratch[:len(chunk)]
	}
	err := r.group.left.SetReadDeadline(time.Now().Add(r.group.opt.StallTimeout))
	if err == nil {
		_, err = io.ReadFull(r.group.left, bytesOf(target))
	}
	if err != nil {
		return r.group.lostLeft(err)
	}
	if adds {
		for i, v := range target {
			chunk[i] += v
		}
	}
	if goesOn {
		r.queue <- bytesOf(chunk)
	}
	return nil
}

// segment is part i of n. Parts differ by at most one element, and are empty where
// there are more ranks than elements.
func segment[T any](data []T, i, n int) []T {
	count := int64(len(data))
	return data[count*int64(i)/int64(n) : count*int64(i+1)/int64(n)]
}

// bytesOf is the memory of data, which is not empty. All machines that assay runs
// on agree on the byte order.
func bytesOf[T float](data []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(data[0]))) //nolint:gosec // numbers go over the wire as they lie in memory
}

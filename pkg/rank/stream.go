package rank

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/evidence"
)

const (
	pipeSize   = 1 << 20   // bytes the kernel buffers for a stream, where it allows that
	chunkSize  = 256 << 10 // bytes read at once
	drainLimit = 2 * time.Second
)

// stream takes one output stream of the workload from a pipe to a file, and
// shows it to the scanner on the way. It never stops reading: neither a full disk
// nor a failing scanner may block or kill the workload.
type stream struct {
	name  string
	r, w  *os.File // the ends of the pipe; the workload gets w
	sink  *sink
	scan  *scanner // nil: nothing is picked up
	after func()   // called after each chunk was scanned
	done  chan struct{}

	started, finished bool
}

// newStream creates the file, which must not exist, and the pipe. The write end
// stays in blocking mode, for the workload shares it.
func newStream(path string, mode os.FileMode, limit int64) (*stream, error) {
	sink, err := newSink(path, mode, limit)
	if err != nil {
		return nil, err
	}
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return &stream{
		r: os.NewFile(uintptr(fds[0]), path), w: os.NewFile(uintptr(fds[1]), path),
		name: sink.name(), sink: sink, done: make(chan struct{}),
	}, nil
}

func (s *stream) start() {
	s.started = true
	go s.pump()
}

// pump runs until the end of the pipe, or the deadline that finish sets.
func (s *stream) pump() {
	defer close(s.done)
	buf := make([]byte, chunkSize)
	for {
		n, err := s.r.Read(buf)
		if n > 0 {
			s.sink.write(buf[:n])
			s.show(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// show hands a chunk to the scanner. A panic costs the readings, not the log.
func (s *stream) show(chunk []byte) {
	if s.scan == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			s.scan = nil
			s.sink.fault = fmt.Sprintf("the readings of %s are incomplete, which is a bug: %v", s.name, r)
		}
	}()
	s.scan.feed(chunk)
	s.after()
}

// finish closes the wrapper's write end, waits for the last bytes and closes the
// file. A process outside the tree that holds the pipe is waited for only for
// drainLimit. It returns what went wrong with the log, or "". Calling it again
// does nothing.
func (s *stream) finish() string {
	if s.finished {
		return ""
	}
	s.finished = true
	_ = s.w.Close()
	if s.started {
		_ = s.r.SetReadDeadline(time.Now().Add(drainLimit))
		<-s.done
		if s.scan != nil {
			s.scan.end()
		}
	}
	_ = s.r.Close()
	s.sink.close()
	return s.sink.problem()
}

// abandon closes what is open, without waiting.
func (s *stream) abandon() {
	if !s.finished {
		s.finished = true
		_ = s.w.Close()
		_ = s.r.Close()
		s.sink.close()
	}
}

func (s *stream) log() evidence.Log {
	return evidence.Log{Bytes: s.sink.bytes, Dropped: s.sink.dropped}
}

// giveBack frees n bytes at the end of the log, to make room for the end marker.
func (s *stream) giveBack(n int64) { s.sink.giveBack(n) }

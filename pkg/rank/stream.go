package rank

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/evidence"
)

const (
	pipeSize   = 1 << 20   // bytes the kernel buffers for a stream, where it allows that
	chunkSize  = 256 << 10 // bytes read at once
	drainLimit = 2 * time.Second

	settlePause = time.Millisecond
	settleTries = 200
)

// stream takes output from a pipe to a log, and shows it to the scanner on the
// way. It never stops reading: neither a full disk nor a failing scanner may block
// or kill the workload. The workload has one of its own, so that nothing else that
// goes to the same log is taken for its words.
type stream struct {
	r, w  *os.File // the ends of the pipe; the workload gets w
	sink  *sink
	scan  *scanner           // nil: nothing is picked up
	after func()             // called after each chunk was scanned
	heard func(chunk []byte) // called with each chunk as it comes, and keeps nothing of it; nil: nobody listens
	done  chan struct{}

	passing           sync.Mutex // held from a read to the end of what is done with it
	started, finished bool
}

// newStream creates the pipe. The write end stays in blocking mode, for the
// workload shares it.
func newStream(to *sink) (*stream, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, pipeSize)
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	return &stream{
		r: os.NewFile(uintptr(fds[0]), to.path), w: os.NewFile(uintptr(fds[1]), to.path),
		sink: to, done: make(chan struct{}),
	}, nil
}

func (s *stream) start() {
	s.started = true
	go s.pump()
}

// pump runs until the end of the pipe, or the deadline that finish sets.
func (s *stream) pump() {
	defer close(s.done)
	pipe, err := s.r.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, chunkSize)
	for over := false; !over && err == nil; s.sink.echo.throttle() {
		err = pipe.Read(func(fd uintptr) bool {
			s.passing.Lock()
			defer s.passing.Unlock()
			n, rerr := unix.Read(int(fd), buf)
			switch {
			case errors.Is(rerr, unix.EAGAIN):
				return false
			case n > 0:
				s.sink.write(buf[:n])
				s.tell(buf[:n])
				s.show(buf[:n])
			case !errors.Is(rerr, unix.EINTR):
				over = true
			}
			return true
		})
	}
}

// settle waits until all that has been written to the pipe is in the log, so that
// what another stream brings comes after it. It does not wait long for somebody
// who writes all the time.
func (s *stream) settle() {
	for range settleTries {
		if s.waiting() == 0 {
			return
		}
		time.Sleep(settlePause)
	}
}

// waiting is the number of bytes that are still in the pipe.
func (s *stream) waiting() (n int) {
	s.passing.Lock()
	defer s.passing.Unlock()
	pipe, err := s.r.SyscallConn()
	if err == nil {
		_ = pipe.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return n
}

// tell lets whoever listens hear a chunk.
func (s *stream) tell(chunk []byte) {
	if s.heard != nil {
		s.heard(chunk)
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
			s.sink.fault = fmt.Sprintf("the readings of %s are incomplete, which is a bug: %v", s.sink.name(), r)
		}
	}()
	s.scan.feed(chunk)
	s.after()
}

// finish closes the wrapper's write end and waits for the last bytes. A process
// outside the tree that holds the pipe is waited for only for drainLimit. Calling
// it again does nothing.
func (s *stream) finish() {
	if s.finished {
		return
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
}

// output is one log of the rank and what writes to it: the workload, and the
// pre- and post-scripts.
type output struct {
	sink            *sink
	workload, steps *stream
}

// newOutput creates the log, which must not exist.
func newOutput(path string, mode os.FileMode, limit int64) (*output, error) {
	to, err := newSink(path, mode, limit)
	if err != nil {
		return nil, err
	}
	o := &output{sink: to}
	if o.workload, err = newStream(to); err == nil {
		o.steps, err = newStream(to)
	}
	return o, err
}

func (o *output) start() {
	o.workload.start()
	o.steps.start()
}

// begin says who the next words in the log are of.
func (o *output) begin(who string) {
	o.steps.settle()
	o.workload.settle()
	lines := o.sink.begin(who)
	o.workload.passing.Lock()
	defer o.workload.passing.Unlock()
	if scan := o.workload.scan; scan != nil && who == workloadLabel {
		scan.lines = lines
	}
}

// finish waits for the last bytes and closes the log. It returns what went wrong
// with it, or "", and whether output could not be kept.
func (o *output) finish() (problem string, lost bool) {
	if o.steps.finished {
		return "", false
	}
	o.workload.finish()
	o.steps.finish()
	o.sink.close()
	return o.sink.problem()
}

// abandon closes what is open, without waiting.
func (o *output) abandon() {
	for _, s := range []*stream{o.workload, o.steps} {
		if s != nil && !s.finished {
			s.finished = true
			_ = s.w.Close()
			_ = s.r.Close()
		}
	}
	o.sink.close()
	o.sink.echo.abandon()
}

func (o *output) log() evidence.Log {
	return evidence.Log{Bytes: o.sink.bytes, Dropped: o.sink.dropped}
}

// giveBack frees n bytes at the end of the log, to make room for the end marker.
func (o *output) giveBack(n int64) { o.sink.giveBack(n) }

package rank

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"assay/pkg/durable"
)

// sink is a log file with an optional size cap: the first half of the cap is
// kept from the beginning, the rest from the end, and a line says what was cut
// between. The end goes round in a second file, so memory stays constant. A
// write that fails loses its bytes, is counted, and is tried again with the next.
type sink struct {
	path  string
	f     *os.File
	file  os.FileInfo // of f, to know it again
	mode  os.FileMode
	head  int64 // bytes that still fit before the cut; unused without a cap
	limit int64 // 0: no cap
	tail  *ring
	echo  *echo // nil: nobody reads along
	last  byte  // last byte written to f

	mu    sync.Mutex // for write and begin
	given byte       // last byte given to the sink
	lines int64      // line ends given to it
	label string     // to be written before the next bytes

	bytes   int64 // given to the sink
	dropped int64 // of these, not in the file
	lost    int64 // since the last write that worked
	err     error // the first failed write
	fault   string
}

func newSink(path string, mode os.FileMode, limit int64) (*sink, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return nil, err
	}
	_ = f.Chmod(mode) // whatever the umask is
	file, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &sink{path: path, f: f, file: file, mode: mode, limit: limit, head: limit - limit/2, last: '\n', given: '\n'}, nil
}

func (s *sink) name() string { return filepath.Base(s.path) }

// workloadLabel is what begin calls the workload.
const workloadLabel = "workload"

// begin makes the next bytes follow a line that says whose they are; a log with
// nothing but the words of the workload has no such line. It returns the number of
// lines before those bytes.
func (s *sink) begin(who string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.label = ""
	if s.bytes == 0 && who == workloadLabel {
		return 0
	}
	s.label = fmt.Sprintf("[assay: %s]\n", who)
	if s.given != '\n' {
		s.label = "\n" + s.label
	}
	return s.lines + int64(strings.Count(s.label, "\n"))
}

// write takes what a stream brings.
func (s *sink) write(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.label != "" {
		s.put([]byte(s.label))
		s.label = ""
	}
	s.put(p)
}

func (s *sink) put(p []byte) {
	s.bytes += int64(len(p))
	s.lines += int64(bytes.Count(p, []byte("\n")))
	s.given = p[len(p)-1]
	s.echo.add(p)
	if s.limit <= 0 {
		s.append(p)
		return
	}
	if n := min(s.head, int64(len(p))); n > 0 {
		s.head -= n
		s.append(p[:n])
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	if s.tail == nil {
		s.tail = newRing(s.path+".tail", s.limit/2)
	}
	if err := s.tail.write(p); err != nil {
		s.failed(err, len(p))
	}
}

// append writes to the file itself. After a loss the file says so before it goes
// on.
func (s *sink) append(p []byte) {
	if s.lost > 0 && s.say(fmt.Sprintf("[assay: %d bytes lost here: %v]\n", s.lost, s.err)) == nil {
		s.lost = 0
	}
	if s.lost > 0 {
		s.failed(s.err, len(p))
		return
	}
	n, err := s.f.Write(p)
	if written := p[:n]; len(written) > 0 {
		s.last = written[len(written)-1]
	}
	if err != nil {
		s.failed(err, len(p)-n)
	}
}

// say writes a line of the wrapper's own, at the beginning of a line.
func (s *sink) say(line string) error {
	if s.last != '\n' {
		line = "\n" + line
	}
	_, err := s.f.WriteString(line)
	if err == nil {
		s.last = '\n'
	}
	return err
}

func (s *sink) failed(err error, n int) {
	if s.err == nil {
		s.err = cause(err)
	}
	s.lost += int64(n)
	s.dropped += int64(n)
}

// cause is an error without the operation and path in front of it.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// close puts the tail behind the head and closes the file.
func (s *sink) close() {
	if s.tail != nil {
		s.joinTail()
	}
	if !s.inPlace() {
		s.restore()
	}
	if err := s.f.Close(); err != nil && s.err == nil {
		s.err = err
	}
}

// inPlace reports whether the path still names the file that is written.
func (s *sink) inPlace() bool {
	now, err := os.Lstat(s.path)
	return err == nil && os.SameFile(now, s.file)
}

// restore puts the file back where the workload removed or replaced it.
func (s *sink) restore() {
	src, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", s.f.Fd()))
	if err == nil {
		defer src.Close()
		err = errors.Join(os.RemoveAll(s.path), durable.Copy(s.path, src, s.mode))
	}
	if err == nil {
		s.file, err = os.Lstat(s.path)
	}
	s.fault = sentence(s.fault, s.name()+" was removed or replaced while the rank ran")
	if err != nil {
		s.fault += fmt.Sprintf(" and could not be put back: %v", err)
	}
}

func (s *sink) joinTail() {
	defer s.tail.close()
	cut := s.tail.total - s.tail.kept()
	if cut > 0 {
		s.dropped += cut
		if err := s.say(fmt.Sprintf("[assay: %d bytes cut here]\n", cut)); err != nil {
			s.failed(err, 0)
		}
	}
	n, err := io.Copy(s.f, s.tail.reader())
	if err != nil {
		s.failed(err, int(s.tail.kept()-n))
	}
}

// problem says what went wrong, or "". lost says that output could not be kept.
func (s *sink) problem() (text string, lost bool) {
	text = s.fault
	if s.err != nil {
		text = sentence(text, fmt.Sprintf("%s could not be kept whole: %v (%d of %d bytes are missing)", s.name(), s.err, s.dropped, s.bytes))
	}
	return text, s.err != nil
}

// giveBack cuts up to n bytes off the end of the closed file.
func (s *sink) giveBack(n int64) {
	info, err := os.Lstat(s.path)
	if err != nil || !os.SameFile(info, s.file) {
		return
	}
	n = min(n, info.Size())
	if n > 0 && os.Truncate(s.path, info.Size()-n) == nil {
		s.dropped = min(s.dropped+n, s.bytes)
	}
}

// ring keeps the last size bytes written to it, in a file.
type ring struct {
	f     *os.File
	err   error
	size  int64
	total int64 // bytes written so far
}

func newRing(path string, size int64) *ring {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // a name that the workload cannot have taken
	return &ring{f: f, err: err, size: size}
}

func (r *ring) write(p []byte) error {
	if r.err != nil {
		return r.err
	}
	if skip := int64(len(p)) - r.size; skip > 0 {
		r.total += skip
		p = p[skip:]
	}
	for len(p) > 0 {
		at := r.total % r.size
		n := min(int64(len(p)), r.size-at)
		if _, err := r.f.WriteAt(p[:n], at); err != nil {
			return err
		}
		r.total += n
		p = p[n:]
	}
	return nil
}

func (r *ring) kept() int64 { return min(r.total, r.size) }

// reader gives what is kept, oldest first.
func (r *ring) reader() io.Reader {
	if r.size == 0 || r.total <= r.size {
		return io.NewSectionReader(r.f, 0, r.kept())
	}
	at := r.total % r.size
	return io.MultiReader(io.NewSectionReader(r.f, at, r.size-at), io.NewSectionReader(r.f, 0, at))
}

func (r *ring) close() {
	if r.f != nil {
		_ = r.f.Close()
		_ = os.Remove(r.f.Name())
	}
}

package k8s

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/rundir"
)

// fetch brings what one pod left into the directory of its rank: its log while it
// runs, and its records when it has ended.
type fetch struct {
	ended    chan struct{} // closed when the pod is over
	isOver   bool
	finished bool
	unread   string // of a rank that left no record: why what it may have said could not be read
}

func (f *fetch) done() bool { return f != nil && f.finished }

// The pauses between attempts to read a log.
const (
	firstPause = 100 * time.Millisecond
	afterEnd   = 300 * time.Millisecond
	longPause  = 2 * time.Second
)

// fetchAll starts what has to be fetched of a followed job. The pods of a rank come
// one after the other. The caller holds the lock.
func (t *Target) fetchAll(j *job) {
	for _, p := range j.pods {
		if f := p.fetch; f != nil && !f.isOver && p.over() {
			f.isOver = true
			close(f.ended)
		}
	}
	if j.attempt == nil || j.follow.Err() != nil {
		return
	}
	if w := t.watchers[j.watchKey()]; w != nil && !w.settled {
		return // a list has no order: an earlier start of a rank may be yet to come
	}
	for n, pods := range j.starts() {
		for at, p := range pods {
			if p.fetch.done() {
				continue
			}
			if p.fetch == nil && (p.started() || p.over()) {
				s := newSession(t, j, p, n, max(at, p.starts()))
				p.fetch = s.f
				if s.f.finished = s.movedAside(); s.f.finished {
					continue
				}
				go t.fetchPod(j.follow, s)
			}
			break
		}
	}
}

// awaited reports whether what pods left is still being fetched. The caller holds the
// lock.
func (j *job) awaited(starts [][]*podView) bool {
	if j.attempt == nil || j.follow.Err() != nil {
		return false
	}
	for _, pods := range starts {
		for _, p := range pods {
			if !p.fetch.done() {
				return true
			}
		}
	}
	return false
}

// unfetched names the ranks that left no record that could be had, with the reason.
func (j *job) unfetched(starts [][]*podView) map[int]string {
	var out map[int]string
	for n, pods := range starts {
		if len(pods) == 0 {
			continue
		}
		p, why := pods[len(pods)-1], ""
		switch {
		case p.fetch != nil && p.fetch.unread != "":
			why = p.fetch.unread
		case j.attempt != nil && !p.fetch.done():
			why = "what " + p.name() + " left could not be had in time"
			if !p.over() {
				why = p.name() + " has not ended, and what it left cannot be had"
			}
		default:
			continue
		}
		if out == nil {
			out = map[int]string{}
		}
		out[n] = why
	}
	return out
}

// fetchPod follows the log of a pod to its end and keeps what came.
func (t *Target) fetchPod(ctx context.Context, s *session) {
	unread := s.run(ctx)
	if ctx.Err() != nil && !s.kept {
		return // whoever follows next begins anew
	}
	t.mu.Lock()
	s.f.finished, s.f.unread = true, unread
	t.fetchAll(s.j)
	t.mu.Unlock()
	t.notify()
}

// session is one fetch.
type session struct {
	t       *Target
	j       *job
	p       *podView // guarded by the target
	f       *fetch
	pod     string // its name
	attempt plan.Attempt
	at      int // which start of its rank the pod is
	rank    int

	log     *pod.LogReader
	scan    *scan     // of a rank without the wrapper
	since   string    // where the next connection begins
	live    *os.File  // the rank's stdout while it runs
	problem string    // why the log may be incomplete
	expires time.Time // when the log is no longer tried for
	kept    bool
}

func (s *session) dir() string { return rundir.RankDir(s.attempt.Dir, s.rank) }

// newSession prepares to fetch from a pod. The caller holds the lock.
func newSession(t *Target, j *job, p *podView, rank, at int) *session {
	f := &fetch{ended: make(chan struct{}), isOver: p.over()}
	if f.isOver {
		close(f.ended)
	}
	return &session{t: t, j: j, p: p, f: f, pod: p.Pod.Name, attempt: *j.attempt, rank: rank, at: at}
}

// run fetches, and returns why a rank without records could not be read.
func (s *session) run(ctx context.Context) (unread string) {
	if err := s.makeRoom(); err != nil {
		return err.Error()
	}
	if s.attempt.Job.K8s.Unwrapped && !s.attempt.Job.SkipMetrics {
		s.scan = newScan(s.attempt.Job.Expect.Declared())
	}
	s.log = pod.NewLogReader(writerFunc(s.show), s.attempt.Nonce, s.rank)
	defer s.closeLive()
	if s.seen().started() {
		s.follow(ctx)
	}
	select {
	case <-s.f.ended:
	case <-ctx.Done():
		return ""
	}
	_ = s.log.Close() // the writer never fails
	s.closeLive()
	s.kept = true
	return s.keep()
}

func (s *session) closeLive() {
	if s.live != nil {
		_ = s.live.Close() // it only shows what goes on
		s.live = nil
	}
}

// seen is the pod as it was seen last.
func (s *session) seen() *podView {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	seen := *s.p
	return &seen
}

// aside is where the records of the start before one go.
func (s *session) aside(at int) string {
	return filepath.Join(s.attempt.Dir, "earlier", fmt.Sprintf("rank-%d-start-%d", s.rank, at))
}

// movedAside reports whether an earlier process had fetched from the pod before it
// made room for the next start of the rank.
func (s *session) movedAside() bool {
	_, err := os.Stat(s.aside(s.at + 1))
	return err == nil
}

// makeRoom makes the directory of the rank. What an earlier start of it left moves
// out of the way.
func (s *session) makeRoom() error {
	if s.at > 0 {
		aside := s.aside(s.at)
		if _, err := os.Stat(aside); errors.Is(err, os.ErrNotExist) {
			if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
				return err
			}
			if err := os.Rename(s.dir(), aside); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	_, err := rundir.MakeRankDir(s.attempt.Dir, s.rank)
	return err
}

// follow reads the log until it is complete, and again where a connection broke.
func (s *session) follow(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		live := !s.over()
		n, err := s.read(ctx, live)
		switch {
		case s.log.Complete():
			s.problem = ""
			return
		case err == nil && !live: // that was all
			s.problem = ""
			return
		case err != nil:
			s.problem = sentence(err)
		}
		if live && s.over() {
			if s.shared() {
				return
			}
			continue // what came after the last line that was seen
		}
		if n > 0 {
			pause = firstPause
		}
		if !live && s.tooLate() {
			return
		}
		s.rest(ctx, pause)
		pause = min(2*pause, longPause)
	}
}

// over reports whether the pod is.
func (s *session) over() bool {
	select {
	case <-s.f.ended:
		return true
	default:
		return false
	}
}

// tooLate reports whether the log of a pod that is over has been tried for long
// enough.
func (s *session) tooLate() bool {
	now := s.t.now()
	if s.expires.IsZero() {
		s.expires = now.Add(time.Duration(s.attempt.Job.MarkerGraceSeconds) * time.Second)
	}
	return now.After(s.expires) || s.seen().deleted
}

func (s *session) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// read reads the log once, from where the last attempt ended. A live one is read
// until a little after the end of the pod: kubelets take seconds to say that a log
// has ended.
func (s *session) read(ctx context.Context, live bool) (bytes int64, err error) {
	c, err := s.t.client(s.j.Kubeconfig, s.j.Context)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	params := map[string]string{"container": pod.Container, "timestamps": "true", "follow": strconv.FormatBool(live)}
	if s.since != "" {
		params["sinceTime"] = s.since
	}
	body, err := c.stream(ctx, apiCore+s.j.Namespace+"/pods/"+s.pod+"/log", params)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if live {
		go s.endWith(ctx, cancel)
	}
	return s.lines(body)
}

// lines reads a log to its end, or to its last record.
func (s *session) lines(body io.Reader) (n int64, err error) {
	s.log.Resume()
	r := bufio.NewReaderSize(body, 64<<10)
	whole := true // what comes next begins a line
	for !s.log.Complete() {
		line, err := r.ReadSlice('\n')
		n += int64(len(line))
		if whole && len(line) > 0 && !stamped(line) {
			return n, fmt.Errorf("the kubelet says instead of the log: %s", line[:min(len(line), 300)])
		}
		if len(line) > 0 {
			s.since = s.log.Line(line)
			whole = line[len(line)-1] == '\n'
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
	}
	return n, nil
}

// stamped reports whether a line of a log begins with its time, as all that were
// asked for do: what does not is of the kubelet, not of the container.
func stamped(line []byte) bool {
	stamp, _, _ := bytes.Cut(bytes.TrimRight(line[:min(len(line), 40)], "\r\n"), []byte(" "))
	_, err := time.Parse(time.RFC3339Nano, string(stamp))
	return err == nil
}

// endWith ends the reading of a log a little after the end of its pod.
func (s *session) endWith(ctx context.Context, cancel context.CancelFunc) {
	select {
	case <-s.f.ended:
		s.rest(ctx, afterEnd)
		cancel()
	case <-ctx.Done():
	}
}

// show adds what the workload says to the rank's stdout, where nobody else writes it.
func (s *session) show(b []byte) (int, error) {
	if !s.attempt.Job.K8s.Unwrapped && !s.log.Begun() {
		return len(b), nil // the rank writes into the attempt directory itself
	}
	if s.scan != nil {
		s.scan.feed(b)
	}
	if s.live == nil {
		f, err := os.OpenFile(filepath.Join(s.dir(), rundir.StdoutFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return len(b), nil //nolint:nilerr // the archive at the end has it too
		}
		s.live = f
	}
	_, _ = s.live.Write(b) // see above
	return len(b), nil
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"assay/pkg/plan"
	"assay/pkg/pod"
	"assay/pkg/rundir"
)

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
	begun   bool      // the begin of the rank is written down
	kept    bool
}

func (s *session) dir() string { return rundir.RankDir(s.attempt.Dir, s.rank) }

// newSession prepares to fetch from a pod. The caller holds the lock.
func newSession(t *Target, j *job, p *podView, rank, at int) *session {
	f := &fetch{ended: make(chan struct{}), isOver: p.over()}
	if f.isOver {
		close(f.ended)
	}
	return &session{t: t, j: j, p: p, f: f, pod: p.Name, attempt: *j.attempt, rank: rank, at: at}
}

// run fetches, and returns why a rank without records could not be read.
func (s *session) run(ctx context.Context) (unread string) {
	if err := s.makeRoom(); err != nil {
		return err.Error()
	}
	if s.attempt.Job.K8s.Unwrapped {
		s.scan = newScan(s.attempt.Job)
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

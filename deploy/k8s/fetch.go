package k8s

import (
	"context"
	"time"
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
		p := pods[len(pods)-1]
		var why string
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

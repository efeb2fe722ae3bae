package batch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/logtail"
	"assay/pkg/phrase"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

// memory is what a target remembers of a job between two questions. It is only
// patience: another process starts without it.
type memory struct {
	restarts int
	began    int       // ranks up to here are known to have begun
	done     int       // ranks up to here are known to have ended
	read     bool      // the ends of all ranks have been read
	stopped  bool      // one of them was told to stop
	first    time.Time // when this process saw the job first
	change   time.Time // when the observation last said something new
	phase    evidence.Phase
	word     string

	ended, missing, complete, silent, odd time.Time // since when, zero when it is not so
}

// memoryOf returns what is remembered of a job. The caller holds the lock.
func (t *Target) memoryOf(j job) *memory {
	m := t.jobs[j.ID]
	if m == nil {
		m = &memory{first: t.now(), change: t.now(), restarts: restartsOf(j)}
		t.jobs[j.ID] = m
	}
	return m
}

// restartsOf is how often the job was started again, as far as its nodes have written
// down: the scheduler may know no more by now.
func restartsOf(j job) int {
	for n := 0; ; n++ {
		a, err := rundir.ReadAttempt(filepath.Join(filepath.Dir(j.Dir), strconv.Itoa(j.Attempt+n+1)))
		if err != nil || a.SubmittedAs != j.Attempt {
			return n
		}
	}
}

// follow goes over to the newest start of the job.
func (m *memory) follow(a Answer) {
	if a.Known && a.Restarts > m.restarts {
		m.restarts, m.began, m.done, m.complete, m.read, m.stopped = a.Restarts, 0, 0, time.Time{}, false, false
	}
}

// attemptDir is the directory of the newest start of the job.
func (m *memory) attemptDir(j job) string {
	return filepath.Join(filepath.Dir(j.Dir), strconv.Itoa(j.Attempt+m.restarts))
}

// look counts the markers of the newest start. Each look goes on where the last
// one ended, and reads the directory of one rank, which also makes a network
// filesystem forget what it remembers of it.
func (m *memory) look(j job) markers {
	dir := m.attemptDir(j)
	for m.done < j.Ranks && has(rundir.RankDir(dir, m.done), rundir.EndFile) {
		m.done++
	}
	if m.began == 0 {
		m.began = started(filepath.Dir(rundir.RankDir(dir, 0)))
	}
	return markers{ranks: j.Ranks, began: max(m.began, m.done), ended: m.done, stopped: m.stopped}
}

// readEnds finds out whether a rank was told to stop, once all have ended.
func (m *memory) readEnds(j job) bool {
	for rank := 0; !m.read && !m.stopped && rank < j.Ranks; rank++ {
		var end evidence.End
		data, err := regular.ReadFile(filepath.Join(rundir.RankDir(m.attemptDir(j), rank), rundir.EndFile), maxEnd)
		m.stopped = err == nil && json.Unmarshal(data, &end) == nil && end.Outcome == evidence.OutcomeStopped
	}
	m.read = true
	return m.stopped
}

// maxEnd is the largest end marker that is read, in bytes.
const maxEnd = 1 << 20

// has reports whether a directory lists a file, and it is not empty.
func has(dir, name string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Name() == name {
			info, err := e.Info()
			return err == nil && info.Size() > 0
		}
	}
	return false
}

// started counts the ranks that left anything.
func started(dir string) int {
	entries, _ := os.ReadDir(dir) // none when it cannot be read
	return len(entries)
}

// count fills in how long things have been as they are. What the queue said, it said
// at heard: an accounting that gives no answer takes its time.
func (m *memory) count(v *view, heard, now time.Time) {
	since := func(at *time.Time, is bool) time.Duration {
		switch {
		case !is:
			*at = time.Time{}
			return 0
		case at.IsZero():
			*at = now
		}
		return now.Sub(*at)
	}
	queue, history := v.queue, v.history
	if m.ended.IsZero() && queue.ended() && history.err != nil {
		m.ended = heard
	}
	v.endedFor = since(&m.ended, queue.ended() || history.ended() && !queue.Known)
	v.missingFor = since(&m.missing, queue.err == nil && !queue.Known)
	v.completeFor = since(&m.complete, v.markers.complete())
	v.silentFor = since(&m.silent, queue.err != nil && !history.ended())
	v.oddFor = since(&m.odd, queue.Known && queue.Phase == evidence.PhaseUnknown && queue.Word == m.word)
}

// note remembers what was said.
func (m *memory) note(o evidence.Observation, now time.Time) {
	if o.Phase != m.phase || o.Word != m.word {
		m.phase, m.word, m.change = o.Phase, o.Word, now
	}
}

// lastWords is the end of what a batch script wrote, to be added to a sentence. All
// starts of a job write to one file.
func lastWords(output string, restarts int) string {
	if output == "" {
		return ""
	}
	all, _ := logtail.Last(output, 40)
	lines, whose := ofStart(all, restarts)
	switch {
	case !whose:
		return " (what this start and the earlier ones wrote is in " + output + ")"
	case len(lines) == 0:
		return " (nothing is in " + output + ")"
	}
	return ": " + phrase.Line(strings.Join(lines[max(0, len(lines)-3):], " / "))
}

// startLine begins the line that a batch script writes at each start of a job,
// followed by how often it was started before.
const startLine = "assay: start "

// ofStart are the lines that one start of a job wrote. ok is false when that cannot
// be told.
func ofStart(lines []string, restarts int) (of []string, ok bool) {
	for i := len(lines) - 1; i >= 0; i-- {
		if rest, is := strings.CutPrefix(lines[i], startLine); is {
			n, _, _ := strings.Cut(rest, " ")
			return lines[i+1:], n == strconv.Itoa(restarts)
		}
	}
	return lines, restarts == 0
}

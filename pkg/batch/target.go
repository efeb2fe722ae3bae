package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/rundir"
)

// ScriptFile is the name of the batch script in the attempt directory, and
// OutputFile that of what it writes there.
const (
	ScriptFile = "job.sh"
	OutputFile = "job.out"
)

// Target runs jobs under a scheduler.
type Target struct {
	s   Scheduler
	now func() time.Time

	mu     sync.Mutex
	jobs   map[string]*memory // by id
	tokens float64            // questions that may follow at once, when the last was asked
	asked  time.Time          // when that was
}

// New returns a target. now is the clock by which it is patient.
func New(s Scheduler, now func() time.Time) *Target {
	return &Target{s: s, now: now, jobs: map[string]*memory{}}
}

// Name implements deploy.Target.
func (t *Target) Name() string { return t.s.Name() }

// Queues implements deploy.Queue.
func (t *Target) Queues() bool { return true }

// job is the opaque part of a handle.
type job struct {
	Ref
	Dir     string `json:"dir"`     // of the attempt that was submitted
	Attempt int    `json:"attempt"` // its number
	Ranks   int    `json:"ranks"`
	Grace   int    `json:"grace_seconds"`
}

// Render implements deploy.Target.
func (t *Target) Render(a plan.Attempt) ([]deploy.File, error) {
	data, err := rundir.EncodeAttempt(a)
	if err != nil {
		return nil, err
	}
	script, err := t.s.Script(a)
	if err != nil { // a template, or a value that the scheduler cannot be given
		return nil, exitcode.With(exitcode.Invalid, err)
	}
	return []deploy.File{
		{Name: rundir.JobFile, Mode: 0o600, Data: data},
		{Name: ScriptFile, Mode: 0o700, Data: script},
	}, nil
}

// Submit implements deploy.Target.
func (t *Target) Submit(ctx context.Context, a plan.Attempt) (deploy.Handle, error) {
	if err := ctx.Err(); err != nil {
		return deploy.Handle{}, err
	}
	// What the scheduler would find out on a node, too late: it cannot write there.
	if err := rundir.MakeRanksDir(a.Dir); err != nil {
		return deploy.Handle{}, fmt.Errorf("%w: the ranks have no directory: %w", deploy.ErrRefused, err)
	}
	ref, err := t.s.Submit(ctx, a)
	if err != nil {
		return deploy.Handle{}, err
	}
	return t.handle(a, ref)
}

// Find implements deploy.Finder.
func (t *Target) Find(ctx context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	ref, found, err := t.s.Find(ctx, a)
	if err != nil || !found {
		return deploy.Handle{}, false, err
	}
	h, err := t.handle(a, ref)
	return h, err == nil, err
}

func (t *Target) handle(a plan.Attempt, ref Ref) (deploy.Handle, error) {
	data, err := json.Marshal(job{Ref: ref, Dir: a.Dir, Attempt: a.Number, Ranks: a.Job.WorldSize, Grace: a.Job.MarkerGraceSeconds})
	return deploy.Handle{Target: t.s.Name(), ID: ref.ID, Data: data}, err
}

// decode reads the reference in a handle.
func (t *Target) decode(h deploy.Handle) (job, error) {
	var j job
	if h.Target != t.s.Name() {
		return j, fmt.Errorf("handle %q belongs to target %q, not to %s", h.ID, h.Target, t.s.Name())
	}
	if err := json.Unmarshal(h.Data, &j); err != nil {
		return j, fmt.Errorf("handle %q is unreadable: %w", h.ID, err)
	}
	return j, nil
}

func (t *Target) decodeAll(handles []deploy.Handle) ([]job, []Ref, error) {
	jobs, refs := make([]job, len(handles)), make([]Ref, len(handles))
	for i, h := range handles {
		j, err := t.decode(h)
		if err != nil {
			return nil, nil, err
		}
		jobs[i], refs[i] = j, j.Ref
	}
	return jobs, refs, nil
}

// Cancel implements deploy.Target.
func (t *Target) Cancel(ctx context.Context, h deploy.Handle) error {
	j, err := t.decode(h)
	if err != nil {
		return err
	}
	return t.s.Cancel(ctx, j.Ref)
}

// HandleFor makes a handle of a job that some run submitted, which is good for
// Cancel.
func (t *Target) HandleFor(ref Ref) (deploy.Handle, error) {
	return t.handle(plan.Attempt{}, ref)
}

// Observe implements deploy.Target: one question to the queue for all jobs, and
// one to the accounting for those that the queue does not say enough about.
func (t *Target) Observe(ctx context.Context, handles []deploy.Handle) ([]evidence.Observation, error) {
	jobs, refs, err := t.decodeAll(handles)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.spend(t.now())
	t.mu.Unlock()
	queue, qerr := t.s.Queue(ctx, refs)
	if err := ctx.Err(); err != nil {
		return nil, err // what was asked was cut short
	}
	heard := t.now()
	queueName, _ := t.s.Sources()
	views := make([]view, len(jobs))
	var ask []int
	t.mu.Lock()
	for i, j := range jobs {
		m := t.memoryOf(j)
		v := &views[i]
		v.queue = source{name: queueName, asked: true, err: qerr}
		if i < len(queue) {
			v.queue.name = cmp.Or(queue[i].Source, queueName)
		}
		if qerr == nil {
			v.queue.Answer = queue[i]
		}
		v.grace, v.steps = time.Duration(j.Grace)*time.Second, j.Steps
		m.follow(v.queue.Answer)
		v.markers = m.look(j)
		if !m.complete.IsZero() {
			v.completeFor = heard.Sub(m.complete)
		}
		if v.needsHistory() {
			ask = append(ask, i)
		}
	}
	t.mu.Unlock()
	herr := t.askHistory(ctx, refs, views, ask)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return t.conclude(jobs, views, heard, qerr, herr)
}

// askHistory asks the accounting about some of the jobs.
func (t *Target) askHistory(ctx context.Context, refs []Ref, views []view, ask []int) error {
	if len(ask) == 0 {
		return nil
	}
	some := make([]Ref, len(ask))
	for n, i := range ask {
		some[n] = refs[i]
	}
	_, historyName := t.s.Sources()
	answers, err := t.s.History(ctx, some)
	absent := errors.Is(err, ErrNoHistory)
	for n, i := range ask {
		views[i].history = source{name: historyName, asked: true, absent: absent, err: err}
		if n < len(answers) {
			views[i].history.name = cmp.Or(answers[n].Source, historyName)
		}
		if err == nil {
			views[i].history.Answer = answers[n]
		}
	}
	if absent {
		return nil
	}
	return err
}

// conclude decides about every job. When nobody could be asked and nothing can be
// concluded without, that is the error.
func (t *Target) conclude(jobs []job, views []view, heard time.Time, qerr, herr error) ([]evidence.Observation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	out := make([]evidence.Observation, len(jobs))
	learned := false
	for i, j := range jobs {
		m := t.memoryOf(j)
		m.follow(views[i].history.Answer)
		if !views[i].queue.Known { // the nodes may know more
			m.follow(Answer{Known: true, Restarts: restartsOf(j)})
		}
		views[i].restarts, views[i].markers = m.restarts, m.look(j)
		m.count(&views[i], heard, now)
		if views[i].completeFor >= min(drainAfter, silentAfter) {
			views[i].markers.stopped = m.readEnds(j)
		}
		o, ok := decide(views[i])
		learned = learned || ok
		o.At, o.JobID = now.UTC(), j.ID
		switch {
		case o.NotLaunched != "":
			o.NotLaunched += lastWords(j.Output, o.Restarts)
		case o.Phase == evidence.PhaseEnded && o.Word == "FAILED" && !views[i].markers.complete():
			// Why a rank left no record, the one that started it may know.
			if words, is := strings.CutPrefix(lastWords(j.Output, o.Restarts), ": "); is {
				o.Detail = strings.TrimPrefix(o.Detail+"; the batch script wrote: "+words, "; ")
			}
		}
		m.note(o, now)
		out[i] = o
	}
	if qerr != nil && !learned {
		return nil, errors.Join(qerr, herr)
	}
	return out, nil
}

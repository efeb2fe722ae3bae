package run

import (
	"fmt"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// order says which jobs may begin: those of the lowest stage that is not settled,
// whose nodes no other job of the run is on, within the limit of nodes under load.
type order struct {
	open     map[int]int     // by stage: jobs that are not settled
	lowest   int             // the lowest stage that has any
	highest  int             //
	busy     map[string]bool // nodes that jobs are on
	load     int             // nodes under load
	maxNodes int             // 0: no limit
	halt     *rundir.Entry   // the job whose failure ends the suite
	haltName string          // its test

	entries map[string]rundir.Entry // of the ledger, by id
}

func newOrder(l rundir.Ledger) order {
	o := order{open: map[int]int{}, busy: map[string]bool{}, maxNodes: l.MaxNodes, entries: make(map[string]rundir.Entry, len(l.Jobs))}
	for _, e := range l.Jobs {
		o.open[e.Stage]++
		o.highest = max(o.highest, e.Stage)
		o.entries[e.ID] = e
	}
	o.advance()
	return o
}

// advance moves on to the lowest stage that is not settled.
func (o *order) advance() {
	for o.lowest < o.highest && o.open[o.lowest] == 0 {
		o.lowest++
	}
}

func (o *order) allows(e rundir.Entry) bool {
	if e.Stage > o.lowest || o.maxNodes > 0 && o.load > 0 && o.load+cost(e) > o.maxNodes {
		return false
	}
	for _, n := range e.Nodes {
		if o.busy[n] {
			return false
		}
	}
	return true
}

func cost(e rundir.Entry) int { return max(e.Cost, 1) }

// occupy notes that a job is with the target; vacate, that it is no more.
func (o *order) occupy(j plan.Job) { o.put(j, true) }
func (o *order) vacate(j plan.Job) { o.put(j, false) }

func (o *order) put(j plan.Job, there bool) {
	for _, n := range j.Nodes {
		o.busy[n] = there
	}
	if there {
		o.load += j.Cost()
	} else {
		o.load -= j.Cost()
	}
}

// settle notes that no more attempt at a job will be made.
func (o *order) settle(e rundir.Entry, j plan.Job, word verdict.Word) {
	o.open[e.Stage]--
	o.advance()
	if j.StopOnFail && !j.Optional && word == verdict.Fail && o.halt == nil {
		o.halt, o.haltName = &e, j.Test
	}
}

// halted says whether a job belongs to a test that is not begun any more.
func (o *order) halted(e rundir.Entry) bool {
	return o.halt != nil && e.Stage > o.halt.Stage && e.Key != o.halt.Key
}

// pick is the place in the queue of the job that may begin now, -1 when none may.
func (f *flight) pick() int {
	for i, e := range f.queue {
		if f.order.allows(e) {
			return i
		}
	}
	return -1
}

// takeNext takes the job in a place out of the queue.
func (f *flight) takeNext(i int) rundir.Entry {
	e := f.queue[i]
	if i == 0 {
		f.queue = f.queue[1:]
		return e
	}
	f.queue = append(f.queue[:i:i], f.queue[i+1:]...)
	return e
}

// dropHalted drops the jobs of tests that are not begun any more.
func (d *Driver) dropHalted(f *flight) {
	if f.order.halt == nil {
		return
	}
	why := evidence.Launch{
		State: evidence.LaunchDropped, Code: verdict.CodeNotRun,
		Detail: fmt.Sprintf("the job was not run: test %s failed before it (job %s), and the suite stops on a failure (stop_on_fail)", f.order.haltName, f.order.halt.ID),
	}
	var rest, dropped []rundir.Entry
	for _, e := range f.queue {
		if f.order.halted(e) {
			dropped = append(dropped, e)
		} else {
			rest = append(rest, e)
		}
	}
	f.queue = rest
	for _, e := range dropped {
		d.failed(f, d.dropFor(f, e, why))
	}
}

// conclude judges the newest attempt at a job, keeps the verdict beside its evidence,
// and then either makes the attempt that is due or settles the job. It returns the
// verdict on the attempt.
func (d *Driver) conclude(f *flight, e rundir.Entry) (report.Job, error) {
	attempts := judgeAttempts(d.Run, e, true)
	last := attempts[len(attempts)-1]
	if err := writeJobVerdict(d.Run, last.job); err != nil {
		d.settled(f, e, attempts)
		return last.job, err
	}
	return last.job, d.goOn(f, e, attempts)
}

// goOn makes the attempt at a job that is due after others, or settles it.
func (d *Driver) goOn(f *flight, e rundir.Entry, attempts []judged) error {
	last := attempts[len(attempts)-1]
	trigger, due := policyOf(attempts).Next(trials(attempts))
	if _, stopped := stoppedBy(d.Run, e); !due || stopped || f.stopping || f.cancel != nil || f.order.halted(e) {
		d.settled(f, e, attempts)
		return nil
	}
	if err := d.attemptAgain(e, attempts, trigger); err != nil {
		d.settled(f, e, attempts)
		return fmt.Errorf("job %s: another attempt could not be made: %w", e.ID, err)
	}
	if trigger == verdict.TriggerRetry {
		d.notice("job %s: attempt %d could not be judged, and is made again: %s", e.ID, last.job.Attempts, firstReason(last.job))
	}
	f.queue = append([]rundir.Entry{e}, f.queue...)
	return nil
}

// attemptAgain writes down an attempt that is going to be made.
func (d *Driver) attemptAgain(e rundir.Entry, attempts []judged, trigger verdict.Trigger) error {
	a, err := next(d.Run, attempts, trigger)
	if err != nil {
		return err
	}
	files, err := d.Target.Render(a)
	if err != nil {
		return err
	}
	return d.Run.MakeAttempt(a, func(dir string) error { return writeFiles(d.Run, dir, files) })
}

// settled tells that a job has its verdict.
func (d *Driver) settled(f *flight, e rundir.Entry, attempts []judged) {
	j := fold(d.Run, e, attempts)
	job := attempts[0].attempt.Job
	f.order.settle(e, job, j.Verdict)
	d.event(Event{Kind: EventEnded, Job: &plan.Job{ID: e.ID, Key: e.Key}, Result: &j})
}

func firstReason(j report.Job) string {
	if len(j.Reasons) == 0 {
		return j.Verdict.String()
	}
	return phrase.Line(j.Reasons[0].Message)
}

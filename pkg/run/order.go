package run

import (
	"context"
	"fmt"
	"slices"

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
	open     map[int]int         // by stage: jobs that are not settled
	lowest   int                 // the lowest stage that has any
	highest  int                 //
	busy     map[string]string   // by node: the job that is on it, or may be
	with     map[string]plan.Job // the jobs that are with the target, or may be
	load     int                 // nodes under load
	maxNodes int                 // 0: no limit
	halt     *rundir.Entry       // the job whose failure ends the suite
	haltName string              // its test

	entries map[string]rundir.Entry // of the ledger, by id
	settled map[string]bool         // no more attempt will be made at them
}

func newOrder(l rundir.Ledger) order {
	o := order{
		open: map[int]int{}, busy: map[string]string{}, with: map[string]plan.Job{}, maxNodes: l.MaxNodes,
		entries: make(map[string]rundir.Entry, len(l.Jobs)), settled: map[string]bool{},
	}
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
	load := o.load
	if own, there := o.with[e.ID]; there { // it may be with the target already
		load -= own.Cost()
	}
	if e.Stage > o.lowest || o.maxNodes > 0 && load > 0 && load+cost(e) > o.maxNodes {
		return false
	}
	for _, n := range e.Nodes {
		if by := o.busy[n]; by != "" && by != e.ID {
			return false
		}
	}
	return true
}

func cost(e rundir.Entry) int { return max(e.Cost, 1) }

// occupy notes that a job is with the target, or may be: its nodes are under load.
func (o *order) occupy(j plan.Job) {
	if _, there := o.with[j.ID]; there {
		return
	}
	o.with[j.ID] = j
	o.load += j.Cost()
	for _, n := range j.Nodes {
		o.busy[n] = j.ID
	}
}

// vacate notes that a job is not with the target any more.
func (o *order) vacate(id string) {
	j, there := o.with[id]
	if !there {
		return
	}
	delete(o.with, id)
	o.load -= j.Cost()
	for _, n := range j.Nodes {
		if o.busy[n] == id {
			delete(o.busy, n)
		}
	}
}

// settle notes that no more attempt at a job will be made.
func (o *order) settle(e rundir.Entry, j plan.Job, word verdict.Word) {
	if o.settled[e.ID] {
		return
	}
	o.settled[e.ID] = true
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

// dropHalted drops the jobs of tests that are not begun any more, unless they may have
// been submitted already: those are asked for.
func (d *Driver) dropHalted(ctx context.Context, f *flight) {
	if f.order.halt == nil {
		return
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
		d.failed(f, d.dropQueued(ctx, f, e, f.order.notRun(), false))
		f.adrift(e)
	}
}

// notRun says that and why a job is not begun.
func (o *order) notRun() evidence.Launch {
	return evidence.Launch{
		State: evidence.LaunchDropped, Code: verdict.CodeNotRun,
		Detail: fmt.Sprintf("the job was not run: test %s failed before it (job %s), and the suite stops on a failure (stop_on_fail)", o.haltName, o.halt.ID),
	}
}

// adrift takes a job out of its stage that is neither with the target nor in the queue
// nor settled, since something about it could not be read or written. Nothing is said of
// it, and the others go on; its nodes stay taken where it may have been submitted.
func (f *flight) adrift(e rundir.Entry) {
	if f.order.settled[e.ID] || slices.ContainsFunc(f.queue, func(q rundir.Entry) bool { return q.ID == e.ID }) ||
		slices.ContainsFunc(f.active, func(a activeJob) bool { return a.attempt.Job.ID == e.ID }) {
		return
	}
	f.order.settle(e, plan.Job{}, verdict.Unknown)
}

// conclude judges the newest attempt at a job, keeps the verdict beside its evidence,
// and then either makes the attempt that is due or settles the job. It returns the
// verdict on the attempt.
func (d *Driver) conclude(f *flight, e rundir.Entry) (report.Job, error) {
	f.order.vacate(e.ID)
	attempts := d.attempts(f, e)
	last := attempts[len(attempts)-1]
	if err := writeAttempt(d.Run, last); err != nil {
		d.settled(f, e, attempts)
		return last.job, err
	}
	return last.job, d.goOn(f, e, attempts)
}

// attempts are the attempts at a job. Those that were judged by this driver are not read
// again: a soak has thousands.
func (d *Driver) attempts(f *flight, e rundir.Entry) []judged {
	known := f.judged[e.ID]
	numbers, err := d.Run.Attempts(e.ID)
	if n := len(known); n == 0 || err != nil || len(numbers) != n+1 || known[n-1].attempt.Number != numbers[n-1] {
		f.judged[e.ID] = judgeAttempts(d.Run, e, true)
		return f.judged[e.ID]
	}
	newest := judgeNumber(d.Run, e, numbers[len(numbers)-1], true)
	if newest.attempt.SubmittedAs != 0 {
		f.judged[e.ID] = judgeAttempts(d.Run, e, true)
		return f.judged[e.ID]
	}
	f.judged[e.ID] = append(known, newest)
	return f.judged[e.ID]
}

// goOn makes the attempt at a job that is due after others, or settles it.
func (d *Driver) goOn(f *flight, e rundir.Entry, attempts []judged) error {
	last := attempts[len(attempts)-1]
	trigger, due := policyOf(attempts).Next(trials(attempts))
	if !due && resumed(d.Run, e, last) {
		trigger, due = verdict.TriggerResume, true
	}
	if _, stopped := stoppedBy(d.Run, e); !due || stopped || f.stopping || f.cancel != nil {
		d.settled(f, e, attempts)
		return nil
	}
	if err := d.attemptAgain(e, attempts, trigger); err != nil {
		d.settled(f, e, attempts)
		return fmt.Errorf("job %s: another attempt could not be made: %w", e.ID, err)
	}
	if f.order.halted(e) {
		return d.dropFor(f, e, f.order.notRun())
	}
	if trigger == verdict.TriggerRetry {
		d.notice("job %s: attempt %d could not be judged, and is made again: %s", e.ID, last.job.Attempts, firstReason(last.job))
	}
	f.queue = append([]rundir.Entry{e}, f.queue...)
	return nil
}

// resumed says that an attempt was ended by a request to end the run that was lifted
// since: a person asked for what had not been judged.
func resumed(r *rundir.Run, e rundir.Entry, last judged) bool {
	if last.job.Verdict != verdict.Error || !cancelled(last.job) {
		return false
	}
	cancels, err := r.ReadCancels()
	return err == nil && slices.ContainsFunc(cancels, func(c evidence.Cancel) bool {
		return c.Until != nil && c.Covers(e.ID, last.attempt.Number)
	})
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
	a, _ := planned(attempts)
	f.order.settle(e, a.Job, j.Verdict)
	delete(f.judged, e.ID)
	d.event(Event{Kind: EventEnded, Job: &plan.Job{ID: e.ID, Key: e.Key}, Result: &j})
}

func firstReason(j report.Job) string {
	if len(j.Reasons) == 0 {
		return j.Verdict.String()
	}
	return phrase.Line(j.Reasons[0].Message)
}

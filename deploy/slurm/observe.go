package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/pkg/batch"
	"assay/pkg/evidence"
)

// Queue implements batch.Scheduler. All jobs that are talked about in the same way
// are asked for at once.
func (s *scheduler) Queue(ctx context.Context, refs []batch.Ref) ([]batch.Answer, error) {
	out := make([]batch.Answer, len(refs))
	err := s.each(refs, func(c controller, mine []int) error {
		queueName, _ := sourcesOf(c)
		defer attribute(out, mine, queueName)
		var users []string
		for _, i := range mine {
			users = append(users, refs[i].User)
		}
		slices.Sort(users)
		rows, err := c.queue(ctx, slices.Compact(users))
		if err != nil {
			return err
		}
		byID := map[string]row{}
		for _, r := range rows {
			byID[r.job] = r
		}
		for _, i := range mine {
			r, listed := byID[refs[i].ID]
			switch {
			case listed && !s.known(r, refs[i]):
				out[i].Detail = fmt.Sprintf("job %s is another one now, named %q", r.job, r.name)
			case listed:
				out[i] = answer(r)
				s.remember(r)
			}
		}
		return nil
	}, func(mine []int) error { return s.queueInPlace(ctx, refs, mine, out) })
	return out, err
}

// each calls ask once for each way of talking about some of the jobs, with their
// indices, and within once for those that run inside an allocation.
func (s *scheduler) each(refs []batch.Ref, ask func(controller, []int) error, within func([]int) error) error {
	groups := map[string][]int{}
	var inside []int
	for i, r := range refs {
		if inPlace(r) {
			inside = append(inside, i)
			continue
		}
		groups[r.More["rest_url"]] = append(groups[r.More["rest_url"]], i)
	}
	var errs []error
	if len(inside) > 0 {
		errs = append(errs, within(inside))
	}
	for _, mine := range groups {
		errs = append(errs, ask(s.controllerOf(refs[mine[0]].More), mine))
	}
	return errors.Join(errs...)
}

// ours says whether a row is about the job that was submitted: ids are recycled,
// names carry the nonce.
func ours(r row, ref batch.Ref) bool { return r.name == ref.Name && r.user == ref.User }

// known says whether a row is about the job that was submitted, also when somebody
// has given it another name since it was seen last: the submit time tells.
func (s *scheduler) known(r row, ref batch.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ours(r, ref) || r.user == ref.User && r.submit != "" && r.submit == s.submitted[r.job]
}

// remember keeps the submit time of a job, by the scheduler's clock.
func (s *scheduler) remember(r row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.submitted[r.job] = r.submit
}

// answer is what a row of a job says.
func answer(r row) batch.Answer {
	word := firstWord(r.state)
	st := lookup(word)
	a := batch.Answer{
		Known: true, Phase: st.phase, Word: word, Bad: st.bad, Again: st.again, Draining: st.draining, Script: st.script,
		Clean:   word == "COMPLETED" && (r.exit == "0:0" || r.exit == ""),
		Started: r.nodes != "", Restarts: r.restarts, Nodes: r.nodes,
	}
	switch {
	case st.phase == evidence.PhasePending && r.reason != "" && r.reason != "None":
		a.Detail = "reason " + r.reason
	case strings.HasPrefix(r.state, word+" by "):
		a.Detail = "by uid " + strings.TrimPrefix(r.state, word+" by ")
	case r.state != word:
		a.Detail = r.state
	case st.phase == evidence.PhaseEnded && !a.Clean:
		a.Detail = exitDetail(r.exit)
	}
	return a
}

// notStarted is the exit status of a script whose directory or output cannot be
// opened on its node.
const notStarted = "0:53"

func exitDetail(exit string) string {
	if exit == "" || exit == "0:0" {
		return ""
	}
	code, signal, _ := strings.Cut(exit, ":")
	switch n, err := strconv.Atoi(signal); {
	case code != "0":
		return "exit code " + code
	case exit == notStarted:
		return "the script could not be started: its directory or the file of its output cannot be opened (" + exit + ")"
	case err == nil && n > 64: // no signal, but SLURM's word for a cause
		return "exit status " + exit
	}
	return "ended by signal " + signal
}

// History implements batch.Scheduler.
func (s *scheduler) History(ctx context.Context, refs []batch.Ref) ([]batch.Answer, error) {
	out := make([]batch.Answer, len(refs))
	err := s.each(refs, func(c controller, mine []int) error {
		_, historyName := sourcesOf(c)
		defer attribute(out, mine, historyName)
		ids := make([]string, len(mine))
		for n, i := range mine {
			ids[n] = refs[i].ID
		}
		rows, err := s.ask(ctx, c, ids)
		if err != nil {
			return err
		}
		byJob := map[string][]row{}
		for _, r := range rows {
			byJob[r.job] = append(byJob[r.job], r)
		}
		for _, i := range mine {
			out[i] = s.account(byJob[refs[i].ID], refs[i])
		}
		return nil
	}, func(mine []int) error {
		var ids []string
		for _, i := range mine {
			ids = append(ids, refs[i].More[moreAllocation])
		}
		rows, err := s.ask(ctx, s.commands(), unique(ids))
		s.mu.Lock()
		defer s.mu.Unlock()
		historyInPlace(rows, refs, mine, s.swept, out)
		return err
	})
	return out, err
}

// ask asks the accounting about jobs, unless it is too early to ask again.
func (s *scheduler) ask(ctx context.Context, c controller, ids []string) ([]row, error) {
	if err := s.paused(); err != nil {
		return nil, err
	}
	rows, err := c.history(ctx, ids)
	if ctx.Err() == nil && !errors.Is(err, batch.ErrNoHistory) {
		s.noteHistory(err)
	}
	return rows, err
}

// paused says why the accounting is not asked now.
func (s *scheduler) paused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pause.wait(time.Now())
}

// noteHistory remembers how a question to the accounting went.
func (s *scheduler) noteHistory(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause.note(err, time.Now())
}

// start is one start of a job: its own row and those of its steps.
type start struct {
	row
	steps []row
}

// account makes one answer of the rows of a job: of every start of it, and of
// other jobs that had its id.
func (s *scheduler) account(rows []row, ref batch.Ref) batch.Answer {
	starts := startsOf(rows, func(r row) bool { return ours(r, ref) || s.oursUnnamed(r, ref) })
	if len(starts) == 0 {
		return batch.Answer{}
	}
	last := starts[len(starts)-1]
	a := answer(last.row)
	if last.name == unnamed {
		a.Nodes = "" // not all of them yet
	}
	a.Restarts = len(starts) - 1
	for _, e := range starts[:a.Restarts] {
		a.Earlier = append(a.Earlier, evidence.Earlier{Word: firstWord(e.state), Nodes: e.nodes})
	}
	if a.Word == "FAILED" && !ref.Steps {
		a = cancelledStep(a, last)
	}
	return truth(a, last)
}

// cancelledStep says of a job that failed because somebody ended its step that it
// was cancelled: nothing that ran is to blame.
func cancelledStep(a batch.Answer, s start) batch.Answer {
	for _, step := range s.steps {
		if who, is := strings.CutPrefix(step.state, "CANCELLED by "); is && step.step != "batch" && step.step != "extern" {
			a.Word, a.Script, a.Detail = "CANCELLED", false, fmt.Sprintf("step %s was cancelled by uid %s, the job as a whole %s", step.step, who, stateAndExit(s.row))
			return a
		}
	}
	return a
}

// unnamed is what the accounting calls a job for some seconds, before it has its
// name and all of its nodes.
const unnamed = "allocation"

// oursUnnamed says whether a row without a name yet is of our job: the submit time
// tells.
func (s *scheduler) oursUnnamed(r row, ref batch.Ref) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.name == unnamed && r.user == ref.User && r.submit != "" && r.submit == s.submitted[r.job]
}

// startsOf sorts rows into starts: each row of the job is followed by its steps. A
// job that is given other nodes while it runs has one more row for that, and goes on.
func startsOf(rows []row, mine func(row) bool) []start {
	var starts []start
	taken := false
	for _, r := range rows {
		switch {
		case r.step == "":
			taken = mine(r)
			last := len(starts) - 1
			switch {
			case !taken:
			case last >= 0 && firstWord(starts[last].state) == "RESIZING":
				starts[last].row = r
			default:
				starts = append(starts, start{row: r})
			}
		case taken:
			last := &starts[len(starts)-1]
			last.steps = append(last.steps, r)
		}
	}
	return starts
}

// truth looks at the steps of a job that says less than they do: a script that
// hides the code of its step, a step that ran out of memory and a job that only
// failed. A word that names another cause stands.
func truth(a batch.Answer, s start) batch.Answer {
	if a.Word != "COMPLETED" && a.Word != "FAILED" {
		return a
	}
	var worst *row
	for i, step := range s.steps {
		word := firstWord(step.state)
		st := lookup(word)
		hidden := a.Word == "COMPLETED" && st.bad && word != "CANCELLED"
		cause := word == "OUT_OF_MEMORY" || word == "NODE_FAIL"
		if (hidden || cause) && (worst == nil || cause) {
			worst = &s.steps[i]
		}
	}
	if worst == nil {
		return blame(a, s)
	}
	said := fmt.Sprintf("step %s is %s on %s", worst.step, stateAndExit(*worst), worst.nodes)
	a.Detail = fmt.Sprintf("%s, the job as a whole %s", said, stateAndExit(s.row))
	a.Word, a.Bad, a.Clean, a.Script = firstWord(worst.state), true, false, false
	return a
}

// blame names the step that failed in a job that failed otherwise: the script was
// ended because of it, and the code of the job is that of the end.
func blame(a batch.Answer, s start) batch.Answer {
	for _, step := range s.steps {
		if a.Word == "FAILED" && firstWord(step.state) == "FAILED" && step.step != "batch" && step.exit != "" && step.exit != s.exit {
			a.Detail = fmt.Sprintf("step %s is %s (%s) on %s, the job as a whole %s (%s)", step.step, step.state, step.exit, step.nodes, s.state, s.exit)
			break
		}
	}
	return a
}

// stateAndExit is how a row ended, as far as it is known.
func stateAndExit(r row) string {
	if r.exit == "" {
		return r.state
	}
	return fmt.Sprintf("%s (%s)", r.state, r.exit)
}

// backoff spaces out questions to something that does not answer.
type backoff struct {
	failures int
	until    time.Time
	last     error
}

// wait returns the last error while it is too early to ask again.
func (b *backoff) wait(now time.Time) error {
	if now.Before(b.until) {
		return fmt.Errorf("%w (%d in a row)", b.last, b.failures)
	}
	return nil
}

// note remembers how a question went.
func (b *backoff) note(err error, now time.Time) {
	if err == nil {
		*b = backoff{}
		return
	}
	b.failures++
	b.last = err
	b.until = now.Add(min(time.Second<<min(b.failures-1, 5), 30*time.Second))
}

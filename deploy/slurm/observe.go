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
		// The nodes stand behind it where they are down or drained; without them others
		// are only served first.
		_, nodes, _ := strings.Cut(r.reason, "UnavailableNodes:")
		a.Away = strings.TrimSpace(nodes) != ""
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

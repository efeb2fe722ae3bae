package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"assay/deploy"
	"assay/pkg/batch"
	"assay/pkg/evidence"
	"assay/pkg/procfs"
	"assay/pkg/regular"
)

// local is what this machine knows of a job that runs inside an allocation.
type local struct {
	here     bool // it was started on this machine
	rebooted bool // which was restarted since
	running  bool // something of it runs here
	ended    bool // it left its exit code
	code     int
}

// lookAt looks at the processes and the exit code of a job.
func lookAt(r batch.Ref) (local, error) {
	host, herr := os.Hostname()
	boot, berr := procfs.BootID()
	if err := errors.Join(herr, berr); err != nil {
		return local{}, err
	}
	l := local{here: r.More[moreHost] == host}
	l.rebooted = l.here && r.More[moreBoot] != boot
	if l.here && !l.rebooted {
		session, err := sessionOf(r)
		if err != nil {
			return local{}, err
		}
		l.running = len(session) > 0
	}
	if !l.running { // asked last: a process leaves its code before it ends
		l.code, l.ended = readCode(r.More[moreDir])
	}
	return l, nil
}

// sessionOf returns the processes of this machine that belong to a job.
func sessionOf(r batch.Ref) ([]procfs.Process, error) {
	pid, err := strconv.Atoi(r.More[morePID])
	if err != nil {
		return nil, nil //nolint:nilerr // it had ended when it was found
	}
	start, err := strconv.ParseUint(r.More[moreStart], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("handle %q: start time %q is no number", r.ID, r.More[moreStart])
	}
	all, err := procfs.All()
	if err != nil {
		return nil, err
	}
	// A pid is not used again while it is the session of a process.
	leader := slices.IndexFunc(all, func(p procfs.Process) bool { return p.PID == pid })
	if leader >= 0 && all[leader].Start != start {
		return nil, nil
	}
	return slices.DeleteFunc(all, func(p procfs.Process) bool { return p.Session != pid || p.Start < start || p.Ended() }), nil
}

// readCode returns the exit code that a script left. The directory is read first,
// which makes a network filesystem forget what it remembers of it.
func readCode(dir string) (code int, ended bool) {
	if _, err := os.ReadDir(dir); err != nil {
		return 0, false
	}
	data, err := regular.ReadFile(filepath.Join(dir, codeFile), 16)
	if err != nil {
		return 0, false
	}
	code, err = strconv.Atoi(strings.TrimSpace(string(data)))
	return code, err == nil
}

// outside is what SLURM says of the allocations that jobs run in.
type outside struct {
	allocations map[string]row  // by id
	steps       map[string]step // by name
	err         error           // SLURM could not be asked
}

// queueInPlace answers for jobs that run inside an allocation.
func (s *scheduler) queueInPlace(ctx context.Context, refs []batch.Ref, mine []int, out []batch.Answer) error {
	looks := make(map[int]local, len(mine))
	var open []batch.Ref
	for _, i := range mine {
		l, err := lookAt(refs[i])
		if err != nil {
			return fmt.Errorf("%w: %w", deploy.ErrUnavailable, err)
		}
		looks[i] = l
		if !l.ended || toldToEnd(l.code) {
			open = append(open, refs[i])
		}
	}
	o := s.lookOutside(ctx, open)
	var errs []error
	for _, i := range mine {
		var err error
		if out[i], err = decideInPlace(refs[i], looks[i], o); err != nil {
			errs = append(errs, err)
		}
		s.noteEnd(refs[i], out[i])
	}
	return errors.Join(errs...)
}

// toldToEnd says whether an exit code is that of something that TERM or KILL
// ended: srun gives the number of the signal, a shell 128 more.
func toldToEnd(code int) bool { return slices.Contains([]int{9, 15, 128 + 9, 128 + 15}, code) }

// noteEnd remembers what became of the allocation of a job that ended with it, for
// the accounting knows its step only as failed.
func (s *scheduler) noteEnd(r batch.Ref, a batch.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Phase == evidence.PhaseEnded && a.Bad && a.Word != "FAILED" && a.Word != lostWord {
		s.swept[r.ID] = a
	}
}

// lookOutside asks SLURM about the allocations of jobs that have not left their
// code: one question about allocations, one about steps.
func (s *scheduler) lookOutside(ctx context.Context, refs []batch.Ref) outside {
	o := outside{allocations: map[string]row{}}
	if len(refs) == 0 {
		return o
	}
	var users, ids []string
	for _, r := range refs {
		users, ids = append(users, r.User), append(ids, r.More[moreAllocation])
	}
	rows, err := s.commands().queue(ctx, unique(users))
	if err != nil {
		o.err = err
		return o
	}
	for _, r := range rows {
		o.allocations[r.job] = r
	}
	o.steps, o.err = s.steps(ctx, unique(ids))
	return o
}

// unique returns the distinct values of a list.
func unique(values []string) []string { return slices.Compact(slices.Sorted(slices.Values(values))) }

// decideInPlace says what is known of a job. An error means that nobody who can be
// asked from here knows.
func decideInPlace(r batch.Ref, l local, o outside) (batch.Answer, error) {
	id := r.More[moreAllocation]
	a := batch.Answer{Known: true, Source: "srun", Started: true, Nodes: r.More[moreNodes], Phase: evidence.PhaseRunning, Word: "RUNNING"}
	over, word := "", ""
	if o.err == nil {
		over, word = ended(id, r.User, o.allocations)
	}
	_, stepped := o.steps[r.Name]
	switch {
	case l.ended && toldToEnd(l.code) && draining(id, o.allocations):
		// What ended the allocation, and the job with it, is not known yet.
		a.Word, a.Draining, a.Detail = "COMPLETING", true, over
		return a, nil
	case l.ended && toldToEnd(l.code) && word != "":
		return lost(a, word, over), nil
	case l.ended:
		return finished(a, l.code), nil
	case l.running && over == "":
		return a, nil
	case l.running:
		a.Word, a.Draining, a.Detail = "COMPLETING", true, over
		return a, nil
	case stepped:
		a.Detail = "the process that started its step is gone or elsewhere; the step runs"
		return a, nil
	case over != "":
		return lost(a, word, over), nil
	case l.rebooted:
		return lost(a, "", "this machine, on which its script ran, was restarted"), nil
	case l.here:
		return lost(a, "", "the process that ran its script is gone and left no exit code"), nil
	case o.err != nil:
		return batch.Answer{}, o.err
	}
	return batch.Answer{}, fmt.Errorf("%w: the script of job %s runs on %s and this is another machine: ask there", deploy.ErrUnavailable, r.ID, r.More[moreHost])
}

// ended says, in words, that an allocation has ended, and as what; "" means that
// it goes on.
func ended(id, user string, allocations map[string]row) (text, word string) {
	row, listed := allocations[id]
	if !listed || row.user != user {
		return "allocation " + id + " has ended, and everything in it", ""
	}
	word = firstWord(row.state)
	st := lookup(word)
	if st.phase != evidence.PhaseEnded && !st.draining {
		return "", ""
	}
	text = fmt.Sprintf("allocation %s has ended as %s, and everything in it", id, word)
	if !st.bad {
		word = ""
	}
	return text, word
}

// draining says whether an allocation is about to end.
func draining(id string, allocations map[string]row) bool {
	row, listed := allocations[id]
	return listed && lookup(firstWord(row.state)).draining
}

// finished is the answer about a script that left its code.
func finished(a batch.Answer, code int) batch.Answer {
	a.Phase, a.Word = evidence.PhaseEnded, "COMPLETED"
	if code == 0 {
		a.Clean = true
		return a
	}
	a.Word, a.Bad, a.Script = "FAILED", true, true
	a.Detail = fmt.Sprintf("the script ended with exit code %d", code)
	return a
}

// lostWord is the state of a job of which nobody saw the end.
const lostWord = "LOST"

// lost is the answer about a job that did not end by itself. word is what became
// of its allocation; there is none when that is not known.
func lost(a batch.Answer, word, why string) batch.Answer {
	if word == "" {
		word = lostWord
	}
	a.Phase, a.Word, a.Bad, a.Detail = evidence.PhaseEnded, word, true, why
	return a
}

// commands is the way to talk about allocations and steps.
func (s *scheduler) commands() *cli { return &cli{tools: s.tools, env: s.opt.Env} }

// step is a step that runs.
type step struct{ id string }

// steps lists the steps that run in some allocations, by name.
func (s *scheduler) steps(ctx context.Context, allocations []string) (map[string]step, error) {
	out, err := s.tools.run(ctx, nil, "squeue", "--steps", "--noheader", "--jobs="+strings.Join(allocations, ","), "--Format=StepID:40|,StepName:160")
	var f *failure
	if errors.As(err, &f) && says(f, "Invalid job id") {
		return nil, nil // the allocation has ended
	}
	if err != nil {
		return nil, fmt.Errorf("%w: squeue: %w", deploy.ErrUnavailable, err)
	}
	return parseSteps(out), nil
}

func parseSteps(text string) map[string]step {
	found := map[string]step{}
	for line := range strings.Lines(text) {
		if id, name, ok := strings.Cut(line, "|"); ok {
			found[strings.TrimSpace(name)] = step{strings.TrimSpace(id)}
		}
	}
	return found
}

// historyInPlace answers for jobs that run inside an allocation from the rows of
// their steps, which carry the name of the job. Those that ended with their
// allocation, by id, ended as that did.
func historyInPlace(rows []row, refs []batch.Ref, mine []int, swept map[string]batch.Answer, out []batch.Answer) {
	for _, i := range mine {
		for _, r := range rows {
			if r.job == refs[i].More[moreAllocation] && r.step != "" && r.name == refs[i].Name {
				out[i] = answer(r)
				out[i].Script, out[i].Part = false, true // the script is not the step
				out[i].Detail = strings.TrimSuffix(fmt.Sprintf("step %s.%s: %s", r.job, r.step, out[i].Detail), ": ")
				if a, is := swept[refs[i].ID]; is && out[i].Bad && out[i].Phase == evidence.PhaseEnded {
					out[i].Word, out[i].Detail = a.Word, a.Detail+"; "+out[i].Detail
				}
			}
		}
	}
}

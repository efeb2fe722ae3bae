package slurm

import (
	"fmt"
	"strings"

	"assay/pkg/batch"
	"assay/pkg/evidence"
)

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

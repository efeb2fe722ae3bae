package slurm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/deploy"
	"assay/pkg/phrase"
	"assay/pkg/plan"
)

// Check implements deploy.Checker. What it asks SLURM for costs one command each,
// all at the same time, whatever the number of jobs.
func (t *Target) Check(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	s := t.s
	found := s.fileFindings(ctx, req)
	found = append(found, t.containerFindings(ctx, req)...)
	byCommand, byREST := s.byWay(req.Jobs)
	if len(byCommand) > 0 || len(byREST) == 0 {
		req.Jobs = byCommand
		found = append(found, s.commandFindings(ctx, req)...)
	}
	found = append(found, s.restFindings(ctx, byREST)...)
	if req.OnNode && !hasProblem(found) {
		req.Jobs = slices.Concat(byCommand, byREST)
		found = append(found, t.onNode(ctx, req)...)
	}
	return distinct(found)
}

// byWay tells jobs that are submitted through slurmrestd from the others. Inside
// an allocation nothing is submitted.
func (s *scheduler) byWay(jobs []plan.Job) (command, rest []plan.Job) {
	_, inside := allocation(s.opt.Env)
	for _, j := range jobs {
		if speaksREST(j) && !inside {
			rest = append(rest, j)
		} else {
			command = append(command, j)
		}
	}
	return command, rest
}

// speaksREST reports whether a job is submitted through slurmrestd.
func speaksREST(j plan.Job) bool { return j.Slurm != nil && j.Slurm.API == "rest" }

func hasProblem(found []deploy.Finding) bool {
	return slices.ContainsFunc(found, func(f deploy.Finding) bool { return f.State == deploy.FindingProblem })
}

// distinct drops what was found twice.
func distinct(found []deploy.Finding) []deploy.Finding {
	var out []deploy.Finding
	for _, f := range found {
		if !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// The states of a finding, in short.
func ok(subject, format string, args ...any) deploy.Finding {
	return deploy.Finding{Subject: subject, State: deploy.FindingOK, Message: fmt.Sprintf(format, args...)}
}

func unknown(subject string, err error) deploy.Finding {
	return deploy.Finding{Subject: subject, State: deploy.FindingUnknown, Message: "could not be looked at: " + err.Error()}
}

func warning(subject, message, fix string) deploy.Finding {
	return deploy.Finding{Subject: subject, State: deploy.FindingWarning, Message: message, Fix: fix}
}

func fault(subject, message, fix string) deploy.Finding {
	return deploy.Finding{Subject: subject, State: deploy.FindingProblem, Message: message, Fix: fix}
}

// outage is a problem of the site, not of the manifest.
func outage(subject, message, fix string) deploy.Finding {
	f := fault(subject, message, fix)
	f.Unavailable = true
	return f
}

// wish is what some entries of a manifest all ask SLURM for.
type wish struct {
	keys  []string // of the entries
	nodes int
	ranks int // a node
	plan.Slurm
	named []string // nodes that the run names, of all the entries' jobs; empty: it names none
	job   plan.Job // the first of them
}

// who names the entries.
func (w wish) who() string {
	const most = 3
	names := make([]string, 0, most)
	for _, k := range w.keys[:min(len(w.keys), most)] {
		names = append(names, fmt.Sprintf("%q", k))
	}
	switch more := len(w.keys) - most; {
	case more > 0:
		return fmt.Sprintf("entries %s and %d more", strings.Join(names, ", "), more)
	case len(w.keys) > 1:
		return "entries " + strings.Join(names, ", ")
	}
	return "entry " + names[0]
}

// wishes are the distinct sets of directives, in the order of the manifest.
func wishes(jobs []plan.Job) []wish {
	var out []wish
	index := map[string]int{}
	for _, j := range jobs {
		w := wish{nodes: j.NNodes, ranks: j.RanksPerNode, job: j}
		if j.Slurm != nil {
			w.Slurm = *j.Slurm
		}
		named := len(j.Nodes) > 0
		if named { // an entry may have a job on each of a thousand pairs
			w.Nodelist = ""
		}
		key := fmt.Sprintf("%d %d %t %q", w.nodes, w.ranks, named, given(&w.Slurm))
		i, seen := index[key]
		if !seen {
			i = len(out)
			index[key] = i
			out = append(out, w)
		}
		if !slices.Contains(out[i].keys, j.Key) {
			out[i].keys = append(out[i].keys, j.Key)
		}
		for _, n := range j.Nodes {
			if !slices.Contains(out[i].named, n) {
				out[i].named = append(out[i].named, n)
			}
		}
	}
	return out
}

// commandFindings are about what is used by the commands of SLURM.
func (s *scheduler) commandFindings(ctx context.Context, req deploy.CheckRequest) []deploy.Finding {
	ws := wishes(req.Jobs)
	al, inside := allocation(s.opt.Env)
	found, usable := s.toolFindings(inside)
	if !usable {
		return found
	}
	site := s.lookAround(ctx, req, ws, inside, al)
	control := site.control()
	found = append(found, control)
	if control.State == deploy.FindingProblem {
		return found
	}
	found = append(found, s.killWaitFinding(site)...)
	if inside {
		return append(found, insideFindings(al, ws, site.allocation)...)
	}
	for i, w := range ws {
		found = append(found, nodeFindings(w, site)...)
		found = append(found, advice(w, site.advice[i])...)
	}
	return append(found, s.accountFindings(ctx, req, ws, site)...)
}

// toolFindings look for the commands. usable is false when there is no use in
// asking anything.
func (s *scheduler) toolFindings(inside bool) (found []deploy.Finding, usable bool) {
	needed := []string{"sbatch", "squeue", "scancel", "srun", "scontrol"}
	if inside {
		needed = needed[1:]
	}
	usable = true
	for _, name := range needed {
		path, err := s.tools.find(name)
		if err != nil {
			usable = false
			found = append(found, outage(name, strings.TrimPrefix(err.Error(), deploy.ErrUnavailable.Error()+": "), ""))
			continue
		}
		found = append(found, ok(name, "is %s", path))
	}
	if path, err := s.tools.find("sacct"); err == nil {
		found = append(found, ok("sacct", "is %s", path))
	} else {
		found = append(found, warning("sacct",
			"there is no sacct in PATH: without the accounting neither the exit codes of steps nor memory limits that ended a step are known, nor jobs that left the queue",
			"install the command beside squeue"))
	}
	return found, usable
}

// grace is what ranks get between TERM and KILL when SLURM itself gives them
// killWait; 0 stands for their own default, which is short enough.
func grace(killWait time.Duration) time.Duration {
	// The wrapper needs the rest to write down how its rank ended.
	const own, rest = 10 * time.Second, 5 * time.Second
	if killWait >= own+rest {
		return 0
	}
	return max(killWait/2, 100*time.Millisecond)
}

// killWaitFinding remembers how long SLURM waits before it kills.
func (s *scheduler) killWaitFinding(site site) []deploy.Finding {
	const subject = "KillWait"
	if site.config.err != nil {
		return []deploy.Finding{unknown("configuration", site.config.err)}
	}
	wait, known := configSeconds(site.config.value["KillWait"])
	if !known {
		return nil
	}
	s.mu.Lock()
	s.grace = grace(wait)
	s.mu.Unlock()
	message := fmt.Sprintf("SLURM kills %s after it asked a job to end", phrase.Seconds(wait.Seconds()))
	if g := grace(wait); g > 0 {
		message += fmt.Sprintf(": ranks give their workload %s of it, so that there is time left to record how it ended", phrase.Seconds(g.Seconds()))
	}
	return []deploy.Finding{ok(subject, "%s", message)}
}

// Render implements deploy.Target. After Check the ranks get a grace that ends
// before SLURM kills them.
func (t *Target) Render(a plan.Attempt) ([]deploy.File, error) {
	t.s.mu.Lock()
	g := t.s.grace
	t.s.mu.Unlock()
	if g > 0 && a.KillGraceMS == 0 {
		a.KillGraceMS = int(g.Milliseconds())
	}
	return t.Target.Render(a)
}

package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"assay/pkg/exitcode"
	"assay/pkg/hostlist"
	"assay/pkg/isolate"
	"assay/pkg/phrase"
	"assay/pkg/report"
	"assay/pkg/run"
)

// learn tells the search what a part came to.
func (s *isolation) learn(nodes []string, rep report.Run) {
	if len(rep.Jobs) == 0 {
		return
	}
	j := rep.Jobs[0]
	answer := run.Answer(j)
	p := isolatePart{
		Step: s.step, Nodes: nodes, RunID: rep.RunID, Verdict: j.Verdict.String(), Value: s.group.Value(j),
		Answer: map[isolate.Answer]string{isolate.Good: "good", isolate.Bad: "bad", isolate.Suspect: "suspect"}[answer],
	}
	if p.Answer == "" {
		p.Answer = "unknown"
	}
	s.path = append(s.path, p)
	why := ""
	if len(j.Reasons) > 0 && answer != isolate.Good {
		why = ": " + j.Reasons[0].Message
	}
	s.log.Info(fmt.Sprintf("step %d: %s %s%s", p.Step, hostlist.Compress(nodes), p.Verdict, phrase.Line(why)))
	s.search.Tell(nodes, answer)
}

// isolateResult is what isolate prints as JSON.
type isolateResult struct {
	RunID      string        `json:"run_id"`
	Job        string        `json:"job"`
	Conclusion string        `json:"conclusion"`
	Message    string        `json:"message"`
	Culprits   []string      `json:"culprits"`
	Together   [][]string    `json:"together"` // sets that fail only together
	Jobs       int           `json:"jobs"`     // how many were run
	Path       []isolatePart `json:"path"`
}

// print writes the path and the conclusion.
func (s *isolation) print(stopped os.Signal) error {
	c := s.search.Conclusion()
	res := isolateResult{
		RunID: s.of.Ledger.RunID, Job: s.group.Judged.ID, Conclusion: c.Kind.String(), Message: s.message(c),
		Culprits: append([]string{}, c.Culprits...), Together: append([][]string{}, c.Together...),
		Jobs: len(s.path), Path: append([]isolatePart{}, s.path...),
	}
	if stopped != nil {
		res.Message = "stopped before there was a conclusion"
	}
	if s.flags.json {
		return writeJSON(s.Out, res)
	}
	if len(s.path) > 0 {
		if err := s.table(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(s.Out, "%s (%s)\n", phrase.Line(res.Message), phrase.Count(res.Jobs, "job"))
	return err
}

// table writes the path that was taken.
func (s *isolation) table() error {
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	value := "VALUE"
	if s.group.Metric != "" {
		value = s.group.Metric
	}
	fmt.Fprintf(w, "STEP\tNODES\tVERDICT\t%s\tRUN\n", phrase.Line(value))
	for _, p := range s.path {
		number := "-"
		if p.Value != nil {
			number = strconv.FormatFloat(*p.Value, 'g', 6, 64)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", p.Step, phrase.Line(hostlist.Compress(p.Nodes)), p.Verdict, number, p.RunID)
	}
	return w.Flush()
}

// message is the conclusion in one sentence.
func (s *isolation) message(c isolate.Conclusion) string {
	all, among := phrase.Count(len(s.group.Nodes), "node"), hostlist.Compress(c.Among)
	switch c.Kind {
	case isolate.Culprits:
		return s.blame(c)
	case isolate.OnlyTogether:
		return "no node is to blame alone: " + s.together(c)
	case isolate.NotReproducible:
		return fmt.Sprintf("not reproducible: all %s together pass now", all)
	case isolate.NotToldApart:
		return fmt.Sprintf("not told apart: every part of %s that was tried fails, so that no node has a partner that is known to be good", among)
	case isolate.Contradictory:
		return fmt.Sprintf("no conclusion: what failed among %s passed when it was tried again, or the other way round; run it with repeats", among)
	case isolate.Unanswered:
		return fmt.Sprintf("no conclusion: %s could not be judged, twice in a row; see: assay explain %s", among, s.lastRun())
	case isolate.Searching:
	}
	return "no conclusion: the search did not end"
}

// lastRun is the part that was run last.
func (s *isolation) lastRun() string {
	if len(s.path) == 0 {
		return s.of.Ledger.RunID
	}
	return s.path[len(s.path)-1].RunID
}

func (s *isolation) blame(c isolate.Conclusion) string {
	verb, which := "is", "node"
	if len(c.Culprits) > 1 {
		verb, which = "are", "nodes"
	}
	text := fmt.Sprintf("%s %s %s to blame", which, hostlist.Compress(c.Culprits), verb)
	if len(c.Together) > 0 {
		return text + "; and of the others " + s.together(c)
	}
	return fmt.Sprintf("%s: the other %d nodes pass together", text, len(s.group.Nodes)-len(c.Culprits))
}

// together names the sets that fail only together.
func (s *isolation) together(c isolate.Conclusion) string {
	var sets []string
	for _, t := range c.Together {
		sets = append(sets, hostlist.Compress(t))
	}
	text := strings.Join(sets, ", and ") + " fail only together"
	if len(c.Together) == 1 && len(c.Together[0]) == 2 {
		text += ": look at the link between them"
	}
	if c.Larger {
		text += "; the search for a smaller set was given up"
	}
	return text
}

// exitCode is 0 when the search came to a conclusion.
func (s *isolation) exitCode() exitcode.Code {
	switch s.search.Conclusion().Kind {
	case isolate.Culprits, isolate.OnlyTogether, isolate.NotReproducible:
		return exitcode.Pass
	case isolate.Searching, isolate.NotToldApart, isolate.Contradictory, isolate.Unanswered:
	}
	return exitcode.Error
}

func signalCode(sig os.Signal) exitcode.Code {
	if sig == syscall.SIGTERM {
		return exitcode.Terminated
	}
	return exitcode.Interrupted
}

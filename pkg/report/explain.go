package report

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/phrase"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

const (
	ranksShown   = 16  // lines of the list of ranks
	logLineRunes = 400 // of a line of a log
)

// Explain writes why a job got its verdict: the rule that decided, the reasons,
// all evidence, and tail, the end of the log of the rank that failed first (nil
// when there is none). What a workload wrote cannot steer the terminal.
func Explain(w io.Writer, run Run, job Job, e evidence.Evidence, tail *LogTail, opt Options) error {
	var buf bytes.Buffer
	name := job.Name
	if job.Key != "" && job.Key != job.Name {
		name += " (" + job.Key + ")"
	}
	fmt.Fprintf(&buf, "%s  %s\n", phrase.Line(name), Paint(job.Verdict.String(), job.Verdict, opt.Color))
	if job.Rule != "" {
		fmt.Fprintf(&buf, "rule: %s\n", strings.TrimSuffix(job.Rule+": "+ruleMeaning(job.Rule), ": "))
	}
	fmt.Fprintf(&buf, "run %s on %s, attempt %d, scope %s\n", phrase.Line(run.RunID), phrase.Line(run.Target), e.Attempt, phrase.Line(job.Scope))
	for _, line := range circumstances(run, job) {
		fmt.Fprintln(&buf, phrase.Line(line))
	}
	list(&buf, "attempts", attemptLines(job))
	list(&buf, "reasons", reasonLines(job.Reasons))
	list(&buf, "warnings", reasonLines(job.Warnings))
	list(&buf, "not evaluated", notEvaluatedLines(job.NotEvaluated))
	list(&buf, "measured", measurementLines(job.Measurements))
	list(&buf, "target", targetLines(e))
	list(&buf, "ranks", rankLines(e, opt.Verbose))
	if tail != nil {
		writeTail(&buf, *tail)
	}
	if job.Directory != "" {
		fmt.Fprintf(&buf, "\nfiles: %s\n", phrase.Line(path.Join(run.Dir, job.Directory)))
	}
	_, err := w.Write(buf.Bytes())
	return err
}

func list(buf *bytes.Buffer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(buf, "\n%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(buf, "  %s\n", phrase.Line(l))
	}
}

func reasonLines(reasons []verdict.Reason) []string {
	var lines []string
	for _, r := range reasons {
		lines = append(lines, r.Code+": "+r.Message)
	}
	return lines
}

func notEvaluatedLines(list []threshold.NotEvaluated) []string {
	var lines []string
	for _, n := range list {
		lines = append(lines, n.Message)
	}
	return lines
}

func measurementLines(list []Measurement) []string {
	var lines []string
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("%s (from %s)", measurement(m), m.Source))
	}
	return lines
}

// targetLines is what is known of the launch, and what the target said.
func targetLines(e evidence.Evidence) []string {
	lines := []string{detail("launch: "+e.Launch.State.String(), e.Launch.Detail)}
	if o := e.Scheduler; o != nil {
		line := fmt.Sprintf("%s: %s", o.Source, o.Phase)
		if o.Word != "" {
			line += " (" + o.Word + ")"
		}
		if o.JobID != "" {
			line += ", job " + o.JobID
		}
		if o.Nodes != "" {
			line += " on " + o.Nodes
		}
		lines = append(lines, detail(line, o.Detail))
	} else {
		lines = append(lines, "no observation, from which nothing is concluded")
	}
	for i, start := range earlier(e.Scheduler) {
		name := fmt.Sprintf("start %d", i+1)
		if start.Rank != nil {
			name = fmt.Sprintf("an earlier start of rank %d", *start.Rank)
		}
		lines = append(lines, detail(name+": "+start.Word, start.Nodes))
	}
	if e.Cancel != nil {
		lines = append(lines, "cancelled by "+e.Cancel.By)
	}
	return lines
}

func earlier(o *evidence.Observation) []evidence.Earlier {
	if o == nil {
		return nil
	}
	return o.Earlier
}

// rankLines describes the ranks, the failing ones first when not all fit.
func rankLines(e evidence.Evidence, all bool) []string {
	ranks := e.Ranks
	if !all && len(ranks) > ranksShown {
		var bad, good []evidence.Rank
		for _, r := range ranks {
			if r.State != evidence.RankEnded || r.Outcome != evidence.OutcomeExited || r.ExitCode != 0 {
				bad = append(bad, r)
			} else {
				good = append(good, r)
			}
		}
		ranks = append(bad, good...)[:ranksShown]
	}
	var lines []string
	for _, r := range ranks {
		lines = append(lines, rankLine(r))
		lines = append(lines, rankDetails(r)...)
	}
	if more := len(e.Ranks) - len(ranks); more > 0 {
		lines = append(lines, fmt.Sprintf("…and %s (--verbose shows all)", phrase.Count(more, "more rank")))
	}
	return lines
}

func rankLine(r evidence.Rank) string {
	line := fmt.Sprintf("rank %d", r.Rank)
	if r.Node != "" {
		line += " (" + r.Node + ")"
	}
	line += ": " + strings.ReplaceAll(r.State.String(), "_", " ")
	if r.State == evidence.RankEnded {
		line += fmt.Sprintf(", %s, exit code %d", strings.ReplaceAll(r.Outcome.String(), "_", " "), r.ExitCode)
	}
	if r.Signal != "" {
		line += ", " + r.Signal
	}
	if took := elapsed(r.ElapsedSeconds); took != "" {
		line += ", after " + took
	}
	return line
}

// rankDetails is what else a rank's evidence holds.
func rankDetails(r evidence.Rank) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf("– "+format, args...)) }
	if r.Message != "" {
		add("%s", r.Message)
	}
	if r.Said != "" {
		add("said last: %q", r.Said)
	}
	for _, s := range r.Steps {
		if s.ExitCode != 0 || s.Message != "" {
			add("%s", detail(fmt.Sprintf("%s-script %s: exit code %d", s.Kind, s.Path, s.ExitCode), s.Message))
		}
	}
	for _, p := range r.Problems {
		add("%s: %s", p.Code, p.Message)
	}
	if res := r.Results; res != nil && res.Path != "" {
		add("results %s found at %s", res.Declared, res.Path)
	} else if res != nil {
		add("results %s not found, looked at %s", res.Declared, strings.Join(res.Tried, ", "))
	}
	if len(r.Readings) > 0 {
		add("%s", phrase.Count(len(r.Readings), "reading"))
	}
	if r.Stale != "" {
		add("a marker does not count: %s", r.Stale)
	}
	if r.Unreadable != "" {
		add("a record cannot be read: %s", r.Unreadable)
	}
	return lines
}

func detail(line, more string) string {
	if more == "" {
		return line
	}
	return line + ": " + more
}

// writeTail writes the end of a log, line by line. Of a line that was redrawn
// with carriage returns only the last state is shown.
func writeTail(buf *bytes.Buffer, tail LogTail) {
	fmt.Fprintf(buf, "\nrank %d %s", tail.Rank, tail.Stream)
	if tail.Cut {
		buf.WriteString(", the end")
	}
	buf.WriteString(":\n")
	text := strings.TrimRight(strings.ReplaceAll(tail.Text, "\r\n", "\n"), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, "\r")
		line = phrase.Clean(line[strings.LastIndexByte(line, '\r')+1:])
		if r := []rune(line); len(r) > logLineRunes {
			line = fmt.Sprintf("%s… (%d more characters)", string(r[:logLineRunes]), len(r)-logLineRunes)
		}
		fmt.Fprintf(buf, "  | %s\n", line)
	}
}

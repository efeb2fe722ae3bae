package report

import (
	"math"
	"slices"
	"strings"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

// Header is what a run says of itself, apart from its jobs.
type Header struct {
	RunID      string
	Dir        string
	Target     string
	StartedAt  time.Time
	FinishedAt time.Time // zero while the run goes on
	Suite      string    // name of the suite; empty: there is none
	Forced     []string  // runs that used some of the nodes at the same time
	SharedBy   []string  // runs that were started on some of the nodes meanwhile
}

// New puts the verdicts on the jobs together, in the order given, and rolls
// them up into the verdict on the run. Optional jobs decide nothing, but that the run
// is pending while they are.
func New(h Header, jobs []Job) Run {
	var words []verdict.Word
	baseline := len(jobs) > 0
	for _, j := range jobs {
		if !j.Optional || j.Verdict == verdict.Pending {
			words = append(words, j.Verdict)
		}
		baseline = baseline && j.Baseline
	}
	word := verdict.RollUp(words)
	return Run{
		RunID: h.RunID, Dir: h.Dir, Target: h.Target,
		Verdict: word, ExitCode: word.ExitCode(),
		StartedAt: utc(h.StartedAt), FinishedAt: utc(h.FinishedAt),
		Jobs:  append([]Job{}, jobs...),
		Suite: valid(h.Suite), Baseline: baseline, Forced: h.Forced, SharedBy: h.SharedBy,
	}
}

// JobHeader is what the manifest and the run directory say of a job.
type JobHeader struct {
	Name      string // the card's name
	Key       string // the entry's key in built_models
	ID        string // the key as the run directory spells it
	Scope     string // "" means "job"
	Attempts  int    // how many were made
	Directory string // of the judged attempt, from the run directory

	Test     string
	Variant  map[string]string
	Round    int
	Optional bool
	Baseline bool
	Gates    *Gates
	Nodes    []string            // where it was to run; empty: that was left to the target
	Expect   verdict.Expectation // what it was judged by
}

// NewJob describes one judged job.
func NewJob(h JobHeader, e evidence.Evidence, v verdict.Verdict) Job {
	j := Job{
		Name: valid(h.Name), Key: valid(h.Key), ID: h.ID, Scope: h.Scope,
		Nodes: nodes(e.Ranks), Verdict: v.Word, Rule: v.Rule,
		Attempts: h.Attempts, Directory: h.Directory,
		Reasons:      newReasons(v.Reasons),
		Warnings:     newReasons(v.Warnings),
		Ranks:        make([]Rank, 0, len(e.Ranks)),
		Measurements: make([]Measurement, 0, len(v.Measurements)),
		Test:         valid(h.Test), Variant: h.Variant, Round: h.Round, Optional: h.Optional, Baseline: h.Baseline, Gates: h.Gates,
	}
	if len(j.Nodes) < len(h.Nodes) { // not all of its ranks began
		j.Nodes = append([]string{}, h.Nodes...)
	}
	if j.Scope == "" {
		j.Scope = "job"
	}
	for _, r := range e.Ranks {
		j.Ranks = append(j.Ranks, newRank(r))
		j.ElapsedSeconds = max(j.ElapsedSeconds, r.ElapsedSeconds)
	}
	for _, m := range v.Measurements {
		j.Measurements = append(j.Measurements, newMeasurement(m, h.Expect))
	}
	j.Short = v.Short
	j.Violations, j.NotEvaluated = newViolations(v.Violations), newNotEvaluated(v.NotEvaluated)
	j.StartedAt, j.FinishedAt = span(e.Ranks)
	if o := e.Scheduler; o != nil {
		j.Scheduler = &Scheduler{Source: valid(o.Source), JobID: valid(o.JobID), State: valid(o.Word), Detail: valid(o.Detail), Restarts: o.Restarts}
		j.Attempts += restartsOfRanks(o)
	}
	return j
}

// restartsOfRanks is how often the rank that was started most was started again.
func restartsOfRanks(o *evidence.Observation) int {
	most, of := 0, map[int]int{}
	for _, e := range o.Earlier {
		if e.Rank != nil {
			of[*e.Rank]++
			most = max(most, of[*e.Rank])
		}
	}
	return most
}

func newRank(r evidence.Rank) Rank {
	out := Rank{
		Rank: r.Rank, Host: r.Host, Node: r.Node, State: r.State,
		Signal: r.Signal, ElapsedSeconds: r.ElapsedSeconds,
	}
	if r.State == evidence.RankEnded {
		code := r.ExitCode
		out.ExitCode = &code
	}
	return out
}

func newMeasurement(m metric.Measurement, x verdict.Expectation) Measurement {
	out := Measurement{
		Name: valid(m.Name), Unit: valid(m.Unit), Model: valid(m.Model), Source: m.Source,
		Text: valid(m.Text), NotApplicable: m.NotApplicable, Label: m.Label,
	}
	if !m.NotApplicable && !m.Label && !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) {
		value := m.Value
		out.Value = &value
	}
	out.Gated, out.Declared = standingOf(out, x)
	return out
}

// standingOf says whether a measurement is of a metric that has a threshold or is
// required, which a baseline only does not apply, and of one that its card names.
func standingOf(m Measurement, x verdict.Expectation) (gated, declared bool) {
	for _, t := range x.Thresholds {
		if IsMetric(m, t.Metric) {
			gated, declared = true, true
		}
	}
	for _, s := range x.Metrics {
		if IsMetric(m, s.Name) {
			gated, declared = gated || s.Required, true
		}
	}
	return gated, declared
}

func newReasons(list []verdict.Reason) []verdict.Reason {
	out := make([]verdict.Reason, 0, len(list))
	for _, r := range list {
		out = append(out, verdict.Reason{Code: r.Code, Subject: valid(r.Subject), Message: valid(r.Message)})
	}
	return out
}

func newViolations(list []threshold.Violation) []threshold.Violation {
	var out []threshold.Violation
	for _, v := range list {
		v.Subject, v.Message, v.Metric, v.Text, v.Bound, v.Unit, v.Note, v.Node =
			valid(v.Subject), valid(v.Message), valid(v.Metric), valid(v.Text), valid(v.Bound), valid(v.Unit), valid(v.Note), valid(v.Node)
		out = append(out, v)
	}
	return out
}

func newNotEvaluated(list []threshold.NotEvaluated) []threshold.NotEvaluated {
	var out []threshold.NotEvaluated
	for _, n := range list {
		n.Metric, n.Message, n.Bound, n.Unit, n.Note = valid(n.Metric), valid(n.Message), valid(n.Bound), valid(n.Unit), valid(n.Note)
		out = append(out, n)
	}
	return out
}

// valid replaces bytes that are no UTF-8, which workloads do write, and which
// JSON cannot hold.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// nodes lists the nodes on which ranks were seen, each once.
func nodes(ranks []evidence.Rank) []string {
	list := []string{}
	seen := map[string]bool{}
	for _, r := range ranks {
		if r.Node != "" && !seen[r.Node] {
			seen[r.Node] = true
			list = append(list, r.Node)
		}
	}
	return list
}

// span says when a job began and ended, by the clock of one host, since the
// clocks of two are never compared: the host of the first rank that began.
func span(ranks []evidence.Rank) (start, end Time) {
	first := slices.IndexFunc(ranks, func(r evidence.Rank) bool { return !r.StartedAt.IsZero() })
	if first < 0 {
		return Time{}, Time{}
	}
	host := ranks[first].Host
	start = utc(ranks[first].StartedAt)
	for _, r := range ranks {
		if r.Host != host {
			continue
		}
		if !r.StartedAt.IsZero() && r.StartedAt.Before(start.Time) {
			start = utc(r.StartedAt)
		}
		if r.FinishedAt.After(end.Time) {
			end = utc(r.FinishedAt)
		}
		if r.State == evidence.RankRunning {
			return start, Time{}
		}
	}
	return start, end
}

func utc(t time.Time) Time { return Time{t.UTC()} }

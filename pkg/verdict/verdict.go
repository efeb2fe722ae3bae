// Package verdict turns evidence into a verdict. Judge is a pure function: no
// I/O, no clock, the same answer for the same evidence whatever its order.
package verdict

import (
	"fmt"
	"slices"

	"assay/pkg/exitcode"
	"assay/pkg/metric"
	"assay/pkg/threshold"
)

// Word is the outcome of judging. The zero value is Unknown.
type Word int

// The words. Pending is said of a job that has not ended.
const (
	Unknown Word = iota
	Pass
	Fail
	NoMetric
	Error
	Skip
	Pending
)

func wordNames() []string {
	return []string{"UNKNOWN", "PASS", "FAIL", "NO_METRIC", "ERROR", "SKIP", "PENDING"}
}

// String returns the word as reports spell it.
func (w Word) String() string {
	if n := wordNames(); w >= 0 && int(w) < len(n) {
		return n[w]
	}
	return "UNKNOWN"
}

// MarshalText returns the word as reports spell it.
func (w Word) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads a word as reports spell it.
func (w *Word) UnmarshalText(b []byte) error {
	for i, n := range wordNames() {
		if n == string(b) {
			*w = Word(i)
			return nil
		}
	}
	return fmt.Errorf("unknown verdict %q", b)
}

// ExitCode returns the exit code that stands for the word.
func (w Word) ExitCode() exitcode.Code {
	switch w {
	case Pass:
		return exitcode.Pass
	case Fail:
		return exitcode.Fail
	case NoMetric:
		return exitcode.NoMetric
	case Error:
		return exitcode.Error
	case Skip:
		return exitcode.Skip
	case Pending:
		return exitcode.Pending
	case Unknown:
	}
	return exitcode.Internal
}

// Reason is one thing that the evidence says, good enough to act on.
type Reason struct {
	Code    string `json:"code"`
	Subject string `json:"subject"` // what it is about: "rank 1", "rank 1 (node-b)", a metric, a file; may be empty
	Message string `json:"message"`
}

// Expectation is what the manifest says a job should give.
type Expectation struct {
	Contract    string                `json:"contract"`     // "" (benchmark), "benchmark" or "acceptance"
	RanksPolicy string                `json:"ranks_policy"` // "" (any) or "all"
	WorldSize   int                   `json:"world_size"`
	Metrics     []metric.Spec         `json:"metrics"` // as the card declares them
	Thresholds  []threshold.Threshold `json:"thresholds"`
	// MultipleResults is the declared results file; empty when there is none.
	MultipleResults string `json:"multiple_results"`
	// Strict turns a PASS that has warnings into FAIL.
	Strict bool `json:"strict"`
	// TimeoutSeconds is the time limit of a rank, for messages; 0: none is known.
	TimeoutSeconds int `json:"timeout_seconds"`
	// SkipMetrics says that the manifest switched measuring off
	// (context.skip_perf_collection): whatever was read does not count.
	SkipMetrics bool `json:"skip_metrics"`
	// Scope is what the verdict is about: "" (the job), "node", "pair" or "group".
	Scope string `json:"scope,omitempty"`
	// Baseline says that nothing is gated: it measures what a machine does, and its
	// PASS is no acceptance.
	Baseline bool `json:"baseline,omitempty"`
	// Unwrapped says that ranks run without the wrapper, so that nothing but the
	// target's own word on them and their logs is evidence.
	Unwrapped bool `json:"unwrapped,omitempty"`
}

// Declared returns the names that the card declares in metrics and thresholds,
// each once, in the order of the card. No other name is read from key=value
// lines and metrics.json.
func (x Expectation) Declared() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, s := range x.Metrics {
		add(s.Name)
	}
	for _, t := range x.Thresholds {
		add(t.Metric)
	}
	return names
}

// Verdict is the judgement of one job.
type Verdict struct {
	Word         Word
	Rule         string   // the row of the truth table that decided, one of Rules
	Reasons      []Reason // all that match, the deciding ones first
	Warnings     []Reason
	Measurements []metric.Measurement
	// Violations are all violations of thresholds, as far as the job was judged by
	// them. Each is also a reason.
	Violations []threshold.Violation
	// NotEvaluated are the thresholds that n/a relaxed: they did not pass.
	NotEvaluated []threshold.NotEvaluated
	// Short says of an ERROR that a rank found the hardware short all the same, so that
	// a later PASS does not make it good.
	Short bool
}

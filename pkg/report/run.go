// Package report tells people and programs what a run came to: the verdict
// object that is verdict.json, the table on a terminal, JUnit XML, markdown,
// an HTML page, and an explanation of one job. It renders what it is handed and
// reads no files.
package report

import (
	"bytes"
	"encoding/json"
	"time"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/metric"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

// Run is the verdict object: what verdict.json holds and what --json prints.
type Run struct {
	RunID      string        `json:"run_id"`
	Dir        string        `json:"dir"`    // the run directory
	Target     string        `json:"target"` // "local", "slurm", "pbs", "k8s"
	Verdict    verdict.Word  `json:"verdict"`
	ExitCode   exitcode.Code `json:"exit_code"`
	StartedAt  Time          `json:"started_at"`
	FinishedAt Time          `json:"finished_at"` // null while the run goes on
	Jobs       []Job         `json:"jobs"`        // in the order of the manifest, or of its suite

	Suite    string   `json:"suite,omitempty"`     // its name
	Baseline bool     `json:"baseline,omitempty"`  // nothing was gated in any job: exit code 0 is no acceptance
	SharedBy []string `json:"shared_by,omitempty"` // runs that were started on some of its nodes meanwhile (--force)
	Forced   []string `json:"forced,omitempty"`    // runs that used some of the nodes at the same time (--force)
	Pairs    []Pairs  `json:"pairs,omitempty"`     // what links say of nodes and links, for each test of scope pair that has several
}

// Pending counts the jobs that have not ended.
func (r Run) Pending() int {
	n := 0
	for _, j := range r.Jobs {
		if j.Verdict == verdict.Pending {
			n++
		}
	}
	return n
}

// Job is the verdict on one entry of the manifest, by its newest attempt.
type Job struct {
	Name           string           `json:"name"` // the card's name
	Key            string           `json:"key"`  // the entry's key in built_models
	ID             string           `json:"id"`   // the key as the run directory spells it
	Scope          string           `json:"scope"`
	Nodes          []string         `json:"nodes"` // by the first rank on each
	Verdict        verdict.Word     `json:"verdict"`
	Rule           string           `json:"rule"`      // the row of the truth table that decided
	Attempts       int              `json:"attempts"`  // how many were made; the last one is judged
	Directory      string           `json:"directory"` // of the judged attempt, from the run directory
	Scheduler      *Scheduler       `json:"scheduler"` // what the target said last; null when it said nothing
	StartedAt      Time             `json:"started_at"`
	FinishedAt     Time             `json:"finished_at"`
	ElapsedSeconds float64          `json:"elapsed_seconds"` // of the rank that ran longest, by its own clock
	Reasons        []verdict.Reason `json:"reasons"`
	Warnings       []verdict.Reason `json:"warnings"`
	Ranks          []Rank           `json:"ranks"`
	Measurements   []Measurement    `json:"measurements"`

	Violations   []threshold.Violation    `json:"violations,omitempty"`    // every bound that is not satisfied
	NotEvaluated []threshold.NotEvaluated `json:"not_evaluated,omitempty"` // thresholds that n/a relaxed: they did not pass
	Short        bool                     `json:"short,omitempty"`         // of an ERROR: a rank found the hardware short all the same

	Test     string            `json:"test,omitempty"`     // name of the test in its suite
	Variant  map[string]string `json:"variant,omitempty"`  // its values by axis
	Round    int               `json:"round,omitempty"`    // of the pairs of its test, from 1
	Optional bool              `json:"optional,omitempty"` // it does not decide the verdict on the run
	Baseline bool              `json:"baseline,omitempty"` // nothing was gated: PASS is no acceptance
	Gates    *Gates            `json:"gates,omitempty"`    // the values of a file of thresholds that it was judged by
	History  []Attempt         `json:"history,omitempty"`  // all attempts in their order, where there were several
}

// Gates says which values of a file of thresholds a job was judged by.
type Gates struct {
	File     string `json:"file"`
	Digest   string `json:"digest"`
	Hardware string `json:"hardware"`
}

// Attempt is one attempt at a job.
type Attempt struct {
	Attempt        int              `json:"attempt"`
	Trigger        verdict.Trigger  `json:"trigger"` // why it was made; empty: it is the first
	Verdict        verdict.Word     `json:"verdict"`
	Directory      string           `json:"directory"` // from the run directory
	ElapsedSeconds float64          `json:"elapsed_seconds"`
	Reasons        []verdict.Reason `json:"reasons"`
	Measurements   []Measurement    `json:"measurements"`
}

// Scheduler is the target's last word on a job.
type Scheduler struct {
	Source   string `json:"source"`           // what was asked: "squeue", "squeue, sacct", "markers" …
	JobID    string `json:"job_id,omitempty"` // the target's own
	State    string `json:"state"`            // its own word; empty when it has none
	Detail   string `json:"detail,omitempty"`
	Restarts int    `json:"restarts,omitempty"` // how often it started the job again
}

// Rank says how one rank ended.
type Rank struct {
	Rank           int                `json:"rank"`
	Host           string             `json:"host"` // empty when it never began
	Node           string             `json:"node"` // the scheduler's name of the node
	State          evidence.RankState `json:"state"`
	ExitCode       *int               `json:"exit_code"` // null unless it ended
	Signal         string             `json:"signal"`    // e.g. "SIGKILL"; empty when there was none
	ElapsedSeconds float64            `json:"elapsed_seconds"`
}

// Measurement is one value that the job measured.
type Measurement struct {
	Name          string        `json:"name"`
	Value         *float64      `json:"value"` // null when not applicable, or a label
	Unit          string        `json:"unit"`
	Model         string        `json:"model"` // the row's model in a results CSV
	Source        metric.Source `json:"source"`
	Text          string        `json:"text"` // as it was written, when it comes from one reading
	NotApplicable bool          `json:"not_applicable,omitempty"`
	Label         bool          `json:"label,omitempty"`    // it is a word, which Text holds
	Gated         bool          `json:"gated,omitempty"`    // it has a threshold, or is required; a baseline does not apply that
	Declared      bool          `json:"declared,omitempty"` // the card names it
}

// Time is a moment in UTC. The zero value is "not known" and null in JSON.
type Time struct{ time.Time }

// MarshalJSON writes RFC 3339 in UTC, or null for the zero time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.UTC().MarshalJSON()
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*t = Time{}
		return nil
	}
	return t.Time.UnmarshalJSON(b)
}

// String returns RFC 3339 in UTC to the millisecond, or "" for the zero time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// Encode returns the run as indented JSON with a newline at its end. The same
// run gives the same bytes.
func Encode(run Run) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(run); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Decode reads what Encode wrote.
func Decode(data []byte) (Run, error) {
	var run Run
	err := json.Unmarshal(data, &run)
	return run, err
}

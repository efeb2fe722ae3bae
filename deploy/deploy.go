// Package deploy is the seam between assay and the places where jobs run. A
// target implements Target and is a package below this one.
package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/plan"
)

// The kinds of error a target returns, for errors.Is.
var (
	// ErrRefused says that the target looked at the job and said no. The error's
	// text has the target's own words.
	ErrRefused = errors.New("refused")
	// ErrUnavailable says that the target could not be asked: a tool is missing, a
	// service is down. It is never a state of a job. Of a submission it says that
	// nothing was submitted, and that it can be tried again.
	ErrUnavailable = errors.New("unavailable")
	// ErrNoTool says, beside ErrUnavailable, that a command is not on this machine.
	ErrNoTool = errors.New("missing tool")
	// ErrAmbiguous says that a submission may or may not have happened; the driver
	// then asks a Finder.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrIncomplete says that a job was found of which only a part was started. Find
	// returns it with a handle of that part.
	ErrIncomplete = errors.New("incomplete")
)

// Said is what a target said: the text of an error without the kinds of error that
// it is.
func Said(err error) string {
	kinds := []error{ErrRefused, ErrUnavailable, ErrNoTool, ErrAmbiguous, ErrIncomplete}
	clauses := strings.Split(err.Error(), ": ")
	return strings.Join(slices.DeleteFunc(clauses, func(clause string) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return clause == kind.Error() })
	}), ": ")
}

// Handle names a submitted job for any later process. Data is the target's own
// and opaque to everybody else.
type Handle struct {
	Target string          `json:"target"`
	ID     string          `json:"id"` // short, for people
	Data   json.RawMessage `json:"data,omitempty"`
}

// File is one file of a rendered job, to be written into the attempt directory.
type File struct {
	Name string // relative to the attempt directory
	Mode fs.FileMode
	Data []byte
}

// Target is a place where jobs run.
type Target interface {
	// Name is the value of deployment_config.target.
	Name() string
	// Render gives the files that describe the job, and is the dry run. It is pure:
	// the same attempt gives the same bytes.
	Render(plan.Attempt) ([]File, error)
	// Submit hands over a job whose rendered files lie in its attempt directory.
	// The end of ctx does not end the job.
	Submit(context.Context, plan.Attempt) (Handle, error)
	// Observe says what the target knows now, one observation a handle, in order,
	// with one question for all of them. It never waits for a change. An error
	// means that nothing could be learned.
	Observe(context.Context, []Handle) ([]evidence.Observation, error)
	// Cancel asks for the end of a job. Cancelling twice, or after the end, is no
	// error.
	Cancel(context.Context, Handle) error
}

// Waiter is a target that can tell a change without being polled.
type Waiter interface {
	// Wait returns when at least one of the jobs may have changed, or ctx ends.
	Wait(context.Context, []Handle) error
}

// Finder is a target that can find a job whose submission had no answer.
type Finder interface {
	// Find looks for the job by its nonce.
	Find(context.Context, plan.Attempt) (h Handle, found bool, err error)
}

// Resubmitter is a Finder to which a job can be submitted again after an answer that
// does not say whether it was: there is at most one job of its name and nonce, however
// often and in whichever order the requests arrive.
type Resubmitter interface {
	Resubmits() bool
}

// Checker is a target that can tell before submission what would fail.
type Checker interface {
	// Check looks at what can be known before submission.
	Check(context.Context, CheckRequest) []Finding
}

// CheckRequest is what Check is about.
type CheckRequest struct {
	Jobs       []plan.Job
	Runs       string // absolute directory below which the run directory will be; it may not exist yet
	RankBinary string // deployment_config.rank_binary, absolute; empty: the target's own
	OnNode     bool   // also run something on a node, which may have to wait for one
	Thorough   bool   // also ask what takes longer than a run should be held up for
}

// Finding is one thing that Check looked at.
type Finding struct {
	Subject string       `json:"subject"` // "partition main", "sacct" …
	State   FindingState `json:"state"`
	Message string       `json:"message"`       // one sentence
	Fix     string       `json:"fix,omitempty"` // what to do about it
	// Unavailable says of a problem that it is one of the target, not of the
	// manifest.
	Unavailable bool `json:"-"`
}

// Text is the finding as one sentence.
func (f Finding) Text() string {
	if f.Fix == "" {
		return f.Message
	}
	return f.Message + "; " + f.Fix
}

// FindingState says how a thing was found.
type FindingState int

// The states of a finding. The zero value is Unknown: it could not be looked at.
const (
	FindingUnknown FindingState = iota
	FindingOK
	FindingWarning
	FindingProblem // the run would fail
)

// String returns the word for a state.
func (s FindingState) String() string {
	switch s {
	case FindingOK:
		return "ok"
	case FindingWarning:
		return "warning"
	case FindingProblem:
		return "problem"
	case FindingUnknown:
	}
	return "unknown"
}

// MarshalText gives the word for a state.
func (s FindingState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Queue is a target that has a queue of its own, which says what runs at the same
// time: all jobs of a run are handed to it unless the user bounds that.
type Queue interface {
	// Queues reports whether jobs wait in the target's queue.
	Queues() bool
}

// Stager is a target whose ranks run on other machines than this process.
type Stager interface {
	// Stage puts the assay that wraps ranks where every node sees it, below the
	// directory of runs, unless it is there, and returns its absolute path.
	Stage(ctx context.Context, runs string) (string, error)
}

// Follower is a target whose ranks leave their records where this process does not
// see them.
type Follower interface {
	// Follow brings what the ranks of a job leave into its attempt directory, from
	// now until the job is over or ctx ends, and returns at once. Once it was called,
	// Observe says that the job has ended only when all is there that can be had,
	// and names what could not. Following a job twice is no error.
	Follow(ctx context.Context, a plan.Attempt, h Handle)
}

// Cleaner is a target that still has something of a job that is over.
type Cleaner interface {
	// Clean removes it, as the job's own settings say, once what the job left is in
	// hand and judged. passed says that the verdict is PASS. Cleaning twice is no
	// error.
	Clean(ctx context.Context, a plan.Attempt, h Handle, passed bool) error
}

// Lister is a target that can list the jobs that any run of this user submitted.
type Lister interface {
	List(context.Context) ([]Listed, error)
}

// Listed is a job of some run, as the target has it.
type Listed struct {
	Handle Handle
	State  string // the target's own word
	RunID  string
	Nonce  string // of the run, or the beginning of it
	RunDir string // absolute, as the submitting process saw it; may be empty
	Host   string // of the submitting process; may be empty
}

// Package deploy is the seam between assay and the places where jobs run. A
// target implements Target and is a package below this one.
package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"assay/pkg/evidence"
	"assay/pkg/plan"
)

// The kinds of error a target returns, for errors.Is.
var (
	// ErrRefused says that the target looked at the job and said no. The error's
	// text has the target's own words.
	ErrRefused = errors.New("refused")
	// ErrUnavailable says that the target could not be asked: a tool is missing, a
	// service is down. It is never a state of a job.
	ErrUnavailable = errors.New("unavailable")
	// ErrAmbiguous says that a submission may or may not have happened; the driver
	// then asks a Finder.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrIncomplete says that a job was found of which only a part was started. Find
	// returns it with a handle of that part.
	ErrIncomplete = errors.New("incomplete")
)

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

// Checker is a target that can tell before submission what would fail.
type Checker interface {
	// Check returns one sentence for each thing that is wrong.
	Check(context.Context, []plan.Job) []string
}

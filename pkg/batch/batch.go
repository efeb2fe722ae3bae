// Package batch is what batch schedulers have in common: the files of a job and
// its handle, the reconciliation of what the queue, the accounting and the ranks'
// markers say, the pace at which a scheduler is asked, and the grace for markers
// that a shared filesystem shows late. What is special about one scheduler is a
// Scheduler.
package batch

import (
	"context"
	"errors"

	"assay/pkg/evidence"
	"assay/pkg/plan"
)

// ErrNoHistory says that the site keeps no accounting, which is no failure.
var ErrNoHistory = errors.New("no accounting")

// Scheduler is what a batch system is asked for. Errors of Submit and Find are of
// the kinds that package deploy defines. No method waits for a job.
type Scheduler interface {
	// Name is the name of the target.
	Name() string
	// Sources names the queue and the accounting, such as squeue and sacct.
	Sources() (queue, history string)
	// Script is the batch script of a job. It is pure.
	Script(plan.Attempt) ([]byte, error)
	// Submit hands over the script, which lies in the attempt directory as
	// ScriptFile.
	Submit(context.Context, plan.Attempt) (Ref, error)
	// Find looks for the job of an attempt by the nonce it carries.
	Find(context.Context, plan.Attempt) (ref Ref, found bool, err error)
	// Queue says what the queue lists of the jobs, one answer each, in order, with
	// one question for all. An error means that the queue could not be asked.
	Queue(context.Context, []Ref) ([]Answer, error)
	// History says what the accounting knows, in the same way. ErrNoHistory means
	// that there is none.
	History(context.Context, []Ref) ([]Answer, error)
	// Cancel asks for the end of a job, if it is still the one that was submitted.
	// A job that has ended, or is not there, is no error.
	Cancel(context.Context, Ref) error
}

// Ref names a job of a scheduler for any later process.
type Ref struct {
	ID     string `json:"id"`               // the scheduler's own
	Name   string `json:"name"`             // of the job; it carries the nonce
	User   string `json:"user,omitempty"`   // who submitted it, as the scheduler tells users apart
	Output string `json:"output,omitempty"` // absolute path of what the batch script writes
	// Steps says that the workload starts steps of the scheduler by itself. How they
	// ended is known to the accounting alone, so it is always asked.
	Steps bool `json:"steps,omitempty"`
	// More is what else the scheduler needs to ask about the job.
	More map[string]string `json:"more,omitempty"`
}

// Answer is what a queue or an accounting says of one job. The zero value is no
// answer.
type Answer struct {
	Known  bool           // it lists the job
	Source string         // who says so, where that is not one of Sources; known even when nobody answered
	Phase  evidence.Phase // Pending, Running or Ended; Unknown for a word that is not known
	Word   string         // the first word of the state
	Detail string         // of a job that is not known: what has its id instead
	Bad    bool           // the word stands for a failure
	Clean  bool           // ended, and every exit code that is known is 0
	// Away says of a job that waits that nodes which it has to run on are down or drained.
	Away bool
	// Again says of a job that ended that the scheduler may start it again.
	Again bool
	// Draining says of a job that runs that its ranks have ended and the nodes are
	// being cleaned.
	Draining bool
	// Script says of a job that ended that the batch script itself failed, could not
	// be started or was not to be, which is nobody's fault if no rank began.
	Script bool
	// Part says that the answer is about a part of the job, which may have ended for
	// a reason that lies outside of it.
	Part     bool
	Started  bool // it was given nodes
	Restarts int  // how often it was started again
	Earlier  []evidence.Earlier
	Nodes    string // as the scheduler writes them
}

// ended says whether the answer is a final state.
func (a Answer) ended() bool { return a.Known && a.Phase == evidence.PhaseEnded }

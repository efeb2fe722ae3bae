package rank

import (
	"context"
	"fmt"
	"slices"

	"assay/pkg/evidence"
)

// Stage is how far a rank is, as far as that matters to the others of its pair or
// group.
type Stage int

// The stages, in their order. The zero value is Unknown.
const (
	StageUnknown Stage = iota
	StageBegun         // its wrapper runs
	StageReady         // the others may begin
	StageDone          // its workload has ended
	StageOver          // its wrapper has recorded the end
)

func stageNames() []string { return []string{"unknown", "begun", "ready", "done", "over"} }

// String returns the word for a stage.
func (s Stage) String() string {
	if s < 0 || int(s) >= len(stageNames()) {
		return fmt.Sprintf("stage %d", int(s))
	}
	return stageNames()[s]
}

// MarshalText writes the word for a stage.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word for a stage.
func (s *Stage) UnmarshalText(text []byte) error {
	i := slices.Index(stageNames(), string(text))
	if i < 0 {
		return fmt.Errorf("%q is no stage of a rank", text)
	}
	*s = Stage(i)
	return nil
}

// State is what a rank lets the others of its pair or group know. One of which nothing
// runs any more, and that left no record of its end, is at StageOver with an unknown
// outcome.
type State struct {
	Stage    Stage            `json:"stage"`
	Node     string           `json:"node,omitempty"`    // that it runs on
	Outcome  evidence.Outcome `json:"outcome,omitempty"` // how its workload ended, from StageDone on
	ExitCode int              `json:"exit_code,omitempty"`
	Note     string           `json:"note,omitempty"` // what hinders it from being ready, for people
}

// Meeting is how the ranks of a pair or group tell each other how far they are.
type Meeting interface {
	// Tell makes known how far this rank is. Each state replaces the one before it.
	Tell(ctx context.Context, s State) error
	// Ask says how far a rank is known to be, and does not wait for it to get any
	// further. A rank of which nothing is known is at StageUnknown. An error means that
	// nobody could be asked now.
	Ask(ctx context.Context, rank int) (State, error)
}

// meets reports whether the ranks of the job wait for each other.
func (w *wrapper) meets() bool { return w.attempt.Job.Ready != nil && w.attempt.Job.WorldSize > 1 }

// meeting is where the ranks meet: in the attempt directory unless the target knows
// another place.
func (w *wrapper) meeting() Meeting {
	if w.options.Meeting != nil {
		return w.options.Meeting
	}
	return &shared{attempt: w.attempt, rank: w.rank, mode: w.fileMode, kernel: ownKernel()}
}

// tell lets the others know how far the rank is. What they do not learn now they
// learn from its end marker, or not at all; it changes nothing here.
func (w *wrapper) tell(ctx context.Context, s State) {
	if !w.meets() {
		return
	}
	s.Node = w.end.Node
	if s.Stage >= StageDone {
		s.Outcome, s.ExitCode = w.end.Outcome, w.end.ExitCode
	}
	if err := w.meeting().Tell(context.WithoutCancel(ctx), s); err != nil {
		w.note("the other ranks could not be told that this one is %v: %v", s.Stage, err)
	}
}

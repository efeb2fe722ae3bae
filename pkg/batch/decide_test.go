package batch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/evidence"
)

// sourceCase is a source in a file.
type sourceCase struct {
	Answer
	Absent bool
	Err    string
}

func (c *sourceCase) source(name string) source {
	if c == nil {
		return source{name: name}
	}
	s := source{name: name, asked: true, absent: c.Absent, Answer: c.Answer}
	switch {
	case c.Absent:
		s.err = ErrNoHistory
	case c.Err != "":
		s.err = errors.New(c.Err)
	}
	return s
}

type decideCase struct {
	About          string
	Queue, History *sourceCase
	Markers        struct {
		Ranks, Began, Ended int
		Stopped             bool
	}
	Steps   bool
	Seconds struct{ Grace, Ended, Missing, Complete, Silent, Odd float64 }
	Want    *evidence.Observation // null: nothing can be said
}

func (c decideCase) view() view {
	sec := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return view{
		queue: c.Queue.source("squeue"), history: c.History.source("sacct"),
		markers: markers{c.Markers.Ranks, c.Markers.Began, c.Markers.Ended, c.Markers.Stopped}, grace: sec(c.Seconds.Grace), steps: c.Steps,
		endedFor: sec(c.Seconds.Ended), missingFor: sec(c.Seconds.Missing), completeFor: sec(c.Seconds.Complete),
		silentFor: sec(c.Seconds.Silent), oddFor: sec(c.Seconds.Odd),
	}
}

func TestDecide(t *testing.T) {
	paths, err := filepath.Glob("testdata/decide/*.json")
	if err != nil || len(paths) < 40 {
		t.Fatalf("%d cases (%v)", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var c decideCase
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
			v := c.view()
			if asked := c.History != nil; v.needsHistory() != asked && v.queue.Phase == evidence.PhaseEnded {
				t.Errorf("the accounting is asked: %t, and the case has an answer of it: %t", v.needsHistory(), asked)
			}
			o, ok := decide(v)
			if !ok {
				if c.Want != nil {
					t.Errorf("%s Nothing is said, want %+v", c.About, *c.Want)
				}
				return
			}
			if c.Want == nil {
				t.Fatalf("%s Said %+v, want nothing", c.About, o)
			}
			if diff := cmp.Diff(*c.Want, o); diff != "" {
				t.Errorf("%s\n%s", c.About, diff)
			}
		})
	}
}

// answers are all that a source may say.
func answers() *rapid.Generator[Answer] {
	return rapid.Custom(func(t *rapid.T) Answer {
		if rapid.Bool().Draw(t, "unknown") {
			return Answer{}
		}
		a := Answer{
			Known: true, Phase: rapid.SampledFrom([]evidence.Phase{evidence.PhaseUnknown, evidence.PhasePending, evidence.PhaseRunning, evidence.PhaseEnded}).Draw(t, "phase"),
			Restarts: rapid.IntRange(0, 2).Draw(t, "restarts"), Started: rapid.Bool().Draw(t, "started"),
		}
		a.Word = "W" + a.Phase.String()
		switch a.Phase {
		case evidence.PhaseEnded:
			a.Bad, a.Again, a.Script = rapid.Bool().Draw(t, "bad"), rapid.Bool().Draw(t, "again"), rapid.Bool().Draw(t, "script")
			a.Clean = !a.Bad && rapid.Bool().Draw(t, "clean")
			if a.Bad {
				a.Word = rapid.SampledFrom([]string{"FAILED", "TIMEOUT"}).Draw(t, "word")
			}
		case evidence.PhaseRunning:
			a.Draining = rapid.Bool().Draw(t, "draining")
		case evidence.PhaseUnknown, evidence.PhasePending, evidence.PhaseEnding, evidence.PhaseGone:
		}
		return a
	})
}

func sources(name string, mayBeAbsent bool) *rapid.Generator[source] {
	return rapid.Custom(func(t *rapid.T) source {
		s := source{name: name, asked: true}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			s.err = errors.New("no contact")
		case 1:
			if mayBeAbsent {
				s.absent, s.err = true, ErrNoHistory
			}
		default:
			s.Answer = answers().Draw(t, "answer")
		}
		return s
	})
}

// views are what may be known, with times that fit together.
func views() *rapid.Generator[view] {
	return rapid.Custom(func(t *rapid.T) view {
		seconds := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 30).Draw(t, name)) * time.Second
		}
		v := view{queue: sources("squeue", false).Draw(t, "queue"), history: sources("sacct", true).Draw(t, "history"), grace: seconds("grace"), steps: rapid.Bool().Draw(t, "steps")}
		v.markers.ranks = rapid.IntRange(1, 3).Draw(t, "ranks")
		v.markers.ended = rapid.IntRange(0, v.markers.ranks).Draw(t, "ended")
		v.markers.began = rapid.IntRange(v.markers.ended, v.markers.ranks).Draw(t, "began")
		if !v.needsHistory() {
			v.history = source{name: "sacct"}
		}
		return longer(t, v)
	})
}

// longer lets the times go on that run.
func longer(t *rapid.T, v view) view {
	more := func(d *time.Duration, runs bool, name string) {
		if runs {
			*d += time.Duration(rapid.IntRange(0, 900).Draw(t, name)) * time.Second
		}
	}
	more(&v.endedFor, v.queue.ended() || v.history.ended() && !v.queue.Known, "ended for")
	more(&v.missingFor, v.queue.err == nil && !v.queue.Known, "missing for")
	more(&v.completeFor, v.markers.complete(), "complete for")
	more(&v.silentFor, v.queue.err != nil && !v.history.ended(), "silent for")
	more(&v.oddFor, v.queue.Known && v.queue.Phase == evidence.PhaseUnknown, "odd for")
	return v
}

// No word comes from nowhere, least of all a bad one.
func TestNothingIsConcludedFromAbsence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := views().Draw(t, "view")
		o, ok := decide(v)
		if !ok {
			if !cmp.Equal(o, evidence.Observation{}) {
				t.Fatalf("says nothing, and says %+v", o)
			}
			return
		}
		said := func(f func(Answer) bool) bool {
			return v.queue.Known && f(v.queue.Answer) || v.history.Known && f(v.history.Answer)
		}
		if o.Word != "" && !said(func(a Answer) bool { return a.Word == o.Word }) {
			t.Fatalf("nobody said %s", o.Word)
		}
		if o.Bad && !said(func(a Answer) bool { return a.Bad && a.Word == o.Word }) {
			t.Fatalf("nobody said that the job failed as %s", o.Word)
		}
		if o.Phase == evidence.PhaseEnded && !v.markers.complete() && !said(Answer.ended) {
			t.Fatal("the end is nobody's word, and records are missing")
		}
		if o.NotLaunched != "" && (v.markers.began > 0 || !said(func(a Answer) bool { return a.Script })) {
			t.Fatal("not launched is nobody's word")
		}
		if v.queue.err != nil && v.history.err != nil && (o.Word != "" || o.Bad || o.Restarts != 0 || o.Phase == evidence.PhaseGone) {
			t.Fatalf("failure to ask gave %+v", o)
		}
	})
}

// What is over stays over, however long one waits.
func TestPatienceDoesNotTurnBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := views().Draw(t, "view")
		before, _ := decide(v)
		if !before.Phase.Over() {
			return
		}
		after, ok := decide(longer(t, v))
		if !ok || after.Phase != before.Phase || after.Word != before.Word || after.Bad != before.Bad {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

// One more record never makes it less final, and a job that the scheduler said
// ended keeps its word.
func TestMoreRecordsAreNoStepBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := views().Draw(t, "view")
		before, _ := decide(v)
		if v.markers.complete() || !before.Phase.Over() {
			return
		}
		v.markers.ended++
		v.markers.began = max(v.markers.began, v.markers.ended)
		if !v.needsHistory() {
			v.history = source{name: "sacct"}
		}
		after, ok := decide(v)
		if !ok || !after.Phase.Over() || before.Phase == evidence.PhaseEnded && after.Phase != evidence.PhaseEnded {
			t.Fatalf("%+v became %+v", before, after)
		}
	})
}

// Every view ends when all times are long: nobody waits for ever on a job that is
// not there.
func TestPatienceIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := views().Draw(t, "view")
		live := v.queue.Known && (v.queue.Phase == evidence.PhasePending || v.queue.Phase == evidence.PhaseRunning)
		unasked := v.queue.err != nil && !v.markers.complete()
		if live || unasked {
			return
		}
		for _, d := range []*time.Duration{&v.endedFor, &v.missingFor, &v.completeFor, &v.silentFor, &v.oddFor} {
			*d = time.Hour
		}
		if o, ok := decide(v); !ok || !o.Phase.Over() {
			t.Fatalf("still %+v (%t) after an hour", o, ok)
		}
	})
}

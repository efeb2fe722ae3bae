package slurm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
)

// TestStates compares the table with the words of the manual pages: each is known,
// and none is made up.
func TestStates(t *testing.T) {
	want := map[string]string{}
	for line := range strings.Lines(readFile(t, "testdata/states.txt")) {
		if word, phase, found := strings.Cut(strings.TrimSpace(line), " "); found && word != "#" {
			want[word] = strings.TrimSpace(phase)
		}
	}
	got := map[string]string{}
	for word, s := range states() {
		got[word] = s.phase.String()
		if s.bad {
			got[word] += " bad"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(want) < 24 {
		t.Errorf("only %d states are listed", len(want))
	}
}

// What may follow a state: its flags only make sense together.
func TestStatesAreConsistent(t *testing.T) {
	for _, word := range slices.Sorted(maps.Keys(states())) {
		s := lookup(word)
		ended := s.phase == evidence.PhaseEnded
		switch {
		case s.phase == evidence.PhaseUnknown:
			t.Errorf("%s is known and stands for nothing", word)
		case s.bad && !ended:
			t.Errorf("%s is a failure before the end", word)
		case s.script && !s.bad:
			t.Errorf("%s is a failure of the script and none of the job", word)
		case s.draining && s.phase != evidence.PhaseRunning:
			t.Errorf("%s: only what runs has nodes that are cleaned", word)
		case ended && !s.bad && word != "COMPLETED":
			t.Errorf("%s ends a job and is no failure", word)
		}
	}
	for _, word := range []string{"", "completed", "CANCELLED by 0", "HIBERNATING", "COMPLETE"} {
		if s := lookup(word); s != (state{}) {
			t.Errorf("%q stands for %+v", word, s)
		}
	}
}

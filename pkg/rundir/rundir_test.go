package rundir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
)

func newRun(t *testing.T) *Run {
	t.Helper()
	r, err := Create(filepath.Join(t.TempDir(), "runs"), Ledger{Version: LedgerVersion, RunID: "one", Nonce: "n", Target: "local", Jobs: []Entry{{ID: "a", Key: "a"}}}, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLedgerComesBack(t *testing.T) {
	r := newRun(t)
	again, err := Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.Ledger, again.Ledger); diff != "" {
		t.Error(diff)
	}
	if _, err := Create(filepath.Dir(r.Dir), r.Ledger, nil); err == nil {
		t.Error("a run directory was created twice")
	}
}

func TestUnknownLedgerVersionIsRefused(t *testing.T) {
	r := newRun(t)
	if err := os.WriteFile(filepath.Join(r.Dir, LedgerFile), []byte(`{"version": 99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(r.Dir); err == nil {
		t.Error("a ledger of an unknown version was read")
	}
}

func TestLaunchRecord(t *testing.T) {
	r := newRun(t)
	dir, err := r.MakeAttemptDir("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := ReadLaunch(dir); err != nil || l.State != evidence.LaunchPlanned {
		t.Errorf("before anything was asked: %v, %v", l, err)
	}
	if err := r.WriteLaunch(dir, LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}); err != nil {
		t.Fatal(err)
	}
	if l, err := ReadLaunch(dir); err != nil || l.State != evidence.LaunchIntent || l.Handle != nil {
		t.Errorf("after the intent: %v, %v", l, err)
	}
}

// The first request to end a run stands.
func TestFirstCancelStands(t *testing.T) {
	r := newRun(t)
	if c, err := r.ReadCancel(); c != nil || err != nil {
		t.Fatalf("a new run: %v, %v", c, err)
	}
	for _, by := range []string{"first", "second"} {
		if err := r.WriteCancel(evidence.Cancel{By: by}); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := r.ReadCancel(); err != nil || c == nil || c.By != "first" {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestOneDriver(t *testing.T) {
	r := newRun(t)
	unlock, err := r.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("a second driver got %v, want ErrLocked", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.WaitLock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting with an ended context gave %v", err)
	}
	got := make(chan error, 1)
	go func() {
		again, err := r.WaitLock(t.Context())
		if err == nil {
			again()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Errorf("after the first driver was gone: %v", err)
	}
}

func TestObservations(t *testing.T) {
	r := newRun(t)
	dir, err := r.MakeAttemptDir("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := LastObservation(dir); o != nil || err != nil {
		t.Fatalf("nothing was seen: %v, %v", o, err)
	}
	seen := []evidence.Observation{
		{Source: "x", Phase: evidence.PhaseRunning, Word: "RUNNING", At: time.Unix(1, 0).UTC()},
		{Source: "x", Phase: evidence.PhaseRunning, Word: "RUNNING", At: time.Unix(2, 0).UTC()},
		{Source: "x", Phase: evidence.PhaseEnded, Word: "TIMEOUT", Bad: true, At: time.Unix(3, 0).UTC()},
		// No answer is no observation, and never hides one.
		{Source: "x", Phase: evidence.PhaseUnknown, Detail: "timed out", At: time.Unix(4, 0).UTC()},
	}
	for _, o := range seen {
		if err := r.AppendObservation(dir, o); err != nil {
			t.Fatal(err)
		}
	}
	// A crash in the middle of an append leaves a line without an end.
	f, err := os.OpenFile(filepath.Join(dir, SchedulerFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"source":"x","phase":"run`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	last, err := LastObservation(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&seen[2], last); diff != "" {
		t.Error(diff)
	}
	after := evidence.Observation{Source: "x", Phase: evidence.PhaseEnded, Word: "ENDED", At: time.Unix(5, 0).UTC()}
	if err := r.AppendObservation(dir, after); err != nil {
		t.Fatal(err)
	}
	if last, err := LastObservation(dir); err != nil || cmp.Diff(&after, last) != "" {
		t.Errorf("after a torn line: %v, %v", last, err)
	}
}

// An end that was seen stands when less is said later: by a process that asked
// earlier and writes later, or a target that has forgotten the job meanwhile.
func TestEndThatWasSeenStands(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	running := evidence.Observation{Source: "x", Phase: evidence.PhaseRunning, Word: "RUNNING", At: at}
	timeout := evidence.Observation{Source: "x", Phase: evidence.PhaseEnded, Word: "TIMEOUT", Bad: true, At: at}
	nameless := evidence.Observation{Source: "markers", Phase: evidence.PhaseEnded, At: at}
	ending := evidence.Observation{Source: "x", Phase: evidence.PhaseEnding, At: at}
	gone := evidence.Observation{Source: "x", Phase: evidence.PhaseGone, At: at}
	for name, c := range map[string]struct {
		seen []evidence.Observation
		want evidence.Observation
	}{
		"older_answer":   {[]evidence.Observation{running, timeout, running}, timeout},
		"forgotten":      {[]evidence.Observation{running, timeout, ending, gone}, timeout},
		"markers_later":  {[]evidence.Observation{timeout, nameless}, timeout},
		"name_later":     {[]evidence.Observation{nameless, timeout}, timeout},
		"nameless":       {[]evidence.Observation{nameless, running}, nameless},
		"gone_and_back":  {[]evidence.Observation{gone, running}, running},
		"end_after_gone": {[]evidence.Observation{gone, timeout}, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			dir, err := r.MakeAttemptDir("a", 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range c.seen {
				if err := r.AppendObservation(dir, o); err != nil {
					t.Fatal(err)
				}
			}
			if last, err := LastObservation(dir); err != nil || cmp.Diff(&c.want, last) != "" {
				t.Errorf("%+v, %v", last, err)
			}
		})
	}
}

func TestOf(t *testing.T) {
	for dir, want := range map[string]string{AttemptDir("/runs/jobs/r", "job", 2): "/runs/jobs/r", "/elsewhere": "", "": ""} {
		if got := Of(dir); got != want {
			t.Errorf("%q is in %q, want %q", dir, got, want)
		}
	}
}

package deploytest

import (
	"testing"

	"assay/pkg/evidence"
	"assay/pkg/verdict"
)

// cancelBeforeStart ends a job that waits.
func cancelBeforeStart(t *testing.T, h Harness) {
	target, job := h.Waiting(t, bash(`echo "performance: 5 triadGBs"`, 2))
	a, handle := h.start(t, target, job)
	if seen := observe(t, target, handle); seen.Phase != evidence.PhasePending || seen.Word == "" {
		t.Errorf("a job that has to wait is said to be %+v, want pending with the target's own word", seen)
	}
	for range 2 {
		if err := h.New(t).Cancel(t.Context(), handle); err != nil {
			t.Fatalf("cancel: %v", err)
		}
	}
	seen := h.await(t, h.New(t), handle)
	if ranks := begun(t, a.Dir, 2); len(ranks) > 0 {
		t.Errorf("ranks %v began", ranks)
	}
	if err := target.Cancel(t.Context(), handle); err != nil {
		t.Errorf("cancel after the end: %v", err)
	}
	wantVerdict(t, judge(t, a, handle, seen, true), verdict.Error, verdict.CodeCancelled)
	if v := judged(t, a, false); v.Word == verdict.Pass || v.Word == verdict.NoMetric {
		t.Errorf("of a job that somebody else cancelled before it started the verdict is %s: %v", v.Word, v.Reasons)
	}
	h.wantNothingLeft(t, a, handle)
}

// cancelAtOnce does not know how far the job is.
func cancelAtOnce(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bash(`sleep 300`, 2))
	if err := target.Cancel(t.Context(), handle); err != nil {
		t.Fatalf("cancel: %v", err)
	}
	seen := h.await(t, target, handle)
	wantVerdict(t, judge(t, a, handle, seen, true), verdict.Error, verdict.CodeCancelled)
	h.wantNothingLeft(t, a, handle)
}

func cancelRunning(t *testing.T, h Harness) {
	target := h.New(t)
	a, handle := h.start(t, target, bash(`echo up > "$ASSAY_RESULTS_DIR/up"; sleep 300`, 2))
	for rank := range 2 {
		h.awaitUp(t, a, rank)
	}
	// Another process cancels, and then does it again.
	for range 2 {
		if err := h.New(t).Cancel(t.Context(), handle); err != nil {
			t.Fatalf("cancel: %v", err)
		}
	}
	seen := h.await(t, target, handle)
	if err := target.Cancel(t.Context(), handle); err != nil {
		t.Errorf("cancel after the end: %v", err)
	}
	for rank := range 2 {
		if m := mustEnd(t, a, rank); m.Outcome != evidence.OutcomeStopped || m.ExitCode == 0 {
			t.Errorf("rank %d: outcome %s with code %d, want stopped with another code than 0", rank, m.Outcome, m.ExitCode)
		}
	}
	wantVerdict(t, judge(t, a, handle, seen, true), verdict.Error, verdict.CodeCancelled)
	h.wantNothingLeft(t, a, handle)
}

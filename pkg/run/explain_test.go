package run

import (
	"os"
	"path/filepath"
	"testing"

	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// What is explained is the attempt that decides, though another was made after it.
func TestJudgedEvidence(t *testing.T) {
	target := &played{t: t, exits: map[string][]int{"a": {3, 0}}, seconds: 1}
	r := mustRun(t, target, Input{}, jobOf("a", policy(verdict.Policy{Retries: 1})))
	playOut(t, target, r)
	leaveEnd(t, r, attemptOf(t, r, "a", 1), 1, "ENDED")
	j := Judge(r).Jobs[0]
	if e, err := JudgedEvidence(r, j); err != nil || e.Attempt != 1 || len(e.Ranks) != 1 || e.Ranks[0].ExitCode != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	if err := os.Remove(filepath.Join(r.AttemptDir("a", 1), rundir.JobFile)); err != nil {
		t.Fatal(err)
	}
	if e, err := JudgedEvidence(r, j); err != nil || e.Attempt != 2 {
		t.Errorf("without its job file: %+v, %v", e, err)
	}
}

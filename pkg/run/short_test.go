package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// A resume that was killed once the request to end the run was lifted keeps its nodes:
// whoever goes on with the run makes the attempt.
func TestLiftedCancelKeepsNodes(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	target := &played{t: t, seconds: 1}
	one := mustClaim(t, runs, "one", "a")
	if err := one.WriteLaunch(one.AttemptDir("x", 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &deploy.Handle{Target: "played", ID: "x"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Cancel(t.Context(), one, target, evidence.Cancel{By: "assay cancel", At: time.Unix(3, 0)}, true); err != nil {
		t.Fatal(err)
	}
	a := attemptOf(t, one, "x", 1)
	writeFile(t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.EndFile),
		evidence.End{Version: 1, Identity: a.Identity(0), Node: "n", Outcome: evidence.OutcomeStopped, ExitCode: 143, Signal: "SIGTERM"})
	submitted(t, one, a, "ENDED")
	if rep, err := Finish(one, quiet); err != nil || rep.Verdict != verdict.Error {
		t.Fatal(summary(rep), err)
	}
	claims, _, err := reclaim(t.Context(), one, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.LiftCancel(); err != nil {
		t.Fatal(err)
	}
	claims.Release()
	rep := Judge(one)
	if rep.Verdict != verdict.Pending || !strings.Contains(rep.Jobs[0].Reasons[0].Message, "another attempt is due: that it was cancelled is lifted") {
		t.Errorf("%s", summary(rep))
	}
	if _, err := claimant(t.Context(), t, runs, "two", "a"); err == nil || !strings.Contains(err.Error(), "run one uses a;") {
		t.Errorf("%v, want a refusal", err)
	}
	if rep := playOut(t, target, one); rep.Verdict != verdict.Pass || rep.Jobs[0].History[1].Trigger != verdict.TriggerResume {
		t.Errorf("%s: %+v", summary(rep), rep.Jobs[0].History)
	}
}

// A verdict that rests on what the target said stands when that is lost.
func TestLostWordOfTheTarget(t *testing.T) {
	target := &played{t: t}
	r := mustRun(t, target, Input{}, jobOf("a", nil))
	one := attemptOf(t, r, "a", 1)
	leaveEnd(t, r, one, 0, "NODE_FAIL")
	before, err := Finish(r, quiet)
	if err != nil || before.Verdict == verdict.Pass {
		t.Fatal(summary(before), err)
	}
	if err := os.Remove(filepath.Join(one.Dir, rundir.SchedulerFile)); err != nil {
		t.Fatal(err)
	}
	if after, err := Finish(r, quiet); err != nil || after.Verdict != before.Verdict || after.Jobs[0].Scheduler == nil {
		t.Errorf("%s, after the records were lost %s, %v", summary(before), summary(after), err)
	}
}

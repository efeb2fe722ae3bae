package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// kept is what an attempt of job a left: its final verdict.
func verdictFile(t *testing.T, r *rundir.Run, job string, n int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.AttemptDir(job, n), rundir.VerdictFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func mustRun(t *testing.T, target deploy.Target, in Input, jobs ...plan.Job) *rundir.Run {
	t.Helper()
	r, err := suiteRun(t, target, t.TempDir(), in, jobs...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// leaveEnd has rank 0 of an attempt leave its end, and the target say how it ended.
func leaveEnd(t *testing.T, r *rundir.Run, a plan.Attempt, exit int, word string) {
	t.Helper()
	end := evidence.End{Version: 1, Identity: a.Identity(0), Node: "n", Outcome: evidence.OutcomeExited, ExitCode: exit, ElapsedSeconds: 1}
	writeFile(t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.EndFile), end)
	submitted(t, r, a, word)
}

// submitted has the records say that an attempt was submitted and ended.
func submitted(t *testing.T, r *rundir.Run, a plan.Attempt, word string) {
	t.Helper()
	err := errors.Join(
		r.WriteLaunch(a.Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &deploy.Handle{Target: "played", ID: a.Job.ID}}),
		r.AppendObservation(a.Dir, evidence.Observation{Source: "played", Phase: evidence.PhaseEnded, Word: word, Bad: word != "ENDED", At: time.Unix(1, 0)}),
	)
	if err != nil {
		t.Fatal(err)
	}
}

func attemptOf(t *testing.T, r *rundir.Run, job string, n int) plan.Attempt {
	t.Helper()
	a, err := rundir.ReadAttempt(r.AttemptDir(job, n))
	if err != nil {
		t.Fatal(err)
	}
	a.Dir = r.AttemptDir(job, n)
	return a
}

// A start of an attempt that has its verdict leaves nothing in the attempt that was made
// after it.
func TestRestartIsNoRetry(t *testing.T) {
	target := &played{t: t}
	r := mustRun(t, target, Input{}, jobOf("a", policy(verdict.Policy{Retries: 1})))
	one := attemptOf(t, r, "a", 1)
	leaveEnd(t, r, one, 3, "NODE_FAIL")
	e := r.Ledger.Jobs[0]
	if err := (&Driver{Run: r, Target: target}).attemptAgain(e, judgeAttempts(r, e, true), verdict.TriggerRetry); err != nil {
		t.Fatal(err)
	}
	if again, err := rundir.MakeRestart(one, 1); err == nil || !strings.Contains(err.Error(), "attempt 2 of job a is not the restart of attempt 1") {
		t.Errorf("a restart took the place of a retry: %+v, %v", again, err)
	}
}

// A FAIL that is learnt of late is not hidden by the retry that passed meanwhile.
func TestLateFail(t *testing.T) {
	target := &played{t: t, exits: map[string][]int{"a": {3, 0}}, seconds: 1}
	r := mustRun(t, target, Input{}, jobOf("a", policy(verdict.Policy{Retries: 1})))
	if rep := playOut(t, target, r); rep.Verdict != verdict.Pass {
		t.Fatal(summary(rep))
	}
	one := attemptOf(t, r, "a", 1)
	leaveEnd(t, r, one, 1, "ENDED")
	if rep := Judge(r); rep.Jobs[0].Verdict != verdict.Fail || rep.Jobs[0].Directory != "jobs/a/1" || rep.Jobs[0].Attempts != 2 {
		t.Errorf("%s in %s", summary(rep), rep.Jobs[0].Directory)
	}
}

// What cannot be launched, or read, keeps nobody waiting.
func TestNothingWaitsForAJobThatCannotBeLaunched(t *testing.T) {
	for name, break_ := range map[string]func(dir string) error{
		"launch record": func(dir string) error { return os.Mkdir(filepath.Join(dir, rundir.LaunchFile), 0o700) },
		"job file":      func(dir string) error { return os.Remove(filepath.Join(dir, rundir.JobFile)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			target := &played{t: t, seconds: 1}
			r := mustRun(t, target, Input{}, jobOf("a", nil), jobOf("b", func(j *plan.Job) { j.Stage = 1 }))
			if err := break_(r.AttemptDir("a", 1)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
			defer cancel()
			_, err := (&Driver{Run: r, Target: target}).Drive(ctx)
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
			if d := cmp.Diff([]string{"b/1"}, target.log); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		})
	}
}

// A job that ran when its suite was stopped, and that would have to run again, is settled.
func TestHaltedWithAnAttemptDue(t *testing.T) {
	target := &played{t: t, exits: map[string][]int{"a": {3, 1}}, seconds: 1}
	r := mustRun(t, target, Input{}, jobOf("a", func(j *plan.Job) { j.StopOnFail = true }),
		jobOf("b", func(j *plan.Job) { j.Stage, j.Policy.Repeats = 1, 2 }))
	leaveEnd(t, r, attemptOf(t, r, "a", 1), 3, "ENDED")
	if _, err := Finish(r, quiet); err != nil {
		t.Fatal(err)
	}
	e := r.Ledger.Jobs[0]
	if err := (&Driver{Run: r, Target: target}).attemptAgain(e, judgeAttempts(r, e, true), verdict.TriggerResume); err != nil {
		t.Fatal(err)
	}
	leaveEnd(t, r, attemptOf(t, r, "a", 2), 1, "ENDED")
	leaveEnd(t, r, attemptOf(t, r, "b", 1), 0, "ENDED")
	rep := playOut(t, &played{t: t, running: map[string]plan.Attempt{"a": attemptOf(t, r, "a", 2), "b": attemptOf(t, r, "b", 1)}, asked: map[string]int{}, exits: map[string][]int{"a": {3, 1}}, seconds: 1}, r)
	if summary(rep) != "FAIL: a FAIL, b ERROR" || rep.Jobs[1].Reasons[0].Code != verdict.CodeNotRun {
		t.Errorf("%s: %+v", summary(rep), rep.Jobs[1].Reasons)
	}
}

// A number without a directory is no attempt.
func TestGapInAttempts(t *testing.T) {
	target := &played{t: t, seconds: 1}
	r := mustRun(t, target, Input{}, jobOf("a", nil))
	one := attemptOf(t, r, "a", 1)
	submitted(t, r, one, "ENDED")
	three, err := rundir.MakeRestart(one, 2)
	if err != nil {
		t.Fatal(err)
	}
	three.Dir = r.AttemptDir("a", 3)
	leaveEnd(t, r, three, 0, "ENDED")
	if rep := Judge(r); rep.Verdict != verdict.Pass {
		t.Errorf("%s: %+v", summary(rep), rep.Jobs[0].Reasons)
	}
}

// A file that cannot be read takes no verdict back, and makes nothing.
func TestUnreadableAttempt(t *testing.T) {
	target := &played{t: t, seconds: 1}
	r := mustRun(t, target, Input{}, jobOf("a", policy(verdict.Policy{Repeats: 3})))
	playOut(t, target, r)
	file := filepath.Join(r.AttemptDir("a", 2), rundir.JobFile)
	for n := 1; n <= 3; n++ {
		before := verdictFile(t, r, "a", n)
		if err := os.Rename(file, file+".away"); err != nil {
			t.Fatal(err)
		}
		rep, err := Finish(r, quiet)
		if err != nil || rep.Verdict != verdict.Pass || verdictFile(t, r, "a", n) != before {
			t.Errorf("attempt %d: %v, %s", n, err, summary(rep))
		}
		if err := os.Rename(file+".away", file); err != nil {
			t.Fatal(err)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(r.Dir, "jobs")); len(entries) != 1 {
		t.Errorf("%v", entries)
	}
}

// vague is a target that gives no clear answer to some submissions, and does not know
// the jobs.
type vague struct {
	*played
	unclear map[string]bool
	submits []string
}

func (v *vague) Submit(ctx context.Context, a plan.Attempt) (deploy.Handle, error) {
	name := fmt.Sprintf("%s/%d", a.Job.ID, a.Number)
	v.submits = append(v.submits, name)
	if v.unclear[name] {
		return deploy.Handle{}, fmt.Errorf("%w: socket timed out", deploy.ErrAmbiguous)
	}
	return v.played.Submit(ctx, a)
}

func (v *vague) Find(context.Context, plan.Attempt) (deploy.Handle, bool, error) {
	return deploy.Handle{}, false, nil
}

// A job that may still appear is never made again, and its nodes are taken as long as it
// is looked for.
func TestUnclearSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &vague{played: &played{t: t, seconds: 1}, unclear: map[string]bool{"a/1": true}}
		r := mustRun(t, v, Input{MaxNodes: 1}, jobOf("a", func(j *plan.Job) { j.Nodes, j.Policy.Retries = []string{"n"}, 1 }), jobOf("b", func(j *plan.Job) { j.Nodes = []string{"n"} }))
		looked := 0
		d := &Driver{Run: r, Target: v, OnEvent: func(e Event) {
			if e.Kind == EventEnded && e.Result.ID == "a" {
				looked = len(v.submits) // none but its own until then
			}
		}}
		if _, err := d.Drive(t.Context()); err != nil {
			t.Fatal(err)
		}
		rep := Judge(r)
		if d := cmp.Diff([]string{"a/1", "b/1"}, v.submits); d != "" || looked != 1 || rep.Jobs[0].Reasons[0].Code != verdict.CodeLaunchUnknown {
			t.Errorf("%s, %d, %+v\n%s", summary(rep), looked, rep.Jobs[0].Reasons, d)
		}
	})
}

// A run that is resumed while what was cancelled is still ending runs it once that has.
func TestResumeWhileACancelledJobEnds(t *testing.T) {
	target := &played{t: t, seconds: 1}
	r := mustRun(t, target, Input{}, jobOf("a", nil))
	one := attemptOf(t, r, "a", 1)
	if err := r.WriteLaunch(one.Dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchSubmitted}, Handle: &deploy.Handle{Target: "played", ID: "a"}}); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(rundir.RankDir(one.Dir, 0), rundir.BeginFile), evidence.Begin{Version: 1, Identity: one.Identity(0), Node: "n"})
	if n, err := Cancel(t.Context(), r, target, evidence.Cancel{By: "assay cancel", At: time.Unix(3, 0)}, true); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := Resume(t.Context(), r, target, false); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	stopping := &lastWords{played: target, t: t, ends: one}
	if _, err := (&Driver{Run: r, Target: stopping}).Drive(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep, err := Finish(r, quiet)
	if err != nil || rep.Verdict != verdict.Pass || rep.Jobs[0].History[1].Trigger != verdict.TriggerResume || rep.Jobs[0].History[0].Reasons[0].Code != verdict.CodeCancelled {
		t.Errorf("%s, %v: %+v", summary(rep), err, rep.Jobs[0].History)
	}
}

// lastWords has an attempt leave that it was stopped when the target is first asked.
type lastWords struct {
	*played
	t    *testing.T
	ends plan.Attempt
	done bool
}

func (l *lastWords) Observe(ctx context.Context, hs []deploy.Handle) ([]evidence.Observation, error) {
	if l.done {
		return l.played.Observe(ctx, hs)
	}
	l.done = true
	writeFile(l.t, filepath.Join(rundir.RankDir(l.ends.Dir, 0), rundir.EndFile),
		evidence.End{Version: 1, Identity: l.ends.Identity(0), Node: "n", Outcome: evidence.OutcomeStopped, ExitCode: 143, Signal: "SIGTERM"})
	return []evidence.Observation{{Source: "played", Phase: evidence.PhaseEnded, Word: "ENDED", At: time.Unix(4, 0)}}, nil
}

// A cancel that comes between the verdict on an attempt and the next one changes nothing
// that was found.
func TestCancelBetweenAttempts(t *testing.T) {
	target := &played{t: t}
	r := mustRun(t, target, Input{}, jobOf("a", policy(verdict.Policy{Retries: 1})))
	one := attemptOf(t, r, "a", 1)
	writeFile(t, filepath.Join(rundir.RankDir(one.Dir, 0), rundir.BeginFile), evidence.Begin{Version: 1, Identity: one.Identity(0), Node: "n"})
	submitted(t, r, one, "NODE_FAIL")
	if err := writeAttempt(r, judgeAttempts(r, r.Ledger.Jobs[0], true)[0]); err != nil {
		t.Fatal(err)
	}
	before := verdictFile(t, r, "a", 1)
	if _, err := Cancel(t.Context(), r, target, evidence.Cancel{By: "assay cancel", At: time.Unix(5, 0)}, true); err != nil {
		t.Fatal(err)
	}
	rep, err := Finish(r, quiet)
	if err != nil || rep.Verdict != verdict.Error || verdictFile(t, r, "a", 1) != before {
		t.Errorf("%s, %v, the verdict on the attempt changed: %v", summary(rep), err, verdictFile(t, r, "a", 1) != before)
	}
}

// The verdict on another attempt is none on this one.
func TestForeignVerdict(t *testing.T) {
	target := &played{t: t, seconds: 1}
	r := mustRun(t, target, Input{}, jobOf("a", policy(verdict.Policy{Repeats: 2})))
	playOut(t, target, r)
	if err := os.WriteFile(filepath.Join(r.AttemptDir("a", 2), rundir.VerdictFile), []byte(verdictFile(t, r, "a", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := readJobVerdict(r, r.AttemptDir("a", 2)); v != nil || err != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

// Ranks that report no time still come to the end of a duration.
func TestDurationWithoutTimes(t *testing.T) {
	target := &played{t: t, seconds: 0}
	r := mustRun(t, target, Input{}, jobOf("a", policy(verdict.Policy{DurationSeconds: 3})))
	if rep := playOut(t, target, r); rep.Verdict != verdict.Pass || len(target.log) != 3 {
		t.Errorf("%s after %v", summary(rep), target.log)
	}
}

// What a suite does not begin is not made again for nothing.
func TestResumeOfAStoppedSuite(t *testing.T) {
	target := &played{t: t, exits: map[string][]int{"a": {1}}}
	r := mustRun(t, target, Input{}, jobOf("a", func(j *plan.Job) { j.StopOnFail = true }), jobOf("b", func(j *plan.Job) { j.Stage = 1 }))
	first := playOut(t, target, r)
	n, err := Resume(t.Context(), r, target, false)
	if d := cmp.Diff(first, playOut(t, target, r)); d != "" || n != 0 || err != nil {
		t.Errorf("%d jobs, %v\n%s", n, err, d)
	}
}

// Every attempt has its rows once, whenever a resume was killed and whatever was learnt
// later.
func TestRowsOfResumes(t *testing.T) {
	dir := t.TempDir()
	target := &played{t: t, exits: map[string][]int{"a": {3, 3, 0}}, seconds: 1}
	p := &Prepared{Input: Input{ManifestPath: "m.json", Manifest: []byte(`{"built_images": {}, "built_models": {}, "context": {}}`)}, Jobs: []plan.Job{jobOf("a", nil), jobOf("b", nil)}}
	perf := filepath.Join(dir, "perf.csv")
	r, err := p.Create(t.Context(), Settings{Runs: dir, PerfCSV: perf, Concurrency: 2, RunID: "r", Now: time.Unix(0, 0)}, target)
	if err != nil {
		t.Fatal(err)
	}
	rows := func() int {
		data, _ := os.ReadFile(perf)
		return strings.Count(string(data), "\n") - 1
	}
	playOut(t, target, r)
	// A resume that was killed once the attempt was there.
	if _, err := Resume(t.Context(), r, target, false); err != nil {
		t.Fatal(err)
	}
	if _, err := Resume(t.Context(), r, target, false); err != nil {
		t.Fatal(err)
	}
	playOut(t, target, r)
	if rows() != 3 {
		t.Errorf("%d rows, want 3", rows())
	}
	// What b measured comes to light.
	b := attemptOf(t, r, "b", 1)
	end := evidence.End{Version: 1, Identity: b.Identity(0), Node: "n", Outcome: evidence.OutcomeExited, ElapsedSeconds: 1, Metrics: true}
	writeFile(t, filepath.Join(rundir.RankDir(b.Dir, 0), rundir.EndFile), end)
	writeFile(t, filepath.Join(rundir.RankDir(b.Dir, 0), rundir.MetricsFile), map[string]any{"version": 1, "readings": []map[string]any{{"name": "x", "value": 1, "text": "1", "source": "key_value"}}})
	if _, err := Resume(t.Context(), r, target, false); err != nil {
		t.Fatal(err)
	}
	rep := playOut(t, target, r)
	if rows() != 4 || rep.Verdict != verdict.Pass {
		t.Errorf("%d rows, want 4; %s", rows(), summary(rep))
	}
}

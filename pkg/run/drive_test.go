package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// scripted is a target that does what no real one can be made to do: it refuses,
// it does not answer, it cannot be asked.
type scripted struct {
	submit   map[string]error // by job
	unasked  int              // how often Observe fails before it answers
	runs     int              // observations of a job before it has ended
	found    map[string]bool  // jobs that Find knows
	observed int
	active   int
	peak     int
	submits  []string
	cancels  []string
	ended    map[string]bool
	seen     map[string]int
	write    func(a plan.Attempt) // leaves the markers of a job
	jobs     map[string]plan.Attempt
}

func (s *scripted) Name() string { return "scripted" }

func (s *scripted) Render(a plan.Attempt) ([]deploy.File, error) {
	data, err := json.Marshal(a)
	return []deploy.File{{Name: rundir.JobFile, Mode: 0o600, Data: data}}, err
}

func (s *scripted) Submit(_ context.Context, a plan.Attempt) (deploy.Handle, error) {
	if err := s.submit[a.Job.ID]; err != nil {
		return deploy.Handle{}, err
	}
	s.submits = append(s.submits, a.Job.ID)
	s.active++
	s.peak = max(s.peak, s.active)
	return s.handle(a), nil
}

func (s *scripted) handle(a plan.Attempt) deploy.Handle {
	if s.jobs == nil {
		s.jobs, s.seen, s.ended = map[string]plan.Attempt{}, map[string]int{}, map[string]bool{}
	}
	s.jobs[a.Job.ID] = a
	return deploy.Handle{Target: "scripted", ID: a.Job.ID}
}

func (s *scripted) Observe(_ context.Context, hs []deploy.Handle) ([]evidence.Observation, error) {
	s.observed++
	if s.unasked > 0 {
		s.unasked--
		return nil, fmt.Errorf("%w: no answer", deploy.ErrUnavailable)
	}
	out := make([]evidence.Observation, len(hs))
	for i, h := range hs {
		s.seen[h.ID]++
		out[i] = evidence.Observation{Source: "scripted", Phase: evidence.PhaseRunning, Word: "RUNNING", At: time.Now()}
		if s.seen[h.ID] > s.runs && !s.ended[h.ID] {
			s.ended[h.ID] = true
			s.active--
			if s.write != nil {
				s.write(s.jobs[h.ID])
			}
		}
		if s.ended[h.ID] {
			out[i].Phase, out[i].Word = evidence.PhaseEnded, "ENDED"
		}
	}
	return out, nil
}

func (s *scripted) Cancel(_ context.Context, h deploy.Handle) error {
	s.cancels = append(s.cancels, h.ID)
	s.seen[h.ID] = s.runs
	return nil
}

func (s *scripted) Find(_ context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	return s.handle(a), s.found[a.Job.ID], nil
}

// passing leaves the end marker of a rank that measured.
func passing(t *testing.T) func(plan.Attempt) {
	return func(a plan.Attempt) {
		dir := rundir.RankDir(a.Dir, 0)
		id := evidence.Identity{RunID: a.RunID, Nonce: a.Nonce, ManifestDigest: a.ManifestDigest, Job: a.Job.ID, Attempt: a.Number, WorldSize: 1}
		writeFile(t, filepath.Join(dir, rundir.EndFile), evidence.End{Version: 1, Identity: id, Node: "n", Outcome: evidence.OutcomeExited, Metrics: true})
		writeFile(t, filepath.Join(dir, rundir.MetricsFile), map[string]any{"version": 1, "readings": []map[string]any{{"name": "x", "value": 1, "text": "1", "source": "performance"}}})
	}
}

func writeFile(t *testing.T, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// newRun creates a run of jobs with one rank each.
func newRun(t *testing.T, target deploy.Target, concurrency int, ids ...string) *rundir.Run {
	t.Helper()
	p := &Prepared{Input: Input{ManifestPath: "m.json", Manifest: []byte(`{"built_images": {}, "built_models": {}, "context": {}}`)}}
	for _, id := range ids {
		p.Jobs = append(p.Jobs, plan.Job{
			Key: id, ID: id, Model: id, WorldSize: 1, NNodes: 1, RanksPerNode: 1,
			Program: plan.Program{Command: []string{"true"}}, Expect: verdict.Expectation{WorldSize: 1},
		})
	}
	r, err := p.Create(t.Context(), Settings{Runs: t.TempDir(), Concurrency: concurrency, Now: time.Unix(0, 0)}, target)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drive drives a run to its end and gives the verdicts and the notices.
func drive(t *testing.T, d *Driver) (report.Run, []string, Outcome) {
	t.Helper()
	var notices []string
	d.OnEvent = func(e Event) {
		if e.Kind == EventNotice {
			notices = append(notices, e.Text)
		}
	}
	o, err := d.Drive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Finish(d.Run, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return rep, notices, o
}

func words(rep report.Run) map[string]string {
	out := map[string]string{}
	for _, j := range rep.Jobs {
		out[j.ID] = j.Verdict.String()
	}
	return out
}

func TestRefusalIsAnErrorWithTheTargetsWords(t *testing.T) {
	target := &scripted{submit: map[string]error{"a": fmt.Errorf("%w: invalid partition", deploy.ErrRefused)}, write: passing(t)}
	rep, _, _ := drive(t, &Driver{Run: newRun(t, target, 1, "a", "b"), Target: target})
	if diff := cmp.Diff(map[string]string{"a": "ERROR", "b": "PASS"}, words(rep)); diff != "" {
		t.Error(diff)
	}
	if got := rep.Jobs[0].Reasons[0]; got.Code != "LAUNCH_REFUSED" || got.Message != "the target refused the job: invalid partition" {
		t.Errorf("reason is %+v", got)
	}
}

// Not being able to ask is no state: the driver says so, waits longer each time,
// and goes on.
func TestTargetThatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{unasked: 4, write: passing(t)}
		start := time.Now()
		rep, notices, _ := drive(t, &Driver{Run: newRun(t, target, 1, "a"), Target: target})
		if diff := cmp.Diff(map[string]string{"a": "PASS"}, words(rep)); diff != "" {
			t.Error(diff)
		}
		if len(notices) != 4 {
			t.Errorf("%d notices, want one a failure: %q", len(notices), notices)
		}
		if took := time.Since(start); took != (2+4+8+16)*time.Second {
			t.Errorf("waited %s, want 2+4+8+16 s", took)
		}
	})
}

func TestConcurrencyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{runs: 3, write: passing(t)}
		ids := []string{"a", "b", "c", "d", "e"}
		rep, _, _ := drive(t, &Driver{Run: newRun(t, target, 2, ids...), Target: target})
		if target.peak != 2 {
			t.Errorf("%d jobs at once, want 2", target.peak)
		}
		if diff := cmp.Diff(ids, target.submits); diff != "" {
			t.Error(diff)
		}
		if rep.Verdict != verdict.Pass {
			t.Errorf("verdict %s", rep.Verdict)
		}
	})
}

// A submission without an answer is resolved by asking for the job.
func TestSubmissionWithoutAnAnswer(t *testing.T) {
	for _, found := range []bool{true, false} {
		target := &scripted{found: map[string]bool{"a": found}, write: passing(t)}
		r := newRun(t, target, 1, "a")
		dir := r.AttemptDir("a", 1)
		if err := r.WriteLaunch(dir, rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}); err != nil {
			t.Fatal(err)
		}
		rep, _, _ := drive(t, &Driver{Run: r, Target: target})
		if rep.Verdict != verdict.Pass {
			t.Errorf("found %t: verdict %s", found, rep.Verdict)
		}
		if want := map[bool]int{true: 0, false: 1}[found]; len(target.submits) != want {
			t.Errorf("found %t: submitted %d times, want %d", found, len(target.submits), want)
		}
	}
}

// blind is a target that cannot find jobs.
type blind struct{ deploy.Target }

func TestSubmissionWithoutAnAnswerIsNeverRepeatedBlindly(t *testing.T) {
	target := &scripted{}
	r := newRun(t, target, 1, "a")
	if err := r.WriteLaunch(r.AttemptDir("a", 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}); err != nil {
		t.Fatal(err)
	}
	d := Driver{Run: r, Target: blind{target}}
	if _, err := d.Drive(t.Context()); err == nil || len(target.submits) != 0 {
		t.Errorf("error %v after %d submissions, want an error and none", err, len(target.submits))
	}
}

func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &scripted{runs: 1000, write: passing(t)}
		signals := make(chan os.Signal, 2)
		d := &Driver{Run: newRun(t, target, 1, "a", "b"), Target: target, Signals: signals}
		go func() {
			time.Sleep(10 * time.Second)
			signals <- syscall.SIGINT
		}()
		rep, _, o := drive(t, d)
		if o.Signal != syscall.SIGINT || o.Detached || o.Running != 0 {
			t.Errorf("outcome %+v", o)
		}
		// What was measured before the end stands; what never began is cancelled.
		if diff := cmp.Diff(map[string]string{"a": "PASS", "b": "ERROR"}, words(rep)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"a"}, target.cancels); diff != "" {
			t.Error(diff)
		}
	})
}

// A verdict is not replaced because evidence has gone; more evidence improves it.
func TestFinalVerdictAndWeakerEvidence(t *testing.T) {
	target := &scripted{write: passing(t)}
	r := newRun(t, target, 1, "a")
	d := &Driver{Run: r, Target: target}
	first, _, _ := drive(t, d)
	end := filepath.Join(rundir.RankDir(r.AttemptDir("a", 1), 0), rundir.EndFile)
	if err := os.Rename(end, end+".away"); err != nil {
		t.Fatal(err)
	}
	second, err := Finish(r, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("less evidence changed a final verdict:\n%s", diff)
	}

	// The other way round: lost at first, and the marker appears later.
	late := &scripted{}
	r = newRun(t, late, 1, "a")
	before, _, _ := drive(t, &Driver{Run: r, Target: late})
	if before.Verdict == verdict.Pass {
		t.Fatal("a rank without markers passed")
	}
	a, _, err := lastAttempt(r, r.Ledger.Jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	passing(t)(a)
	after, err := Finish(r, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if after.Verdict != verdict.Pass {
		t.Errorf("a marker that came late did not improve the verdict: %s", after.Verdict)
	}
}

func TestAmbiguousSubmissionThatIsNotFound(t *testing.T) {
	target := &scripted{submit: map[string]error{"a": fmt.Errorf("%w: socket timed out", deploy.ErrAmbiguous)}}
	rep, _, _ := drive(t, &Driver{Run: newRun(t, target, 1, "a"), Target: target})
	if rep.Verdict != verdict.Error || rep.Jobs[0].Reasons[0].Code != verdict.CodeLaunchUnknown || len(target.submits) != 0 {
		t.Errorf("verdict %s, reasons %+v, %d submissions", rep.Verdict, rep.Jobs[0].Reasons, len(target.submits))
	}
}

func TestOpenByName(t *testing.T) {
	target := &scripted{}
	r := newRun(t, target, 1, "a")
	runs := filepath.Dir(r.Dir)
	for _, name := range []string{r.Dir, r.Ledger.RunID, r.Ledger.RunID[:12], "latest"} {
		got, err := Open(runs, name)
		if err != nil || got.Dir != r.Dir {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "nothing", "no/such/dir"} {
		if _, err := Open(runs, name); err == nil {
			t.Errorf("%q was found", name)
		}
	}
	if _, err := Open(filepath.Join(runs, "none"), "latest"); !errors.Is(err, fs.ErrNotExist) || exitcode.Of(err) != exitcode.Invalid {
		t.Errorf("no runs directory: %v", err)
	}
}

// A job whose submission had no answer is found before it is cancelled.
func TestCancelFindsWhatWasSubmitted(t *testing.T) {
	target := &scripted{found: map[string]bool{"a": true}}
	r := newRun(t, target, 1, "a", "b")
	if err := r.WriteLaunch(r.AttemptDir("a", 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}); err != nil {
		t.Fatal(err)
	}
	if n, err := Cancel(t.Context(), r, target, evidence.Cancel{By: "test"}, false); n != 0 || err != nil {
		t.Errorf("beside a driver: %d jobs, %v; the driver settles it", n, err)
	}
	n, err := Cancel(t.Context(), r, target, evidence.Cancel{By: "test"}, true)
	if err != nil || n != 1 {
		t.Errorf("%d jobs, %v; want 1", n, err)
	}
	if diff := cmp.Diff([]string{"a"}, target.cancels); diff != "" {
		t.Error(diff)
	}
}

// racing is a target during whose submission somebody else cancels the run.
type racing struct {
	*scripted
	run *rundir.Run
}

func (r *racing) Submit(ctx context.Context, a plan.Attempt) (deploy.Handle, error) {
	if err := r.run.WriteCancel(evidence.Cancel{By: "somebody"}); err != nil {
		return deploy.Handle{}, err
	}
	return r.scripted.Submit(ctx, a)
}

func TestCancelDuringSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := &racing{scripted: &scripted{runs: 1000}}
		target.run = newRun(t, target, 1, "a", "b")
		rep, _, _ := drive(t, &Driver{Run: target.run, Target: target})
		if diff := cmp.Diff([]string{"a"}, target.cancels); diff != "" {
			t.Error(diff)
		}
		if got := rep.Jobs[1].Reasons[0].Code; got != verdict.CodeCancelled {
			t.Errorf("the other job: %s", got)
		}
	})
}

// halved is a target that finds only a part of a job.
type halved struct{ *scripted }

func (h halved) Find(_ context.Context, a plan.Attempt) (deploy.Handle, bool, error) {
	return h.handle(a), true, fmt.Errorf("%w: 1 of 2 ranks", deploy.ErrIncomplete)
}

func TestHalfASubmissionIsStopped(t *testing.T) {
	target := halved{&scripted{}}
	r := newRun(t, target, 1, "a")
	if err := r.WriteLaunch(r.AttemptDir("a", 1), rundir.LaunchRecord{Launch: evidence.Launch{State: evidence.LaunchIntent}}); err != nil {
		t.Fatal(err)
	}
	rep, _, _ := drive(t, &Driver{Run: r, Target: target})
	if diff := cmp.Diff([]string{"a"}, target.cancels); diff != "" {
		t.Error(diff)
	}
	if rep.Verdict != verdict.Error || rep.Jobs[0].Reasons[0].Code != verdict.CodeLaunchRefused {
		t.Errorf("verdict %s, reasons %+v", rep.Verdict, rep.Jobs[0].Reasons)
	}
}

// An ambiguous answer is resolved by asking, and nothing is submitted twice.
func TestAmbiguousSubmission(t *testing.T) {
	target := &scripted{submit: map[string]error{"a": fmt.Errorf("%w: socket timed out", deploy.ErrAmbiguous)}, found: map[string]bool{"a": true}, write: passing(t)}
	rep, notices, _ := drive(t, &Driver{Run: newRun(t, target, 1, "a"), Target: target})
	if rep.Verdict != verdict.Pass || len(target.submits) != 0 || len(notices) != 1 {
		t.Errorf("verdict %s, %d submissions, notices %q", rep.Verdict, len(target.submits), notices)
	}
}

func quiet(string) {}

package run

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/deploy"
	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/manifest"
	"assay/pkg/plan"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// played is a target whose jobs end at once with what their exits say, one an attempt,
// and that notes what ran beside what.
type played struct {
	t       *testing.T
	exits   map[string][]int // by job: the exit code of each attempt; more attempts: the last
	seconds float64          // that each rank ran
	keep    int              // observations before a job ends
	asked   map[string]int
	running map[string]plan.Attempt
	log     []string // "start job", "end job"
	peak    int      // of nodes under load
	clash   string   // a node with two jobs
	kill    string   // the context ends when this job has ended
	cancel  context.CancelFunc
}

func (p *played) Name() string { return "played" }

func (p *played) Render(a plan.Attempt) ([]deploy.File, error) {
	data, err := json.Marshal(a)
	return []deploy.File{{Name: rundir.JobFile, Mode: 0o600, Data: data}}, err
}

func (p *played) Submit(_ context.Context, a plan.Attempt) (deploy.Handle, error) {
	if p.running == nil {
		p.running, p.asked = map[string]plan.Attempt{}, map[string]int{}
	}
	p.running[a.Job.ID] = a
	p.log = append(p.log, fmt.Sprintf("%s/%d", a.Job.ID, a.Number))
	load, busy := 0, map[string]bool{}
	for _, r := range p.running {
		load += r.Job.Cost()
		for _, n := range r.Job.Nodes {
			if busy[n] {
				p.clash = n
			}
			busy[n] = true
		}
	}
	p.peak = max(p.peak, load)
	return deploy.Handle{Target: "played", ID: a.Job.ID}, nil
}

func (p *played) Observe(_ context.Context, hs []deploy.Handle) ([]evidence.Observation, error) {
	out := make([]evidence.Observation, len(hs))
	for i, h := range hs {
		out[i] = evidence.Observation{Source: "played", Phase: evidence.PhaseRunning, Word: "RUNNING", At: time.Unix(1, 0)}
		if p.asked[h.ID]++; p.asked[h.ID] <= p.keep {
			continue
		}
		p.asked[h.ID] = 0
		a := p.running[h.ID]
		delete(p.running, h.ID)
		p.leave(a)
		out[i].Phase, out[i].Word = evidence.PhaseEnded, "ENDED"
		if h.ID == p.kill {
			p.cancel()
		}
	}
	return out, nil
}

func (p *played) leave(a plan.Attempt) {
	codes := p.exits[a.Job.ID]
	code := 0
	if len(codes) > 0 {
		code = codes[min(a.Number, len(codes))-1]
	}
	end := evidence.End{Version: 1, Identity: a.Identity(0), Node: "n", Outcome: evidence.OutcomeExited, ExitCode: code, ElapsedSeconds: p.seconds}
	writeFile(p.t, filepath.Join(rundir.RankDir(a.Dir, 0), rundir.EndFile), end)
}

func (p *played) Wait(context.Context, []deploy.Handle) error { return nil }

func (p *played) Cancel(context.Context, deploy.Handle) error { return nil }

// jobOf is a job of one rank under the acceptance contract.
func jobOf(key string, change func(*plan.Job)) plan.Job {
	j := plan.Job{
		Key: key, ID: key, Model: key, Test: key, WorldSize: 1, NNodes: 1, RanksPerNode: 1,
		Program: plan.Program{Command: []string{"true"}}, Expect: verdict.Expectation{WorldSize: 1, Contract: "acceptance"},
	}
	if change != nil {
		change(&j)
	}
	return j
}

// suiteRun makes a run of jobs below a directory.
func suiteRun(t *testing.T, target deploy.Target, runs string, in Input, jobs ...plan.Job) (*rundir.Run, error) {
	t.Helper()
	in.ManifestPath, in.Manifest = "m.json", []byte(`{"built_images": {}, "built_models": {}, "context": {}}`)
	p := &Prepared{Input: in, Jobs: jobs, Suite: &manifest.Suite{Name: "s", MaxNodes: in.MaxNodes}}
	return p.Create(t.Context(), Settings{Runs: runs, Concurrency: len(jobs), Now: time.Unix(0, 0), RunID: t.Name()[strings.LastIndex(t.Name(), "/")+1:]}, target)
}

func playOut(t *testing.T, target *played, r *rundir.Run) report.Run {
	t.Helper()
	if _, err := (&Driver{Run: r, Target: target}).Drive(t.Context()); err != nil {
		t.Fatal(err)
	}
	rep, err := Finish(r, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	if target.clash != "" {
		t.Errorf("node %s had two jobs at the same time", target.clash)
	}
	return rep
}

func summary(rep report.Run) string {
	var out []string
	for _, j := range rep.Jobs {
		out = append(out, fmt.Sprintf("%s %s", j.ID, j.Verdict))
	}
	return rep.Verdict.String() + ": " + strings.Join(out, ", ")
}

func policy(p verdict.Policy) func(*plan.Job) { return func(j *plan.Job) { j.Policy = p } }

func TestAttempts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy verdict.Policy
		exits  []int
		want   verdict.Word
		log    int // attempts that were made
	}{
		{"pass", verdict.Policy{Retries: 3}, []int{0}, verdict.Pass, 1},
		{"error then pass", verdict.Policy{Retries: 1}, []int{3, 0}, verdict.Pass, 2},
		{"error until the end", verdict.Policy{Retries: 2}, []int{3}, verdict.Error, 3},
		{"fail is not retried", verdict.Policy{Retries: 5, Repeats: 5}, []int{1, 0}, verdict.Fail, 1},
		{"repeats", verdict.Policy{Repeats: 3}, []int{0}, verdict.Pass, 3},
		{"a repeat fails", verdict.Policy{Repeats: 4}, []int{0, 0, 1}, verdict.Fail, 3},
		{"duration", verdict.Policy{DurationSeconds: 35}, []int{0}, verdict.Pass, 4},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			target := &played{t: t, exits: map[string][]int{"a": tt.exits}, seconds: 10}
			r, err := suiteRun(t, target, t.TempDir(), Input{}, jobOf("a", policy(tt.policy)))
			if err != nil {
				t.Fatal(err)
			}
			rep := playOut(t, target, r)
			if rep.Jobs[0].Verdict != tt.want || len(target.log) != tt.log {
				t.Errorf("%s after %v, want %s after %d attempts", summary(rep), target.log, tt.want, tt.log)
			}
			if h := rep.Jobs[0].History; tt.log > 1 && len(h) != tt.log {
				t.Errorf("the history has %d attempts, want %d", len(h), tt.log)
			}
			if again := Judge(r); cmp.Diff(rep, again) != "" {
				t.Errorf("judged again:\n%s", cmp.Diff(rep, again))
			}
		})
	}
}

func TestStagesAndInterlock(t *testing.T) {
	on := func(stage int, nodes ...string) func(*plan.Job) {
		return func(j *plan.Job) {
			j.Stage, j.Nodes = stage, nodes
			j.ID = j.Key + "." + strings.Join(nodes, ".")
		}
	}
	jobs := []plan.Job{
		jobOf("first", on(0, "a")), jobOf("first", on(0, "b")), jobOf("first", on(0, "c")),
		jobOf("pair", on(1, "a", "b")), jobOf("pair", on(2, "b", "c")), jobOf("last", on(3, "a")),
	}
	for limit, peak := range map[manifest.NodeLimit]int{2: 2, 3: 3, manifest.AllNodes: 3} {
		target := &played{t: t, keep: 2}
		r, err := suiteRun(t, target, t.TempDir(), Input{MaxNodes: limit}, jobs...)
		if err != nil {
			t.Fatal(err)
		}
		rep := playOut(t, target, r)
		want := []string{"first.a/1", "first.b/1", "first.c/1", "pair.a.b/1", "pair.b.c/1", "last.a/1"}
		if d := cmp.Diff(want, target.log); d != "" || rep.Verdict != verdict.Pass || target.peak != peak {
			t.Errorf("limit %d: %s, peak %d (want %d)\n%s", limit, summary(rep), target.peak, peak, d)
		}
	}
}

func TestStopOnFail(t *testing.T) {
	staged := func(n int, stop bool) func(*plan.Job) {
		return func(j *plan.Job) { j.Stage, j.StopOnFail = n, stop }
	}
	for _, tt := range []struct {
		name string
		exit int
		jobs []plan.Job
		want string
	}{
		{"fails", 1, []plan.Job{jobOf("a", staged(0, true)), jobOf("b", staged(1, true)), jobOf("c", staged(2, true))}, "FAIL: a FAIL, b ERROR, c ERROR"},
		{"error", 3, []plan.Job{jobOf("a", staged(0, true)), jobOf("b", staged(1, true))}, "ERROR: a ERROR, b PASS"},
		{"not asked for", 1, []plan.Job{jobOf("a", staged(0, false)), jobOf("b", staged(1, false))}, "FAIL: a FAIL, b PASS"},
		{"optional", 1, []plan.Job{jobOf("a", func(j *plan.Job) { j.StopOnFail, j.Optional = true, true }), jobOf("b", staged(1, true))}, "PASS: a FAIL, b PASS"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			target := &played{t: t, exits: map[string][]int{"a": {tt.exit}}}
			r, err := suiteRun(t, target, t.TempDir(), Input{}, tt.jobs...)
			if err != nil {
				t.Fatal(err)
			}
			rep := playOut(t, target, r)
			if summary(rep) != tt.want {
				t.Errorf("%s, want %s", summary(rep), tt.want)
			}
			if tt.name == "fails" && (rep.Jobs[1].Reasons[0].Code != verdict.CodeNotRun || !strings.Contains(rep.Jobs[1].Reasons[0].Message, "test a failed before it")) {
				t.Errorf("reasons %+v", rep.Jobs[1].Reasons)
			}
		})
	}
}

// A driver that is gone between two jobs keeps what it learned, and the next one runs
// what is missing.
func TestResumeAfterAKill(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	target := &played{t: t, kill: "b", cancel: cancel, exits: map[string][]int{"b": {3, 0}}}
	jobs := []plan.Job{
		jobOf("a", nil), jobOf("b", func(j *plan.Job) { j.Stage, j.Policy.Retries = 1, 1 }), jobOf("c", func(j *plan.Job) { j.Stage = 2 }),
	}
	r, err := suiteRun(t, target, t.TempDir(), Input{}, jobs...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Driver{Run: r, Target: target}).Drive(ctx); err == nil {
		t.Fatal("the driver was not interrupted")
	}
	if got := summary(Judge(r)); got != "PENDING: a PASS, b PENDING, c PENDING" {
		t.Fatal(got)
	}
	rep := playOut(t, target, r)
	if d := cmp.Diff([]string{"a/1", "b/1", "b/2", "c/1"}, target.log); d != "" || rep.Verdict != verdict.Pass {
		t.Errorf("%s\n%s", summary(rep), d)
	}
}

// What could not be judged is run when a person asks for that; what has its verdict
// keeps it.
func TestResumeRunsWhatWasNotJudged(t *testing.T) {
	target := &played{t: t, exits: map[string][]int{"a": {1}, "b": {3, 0}, "c": {3, 0}}}
	r := mustRun(t, target, Input{}, jobOf("a", nil), jobOf("b", func(j *plan.Job) { j.Stage = 1 }), jobOf("c", func(j *plan.Job) { j.Stage = 2 }))
	rep := playOut(t, target, r)
	if got := summary(rep); got != "FAIL: a FAIL, b ERROR, c ERROR" {
		t.Fatal(got)
	}
	before := rep.Jobs[0]
	jobs, err := Resume(t.Context(), r, target, false)
	if jobs != 2 || err != nil {
		t.Fatal(jobs, err)
	}
	rep = playOut(t, target, r)
	if got := summary(rep); got != "FAIL: a FAIL, b PASS, c PASS" || rep.Jobs[2].History[1].Trigger != verdict.TriggerResume {
		t.Errorf("%s: %+v", got, rep.Jobs[2].History)
	}
	if d := cmp.Diff(before, rep.Jobs[0]); d != "" {
		t.Errorf("what was judged changed:\n%s", d)
	}
	if d := cmp.Diff([]string{"a/1", "b/1", "c/1", "b/2", "c/2"}, target.log); d != "" {
		t.Error(d)
	}
	if again := Judge(r); cmp.Diff(rep, again) != "" {
		t.Errorf("judged again:\n%s", cmp.Diff(rep, again))
	}
}

func TestRunsNeverShareANode(t *testing.T) {
	runs := t.TempDir()
	target := &played{t: t}
	first, err := suiteRun(t, target, runs, Input{Nodes: []string{"a", "b"}}, jobOf("x", func(j *plan.Job) { j.Nodes = []string{"a"} }))
	if err != nil {
		t.Fatal(err)
	}
	second := func(name string, nodes []string, force bool) (*rundir.Run, error) {
		p := &Prepared{Input: Input{ManifestPath: "m.json", Manifest: []byte(`{}`), Nodes: nodes}, Jobs: []plan.Job{jobOf("x", nil)}}
		return p.Create(t.Context(), Settings{Runs: runs, Concurrency: 1, RunID: name, Force: force, Now: time.Unix(0, 0)}, target)
	}
	_, err = second("second", []string{"b", "c"}, false)
	if exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), "run TestRunsNeverShareANode uses b; wait for it") {
		t.Errorf("an overlap: %v", err)
	}
	if _, err := second("third", []string{"c"}, false); err != nil {
		t.Errorf("other nodes: %v", err)
	}
	forced, err := second("fourth", []string{"b"}, true)
	if err != nil || !slices.Equal(forced.Ledger.Forced, []string{first.Dir}) {
		t.Errorf("forced: %v", err)
	}
	if _, err := second("fourth", []string{"b"}, true); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("the same run: %v", err)
	}
	playOut(t, target, first)
	playOut(t, target, forced)
	if _, err := second("fifth", []string{"a", "b"}, false); err != nil {
		t.Errorf("after their end: %v", err)
	}
}

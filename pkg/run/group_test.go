package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/evidence"
	"assay/pkg/exitcode"
	"assay/pkg/isolate"
	"assay/pkg/manifest"
	"assay/pkg/report"
	"assay/pkg/rundir"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

// groupManifest has a group that says in every possible place how large it is.
const groupManifest = `{
  "built_images": {"g": {"docker_image": ""}, "other": {}},
  "built_models": {
    "other": {"name": "other", "command": ["true"], "scope": "node"},
    "g": {"name": "allreduce", "command": ["true"], "scope": "group", "retries": 2, "repeats": 3, "x": 1,
          "distributed": {"nnodes": 4, "nproc_per_node": 2, "launcher": "none"}, "slurm": {"nodes": 4, "nodelist": "n[1-4]", "partition": "p"},
          "thresholds": [{"metric": "busbwGBs", "min": 80}, {"metric": "latencyUs", "max": 9}]}},
  "context": {},
  "deployment_config": {"target": "local"},
  "suite": {"name": "s", "max_concurrent_nodes": "all", "tests": [{"key": "g", "name": "reduce", "duration": 30}, {"key": "other"}]}}`

func madeGroup(t *testing.T) *Group {
	t.Helper()
	p, err := Prepare(t.Context(), Input{ManifestPath: "/m/m.json", Manifest: []byte(groupManifest), Nodes: []string{"n1", "n2", "n3", "n4"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Create(t.Context(), Settings{Runs: t.TempDir(), RunID: "r", Now: time.Unix(0, 0)}, &played{t: t})
	if err != nil {
		t.Fatal(err)
	}
	rep := report.Run{RunID: "r", Jobs: []report.Job{{ID: "g", Key: "g", Test: "reduce", Scope: "group", Verdict: verdict.Fail}}}
	g, err := FindGroup(r, rep, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGroupOnSomeOfItsNodes(t *testing.T) {
	g := madeGroup(t)
	if d := cmp.Diff([]string{"n1", "n2", "n3", "n4"}, g.Nodes); d != "" || g.Metric != "busbwGBs" || g.Name() != "reduce" {
		t.Errorf("%s, metric %s, nodes (-want +got):\n%s", g.Name(), g.Metric, d)
	}
	least := 120.0
	g.Bound(threshold.Threshold{Metric: "busbwGBs", Min: &least})
	p, err := g.Prepare(t.Context(), nil, []string{"n2", "n4"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Jobs) != 1 {
		t.Fatalf("%d jobs", len(p.Jobs))
	}
	j := p.Jobs[0]
	if j.Scope != "group" || j.NNodes != 2 || j.WorldSize != 4 || cmp.Diff([]string{"n2", "n4"}, j.Nodes) != "" || j.Test != "reduce" {
		t.Errorf("job %+v", j)
	}
	if j.Policy != (verdict.Policy{Repeats: 3, DurationSeconds: 30}) || j.ModelDir != "/m" || j.TimeoutSeconds != 7200 {
		t.Errorf("policy %+v, model dir %s, timeout %d", j.Policy, j.ModelDir, j.TimeoutSeconds)
	}
	if gates := j.Expect.Thresholds; len(gates) != 2 || gates[0].Metric != "latencyUs" || *gates[1].Min != 120 {
		t.Errorf("thresholds %+v", gates)
	}
	var doc struct {
		Models map[string]map[string]json.RawMessage `json:"built_models"`
	}
	if err := json.Unmarshal(p.Manifest, &doc); err != nil {
		t.Fatal(err)
	}
	if got := string(doc.Models["g"]["slurm"]); len(doc.Models) != 1 || strings.Contains(got, "n[1-4]") || !strings.Contains(got, `"p"`) || string(doc.Models["g"]["x"]) != "1" {
		t.Errorf("models %s", doc.Models)
	}
	seconds := 5
	if p, err = g.Prepare(t.Context(), nil, g.Nodes, &seconds); err != nil || p.Jobs[0].TimeoutSeconds != 5 {
		t.Errorf("%v, %+v", err, p)
	}
	if m, err := manifest.Decode(g.data); err != nil || len(m.Models) != 2 {
		t.Errorf("the manifest of the run was changed: %v", err)
	}
}

func TestFindGroup(t *testing.T) {
	job := func(id, scope string, w verdict.Word) report.Job {
		return report.Job{ID: id, Key: id, Scope: scope, Verdict: w}
	}
	for _, tt := range []struct {
		name    string
		jobs    []report.Job
		job     string
		bounded bool
		want    string // job, or "error: …"
	}{
		{"the one that failed", []report.Job{job("a", "group", verdict.Pass), job("b", "group", verdict.Error)}, "", false, "b"},
		{"it is named", []report.Job{job("a", "group", verdict.Fail), job("b", "group", verdict.Fail)}, "b", false, "b"},
		{"slow", []report.Job{job("a", "group", verdict.Pass)}, "", true, "a"},
		{"several", []report.Job{job("a", "group", verdict.Fail), job("b", "group", verdict.Error)}, "", false, "error: run r: 2 groups failed (a FAIL, b ERROR); say which with --job"},
		{"passed", []report.Job{job("a", "group", verdict.Pass)}, "", false, "error: run r: no group failed (a PASS); for one that is slow say what is too slow: --metric NAME with --min or --max"},
		{"several slow", []report.Job{job("a", "group", verdict.Pass), job("b", "group", verdict.Skip)}, "", true, "error: run r: it has 2 groups (a PASS, b SKIP); say which with --job"},
		{"no group", []report.Job{job("a", "pair", verdict.Fail)}, "", false, "error: run r: no job is of scope group, and only the nodes of a group can be told apart by running parts of it"},
		{"a pair is named", []report.Job{job("a", "pair", verdict.Fail)}, "a", false, "error: run r: job a is of scope pair: only the nodes of a group can be told apart by running parts of it"},
		{"no such job", []report.Job{job("a", "group", verdict.Fail)}, "z", false, `error: run r: there is no job "z"`},
	} {
		got, err := chooseGroup(report.Run{RunID: "r", Jobs: tt.jobs}, tt.job, tt.bounded)
		text := got.ID
		if err != nil {
			text = "error: run r: " + err.Error()
		}
		if text != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, text, tt.want)
		}
	}
	if _, err := FindGroup(nil, report.Run{}, "", false); exitcode.Of(err) != exitcode.Invalid {
		t.Errorf("%v has exit code %d", err, exitcode.Of(err))
	}
}

func TestAnswer(t *testing.T) {
	one, zero, refused := 1, 0, 6
	exited := report.Rank{State: evidence.RankEnded, ExitCode: &one}
	lost := report.Rank{State: evidence.RankLost}
	for _, tt := range []struct {
		name    string
		word    verdict.Word
		reasons []string
		state   string // the target's word
		rank    report.Rank
		want    isolate.Answer
	}{
		{"pass", verdict.Pass, nil, "", report.Rank{}, isolate.Good},
		{"fail", verdict.Fail, nil, "", report.Rank{}, isolate.Bad},
		{"exit under the benchmark contract", verdict.Fail, []string{verdict.CodeRankExit}, "FAILED", exited, isolate.Bad},
		{"node fail under the benchmark contract", verdict.Fail, []string{verdict.CodeRankLost, verdict.CodeSchedState}, "NODE_FAIL", lost, isolate.Unknown},
		{"slow, and then node fail", verdict.Fail, []string{verdict.CodeThreshold, verdict.CodeSchedState}, "NODE_FAIL", lost, isolate.Bad},
		{"exit", verdict.Error, []string{verdict.CodeRankExit}, "", exited, isolate.Suspect},
		{"signal", verdict.Error, nil, "", report.Rank{State: evidence.RankEnded, ExitCode: &zero, Signal: "SIGKILL"}, isolate.Suspect},
		{"lost", verdict.Error, []string{verdict.CodeRankLost}, "", lost, isolate.Suspect},
		{"hangs", verdict.Error, nil, "", report.Rank{State: evidence.RankRunning}, isolate.Suspect},
		{"exit that SLURM repeats", verdict.Error, []string{verdict.CodeRankExit, verdict.CodeSchedState}, "FAILED", exited, isolate.Suspect},
		{"hangs past the limit of SLURM", verdict.Error, []string{verdict.CodeRankLost, verdict.CodeSchedState}, "TIMEOUT", lost, isolate.Suspect},
		{"ended well, and said nothing", verdict.Error, nil, "", report.Rank{State: evidence.RankEnded, ExitCode: &zero}, isolate.Unknown},
		{"not launched", verdict.Error, []string{verdict.CodeLaunchRefused}, "", report.Rank{State: evidence.RankNotStarted}, isolate.Unknown},
		{"refused by a node", verdict.Error, []string{verdict.CodeRankSignal, verdict.CodeLaunchRefused}, "", report.Rank{State: evidence.RankEnded, ExitCode: &refused}, isolate.Unknown},
		{"no image", verdict.Error, []string{verdict.CodeImage}, "", exited, isolate.Unknown},
		{"env_file", verdict.Error, []string{verdict.CodeEnvFile}, "", exited, isolate.Unknown},
		{"module", verdict.Error, []string{verdict.CodeModule}, "", exited, isolate.Unknown},
		{"pre-script", verdict.Error, []string{verdict.CodePreScript}, "", exited, isolate.Unknown},
		{"post-script", verdict.Error, []string{verdict.CodeRankExit, verdict.CodePostScript}, "", exited, isolate.Suspect},
		{"the root ended", verdict.Error, []string{verdict.CodeRootEnded}, "", exited, isolate.Unknown},
		{"the root was not ready", verdict.Error, []string{verdict.CodeRootNotReady}, "", exited, isolate.Unknown},
		{"a bug", verdict.Error, []string{verdict.CodeInternal}, "", exited, isolate.Unknown},
		{"node fail", verdict.Error, []string{verdict.CodeRankLost, verdict.CodeSchedState}, "NODE_FAIL", lost, isolate.Unknown},
		{"preempted", verdict.Error, []string{verdict.CodeRankSignal, verdict.CodeSchedState}, "PREEMPTED by somebody", exited, isolate.Unknown},
		{"out of memory", verdict.Error, []string{verdict.CodeRankSignal, verdict.CodeSchedState}, "OUT_OF_MEMORY", exited, isolate.Unknown},
		{"evicted", verdict.Error, []string{verdict.CodeRankSignal, verdict.CodeSchedState}, "Evicted", exited, isolate.Unknown},
		{"cancelled", verdict.Error, []string{verdict.CodeCancelled}, "", exited, isolate.Unknown},
		{"skip", verdict.Skip, nil, "", report.Rank{}, isolate.Unknown},
		{"no metric", verdict.NoMetric, nil, "", report.Rank{State: evidence.RankEnded, ExitCode: &zero}, isolate.Unknown},
	} {
		j := report.Job{Verdict: tt.word, Ranks: []report.Rank{{State: evidence.RankEnded, ExitCode: &zero}, tt.rank}}
		if tt.state != "" {
			j.Scheduler = &report.Scheduler{State: tt.state}
		}
		for _, c := range tt.reasons {
			j.Reasons = append(j.Reasons, verdict.Reason{Code: c})
			if c == verdict.CodeThreshold {
				j.Violations = append(j.Violations, threshold.Violation{Cause: threshold.CauseMeasurement})
			}
		}
		if got := Answer(j); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A manifest that was changed in the run directory is not what failed.
func TestGroupOfAChangedManifest(t *testing.T) {
	p, err := Prepare(t.Context(), Input{ManifestPath: "/m/m.json", Manifest: []byte(groupManifest), Nodes: []string{"n1", "n2", "n3", "n4"}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Create(t.Context(), Settings{Runs: t.TempDir(), RunID: "r", Now: time.Unix(0, 0)}, &played{t: t})
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(groupManifest, `["true"]`, `["false"]`, 2)
	if err := os.WriteFile(filepath.Join(r.Dir, rundir.ManifestFile), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	rep := report.Run{RunID: "r", Jobs: []report.Job{{ID: "g", Key: "g", Scope: "group", Verdict: verdict.Fail}}}
	if _, err := FindGroup(r, rep, "", false); exitcode.Of(err) != exitcode.Error || !strings.Contains(err.Error(), "manifest.json is not what run r was made of") {
		t.Errorf("it says %v", err)
	}
}

package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/manifest"
	"assay/pkg/plan"
)

// suiteOf is a manifest of tests of each scope, with more text in the suite and in the
// entries.
func suiteOf(t *testing.T, suite, entry string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Decode(fmt.Appendf(nil, `{
	"built_images": {"node": {}, "pair": {}, "group": {}},
	"built_models": {
		"group": {"name": "g", "command": ["true"], "scope": "group"},
		"pair":  {"name": "p", "command": ["true"], "scope": "pair"%s},
		"node":  {"name": "n", "command": ["true"], "scope": "node"}},
	"context": {},
	"suite": {"name": "s", "tests": [{"key": "node", "name": "first"}, {"key": "pair"}, {"key": "group"}]%s}}`, entry, suite))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func describe(jobs []plan.Job) []string {
	var out []string
	for _, j := range jobs {
		out = append(out, fmt.Sprintf("%s stage %d round %d on %s: %d ranks", j.ID, j.Stage, j.Round, strings.Join(j.Nodes, "+"), j.WorldSize))
	}
	return out
}

func TestUnits(t *testing.T) {
	all := `, "max_concurrent_nodes": "all"`
	for _, tt := range []struct {
		name         string
		suite, entry string
		opt          plan.Options
		want         []string
	}{
		{"two nodes", all, "", plan.Options{Nodes: []string{"a", "b"}}, []string{
			"node.a stage 0 round 0 on a: 1 ranks", "node.b stage 0 round 0 on b: 1 ranks",
			"pair stage 1 round 0 on a+b: 2 ranks", "group stage 2 round 0 on a+b: 2 ranks",
		}},
		{"all pairs of four", all, "", plan.Options{Nodes: []string{"a", "b", "c", "d"}, Pairs: "all"}, []string{
			"node.a stage 0 round 0 on a: 1 ranks", "node.b stage 0 round 0 on b: 1 ranks", "node.c stage 0 round 0 on c: 1 ranks", "node.d stage 0 round 0 on d: 1 ranks",
			"pair.a.d stage 1 round 1 on a+d: 2 ranks", "pair.b.c stage 1 round 1 on b+c: 2 ranks",
			"pair.b.d stage 2 round 2 on b+d: 2 ranks", "pair.a.c stage 2 round 2 on a+c: 2 ranks",
			"pair.c.d stage 3 round 3 on c+d: 2 ranks", "pair.a.b stage 3 round 3 on a+b: 2 ranks",
			"group stage 4 round 0 on a+b+c+d: 4 ranks",
		}},
		{"pairs of the suite", all + `, "pairs": "a:b"`, "", plan.Options{Nodes: []string{"a", "b", "c"}}, []string{
			"node.a stage 0 round 0 on a: 1 ranks", "node.b stage 0 round 0 on b: 1 ranks", "node.c stage 0 round 0 on c: 1 ranks",
			"pair stage 1 round 1 on a+b: 2 ranks", "group stage 2 round 0 on a+b+c: 3 ranks",
		}},
	} {
		tt.opt.ManifestDir = "/m"
		jobs, _, err := plan.Jobs(suiteOf(t, tt.suite, tt.entry), tt.opt)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if d := cmp.Diff(tt.want, describe(jobs)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestUnitsRefused(t *testing.T) {
	abc := []string{"a", "b", "c"}
	for _, tt := range []struct {
		name         string
		suite, entry string
		opt          plan.Options
		want         string
	}{
		{"pair of three", `, "max_concurrent_nodes": 9`, "", plan.Options{Nodes: abc}, "scope pair is about 2 nodes, and --nodes names 3 (a,b,c); say which pairs"},
		{"pair of one", `, "max_concurrent_nodes": 9`, "", plan.Options{Nodes: []string{"a"}}, "scope pair needs at least 2 nodes, and --nodes names 1 (a)"},
		{"group of one", `, "max_concurrent_nodes": 9`, "", plan.Options{Nodes: []string{"a"}}, "scope group needs at least 2 nodes, and --nodes names 1 (a)"},
		{"interlock of pair", "", "", plan.Options{Nodes: []string{"a", "b"}}, "test pair puts 2 nodes under load at the same time, and at most 1 may be"},
		{"interlock of group", `, "max_concurrent_nodes": 2, "pairs": "ring"`, "", plan.Options{Nodes: abc}, "test group puts 3 nodes under load at the same time, and at most 2 may be (max_concurrent_nodes); raise it with --max-concurrent-nodes 3"},
		{"another number", `, "max_concurrent_nodes": 9`, `, "distributed": {"nnodes": 3}`, plan.Options{Nodes: []string{"a", "b"}}, "/built_models/pair/distributed/nnodes: the model wants 3 nodes, and scope pair over --nodes a,b has 2"},
		{"pair of several ranks a node", `, "max_concurrent_nodes": 9`, `, "distributed": {"nproc_per_node": 2}`, plan.Options{Nodes: []string{"a", "b"}}, "/built_models/pair/scope: scope pair has one rank on each of its 2 nodes, and this model has 2 ranks a node; use scope group, or start the processes in the script"},
		{"no time to linger", `, "max_concurrent_nodes": 9`, `, "linger": 0`, plan.Options{Nodes: []string{"a", "b"}}, "/built_models/pair/linger: 0 is no number of seconds from 1 to 3153600000"},
		{"unknown pair", `, "max_concurrent_nodes": 9`, "", plan.Options{Nodes: abc, Pairs: "a:z"}, `--pairs: the pair a:z names the node "z"`},
		{"bad pairs of the suite", `, "max_concurrent_nodes": 9, "pairs": "some"`, "", plan.Options{Nodes: abc}, `/suite/pairs: "some" is no choice of pairs`},
		{"node twice", `, "max_concurrent_nodes": 9`, "", plan.Options{Nodes: []string{"a", "a"}}, "--nodes: node a is named twice"},
		{"without nodes", `, "max_concurrent_nodes": 9`, "", plan.Options{}, "scope group needs at least 2 nodes, and this model has 1"},
		{"bad readiness", `, "max_concurrent_nodes": 9`, `, "ready": "line:("`, plan.Options{Nodes: []string{"a", "b"}}, "/built_models/pair/ready: \"line:(\" has no valid regular expression"},
	} {
		tt.opt.ManifestDir = "/m"
		_, _, err := plan.Jobs(suiteOf(t, tt.suite, tt.entry), tt.opt)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v\nwant %s", tt.name, err, tt.want)
		}
	}
}

// A threshold that nothing satisfies is refused before a node is touched, wherever it
// stands; a baseline has none.
func TestMalformedThresholds(t *testing.T) {
	file := `, "max_concurrent_nodes": 9, "thresholds": {"file": "t.yaml", "digest": "sha256:1", "hardware": {"*": {"pair": [{"metric": "y", "min": 1}, {"metric": "z"}]}}}`
	own := `, "thresholds": [{"metric": "x", "min": 1}, {"metric": "x", "min": 3, "max": 1}]`
	opt := plan.Options{ManifestDir: "/m", Nodes: []string{"a", "b"}}
	_, _, err := plan.Jobs(suiteOf(t, file, own), opt)
	for _, want := range []string{
		"t.yaml: hardware *, test pair, threshold 2: the threshold cannot be satisfied: it has no bound",
		"/built_models/pair/thresholds/1: the threshold cannot be satisfied: min 3 is greater than max 1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	opt.Baseline = true
	if _, _, err := plan.Jobs(suiteOf(t, file, own), opt); err != nil {
		t.Error(err)
	}
}

func TestThresholdsByHardware(t *testing.T) {
	file := `, "max_concurrent_nodes": 9, "thresholds": {"file": "t.yaml", "digest": "sha256:1", "hardware": {
		"h100": {"first": [{"metric": "x", "min": 5}]}, "*": {"pair": [{"metric": "y", "max": 3}]}}}`
	opt := plan.Options{ManifestDir: "/m", Nodes: []string{"a", "b"}, Hardware: "h100"}
	jobs, _, err := plan.Jobs(suiteOf(t, file, ""), opt)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, j := range jobs {
		if len(j.Expect.Thresholds) > 0 {
			got[j.Test] = j.Expect.Thresholds[0].Metric + " of " + j.Gates.Hardware + " in " + j.Gates.File
		}
	}
	if d := cmp.Diff(map[string]string{"first": "x of h100 in t.yaml", "pair": "y of * in t.yaml"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for want, text := range map[string]string{
		`"tests": [{"key": "node", "name": "first", "expects_thresholds": true}`: `test first: it expects values of thresholds, and t.yaml has none for hardware "mi300x" and test "first" (hardware there: *, h100)`,
	} {
		m := suiteOf(t, file, "")
		m.Suite = []byte(strings.Replace(string(m.Suite), `"tests": [{"key": "node", "name": "first"}`, want, 1))
		opt.Hardware = "mi300x"
		if _, _, err := plan.Jobs(m, opt); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

// SLURM does not start an acceptance test on named nodes again by itself, unless the
// manifest says so: the test's retries do.
func TestRequeueOfNamedNodes(t *testing.T) {
	for _, tt := range []struct {
		contract, block string
		nodes           []string
		want            string
	}{
		{"acceptance", `{}`, []string{"a"}, "false"},
		{"acceptance", `{"requeue": true}`, []string{"a"}, "true"},
		{"acceptance", `{}`, nil, "as the site does"},
		{"benchmark", `{}`, []string{"a"}, "as the site does"},
	} {
		m, err := manifest.Decode(fmt.Appendf(nil, `{"built_images": {"n": {}}, "context": {},
			"built_models": {"n": {"name": "n", "command": ["true"], "scope": "node", "contract": %q}},
			"deployment_config": {"target": "slurm", "slurm": %s}}`, tt.contract, tt.block))
		if err != nil {
			t.Fatal(err)
		}
		jobs, _, err := plan.Jobs(m, plan.Options{Nodes: tt.nodes, ManifestDir: "/m"})
		if err != nil {
			t.Fatal(err)
		}
		got := "as the site does"
		if r := jobs[0].Slurm.Requeue; r != nil {
			got = fmt.Sprint(*r)
		}
		if got != tt.want {
			t.Errorf("contract %s, slurm %s on %q: %s, want %s", tt.contract, tt.block, tt.nodes, got, tt.want)
		}
	}
}

// Nobody but the server of a pair is ended after others.
func TestLingerIsOfPairs(t *testing.T) {
	for scope, told := range map[string]bool{"pair": false, "group": true, "job": true} {
		m, err := manifest.Decode(fmt.Appendf(nil, `{"built_images": {"n": {}}, "context": {}, "deployment_config": {"target": "local"},
			"built_models": {"n": {"name": "n", "command": ["true"], "scope": %q, "linger": "30", "distributed": {"nnodes": 2}}}}`, scope))
		if err != nil {
			t.Fatal(err)
		}
		jobs, warnings, err := plan.Jobs(m, plan.Options{ManifestDir: "/m"})
		if err != nil {
			t.Fatal(err)
		}
		if r := jobs[0].Ready; !told && (r == nil || r.LingerSeconds != 30) {
			t.Errorf("scope %s: %+v", scope, r)
		}
		if got := strings.Contains(strings.Join(warnings, "\n"), "/built_models/n/linger: linger is not heeded"); got != told {
			t.Errorf("scope %s: warnings %q", scope, warnings)
		}
	}
}

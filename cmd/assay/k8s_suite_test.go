//go:build k8s

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/deploy/k8s/k8stest"
	"assay/pkg/exitcode"
	"assay/pkg/report"
	"assay/pkg/verdict"
)

// TestK8sSuite runs suites of tests on a real Kubernetes, on its one node by its name
// and, where a test needs two hosts, on whatever pods there are.
func TestK8sSuite(t *testing.T) {
	t.Run("tests on a named node, one made again", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.suite("tests: [good, flaky]", map[string]any{
			"good":  nodeTest("echo valueCount=1"),
			"flaky": merged(nodeTest("[ $ASSAY_ATTEMPT != 1 ] || exit 3; echo valueCount=2"), map[string]any{"retries": 1}),
		})
		r := s.runJSON("--nodes", k8stest.Node).want(verdict.Pass).clean()
		s.same("jobs", verdictsOf(r), []string{"good PASS", "flaky PASS"})
		for _, j := range r.Jobs {
			if !slices.Equal(j.Nodes, []string{k8stest.Node}) || j.Ranks[0].Node != k8stest.Node || j.Scope != "node" {
				t.Errorf("%s of scope %s is about %q and ran on %s", j.ID, j.Scope, j.Nodes, j.Ranks[0].Node)
			}
		}
		flaky := r.Jobs[1]
		if len(flaky.History) != 2 || flaky.History[0].Verdict != verdict.Error || flaky.History[1].Trigger != verdict.TriggerRetry {
			t.Errorf("the history is %+v", flaky.History)
		}
		if n := s.created(); n != 3 {
			t.Errorf("%d Jobs were created for 3 attempts", n)
		}
		s.explained(r)
		// The pod of the attempt that failed is left for people to look at, and no other.
		s.eventually("the Jobs that passed to go", func() bool {
			left := s.kubectl("get", "jobs", "--output", "name")
			return strings.HasSuffix(left, "-flaky-1") && !strings.Contains(left, "\n")
		})
	})
	t.Run("a node that there is not", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.suite("tests: [good]", map[string]any{"good": nodeTest("echo valueCount=1")})
		r := s.runJSON("--nodes", k8stest.Node+",elsewhere").exits(exitcode.Invalid)
		if !strings.Contains(r.stderr, "there is no node elsewhere") || exists(filepath.Join(s.dir, "runs", "r")) {
			t.Errorf("it does not say which node there is not, or there is a run:\n%s", r.stderr)
		}
		if n := s.created(); n != 0 {
			t.Errorf("%d Jobs were created", n)
		}
	})
	t.Run("a pair whose server stays", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		// The one connection is the client's; then the server goes on until it is released.
		s.suite("max_concurrent_nodes: 2\ntests: [link]", map[string]any{"link": map[string]any{
			"contract": "acceptance", "scope": "pair", "ready": "tcp:MASTER_PORT", "timeout": 120,
			"command": []string{"bash", "-c", `if [ $ASSAY_ROLE = server ]; then
  echo linkGBs=1; sleep 1; busybox nc -l -p $MASTER_PORT -e echo linkGBs=5; exec sleep 300
fi
for try in 1 2 3; do if read -r word <"/dev/tcp/$ASSAY_PEER_HOST/$MASTER_PORT"; then break; fi; sleep 1; done # a name may not be found at once
[ -n "$word" ] || exit 3; echo "$word"`},
			"thresholds": []map[string]any{{"metric": "linkGBs", "min": 5}},
		}})
		r := s.runJSON().want(verdict.Pass)
		j := r.Jobs[0]
		if len(j.Warnings) != 1 || j.Warnings[0].Code != verdict.CodeMetricDisagrees {
			t.Errorf("warnings %v, want the 1 of the server to be told", j.Warnings)
		}
		if len(j.Measurements) != 1 || j.Measurements[0].Name != "linkGBs" || *j.Measurements[0].Value != 5 {
			t.Errorf("measured %+v, want the 5 of the client", j.Measurements)
		}
		s.same("ranks", endsOf(t, j), []string{"0 node1 ended 0", "1 node1 ended 0"})
		s.explained(r)
		s.gone()
	})
	t.Run("killed while a test runs, then resumed", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.suite("tests: [{card: good, name: first}, waits, {card: good, name: last}]", map[string]any{
			"good": nodeTest("echo valueCount=1"), "waits": nodeTest(arrive + "echo valueCount=1"),
		})
		r := s.startRun("--nodes", k8stest.Node)
		s.awaitArrived("waits", 1)
		r.kill()
		path := filepath.Join(s.attempt("first", 1), "verdict.json")
		kept, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		resumed := s.start("run", "--resume", "r", "--json")
		s.letGo()
		res := resumed.wait().want(verdict.Pass).clean()
		s.same("jobs", verdictsOf(res), []string{"first PASS", "waits PASS", "last PASS"})
		if now, err := os.ReadFile(path); err != nil || string(now) != string(kept) {
			t.Errorf("what was judged changed: %v\n%s\nwas\n%s", err, now, kept)
		}
		s.once(3)
		s.gone()
	})
}

// nodeTest is a card of scope node under the acceptance contract.
func nodeTest(script string) map[string]any {
	return map[string]any{
		"contract": "acceptance", "scope": "node", "timeout": 120, "command": []string{"bash", "-c", script},
		"thresholds": []map[string]any{{"metric": "valueCount", "min": 1}},
	}
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// suite builds m.json of a suite, given as the text of its tests, and its cards.
func (s *k8sSite) suite(text string, cards map[string]any) {
	s.t.Helper()
	var list []any
	for _, name := range slices.Sorted(maps.Keys(cards)) {
		list = append(list, merged(cards[name].(map[string]any), map[string]any{"name": name}))
	}
	extra := map[string]any{"deployment_config": map[string]any{"target": "k8s", "k8s": map[string]any{
		"namespace": s.namespace, "runner_image": k8stest.ImageRunner, "image_pull_policy": "IfNotPresent",
		"cpu": "20m", "memory": "32Mi", "marker_grace": 15,
	}}}
	s.writeJSON("models/cards.json", list)
	s.writeJSON("more.json", merged(s.context, extra))
	if err := os.WriteFile(filepath.Join(s.dir, "s.yaml"), []byte("name: s\n"+text+"\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.tool(s.bin, "build", "--suite", "s.yaml", "--use-image", k8stest.ImageTestbox, "--additional-context-file", "more.json", "-o", "m.json")
}

func (s *k8sSite) writeJSON(name string, value any) {
	s.t.Helper()
	data, err := json.Marshal(value)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, name), data, 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// verdictsOf are the verdicts of the jobs in their order, "ID VERDICT".
func verdictsOf(r judged) []string {
	var all []string
	for _, j := range r.Jobs {
		all = append(all, idAndWord(j))
	}
	return all
}

func idAndWord(j report.Job) string { return fmt.Sprintf("%s %s", j.ID, j.Verdict) }

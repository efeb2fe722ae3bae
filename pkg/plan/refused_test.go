package plan_test

import (
	"fmt"
	"testing"

	"assay/pkg/manifest"
	"assay/pkg/plan"
)

// refusal is why a manifest of one model and one test, with more text in them, is
// refused; empty when it is not.
func refusal(t *testing.T, entry, test string, opt plan.Options) string {
	t.Helper()
	m, err := manifest.Decode(fmt.Appendf(nil, `{"built_images": {"n": {}}, "context": {},
		"built_models": {"n": {"name": "n", "command": ["true"]%s}},
		"suite": {"name": "s", "max_concurrent_nodes": "all", "tests": [{"key": "n"%s}]}}`, entry, test))
	if err != nil {
		t.Fatal(err)
	}
	opt.ManifestDir = "/m"
	if _, _, err = plan.Jobs(m, opt); err != nil {
		return err.Error()
	}
	return ""
}

func TestRefused(t *testing.T) {
	ab := []string{"a", "b"}
	for _, tt := range []struct {
		name        string
		entry, test string
		opt         plan.Options
		want        string // all of it
	}{
		{
			"axes of one variable", "", `, "variant": {"size": "1", "SIZE": "2", "other": "3"}`,
			plan.Options{},
			`manifest: /suite/tests/0/variant: the axes "SIZE" and "size" have one variable, ASSAY_VARIANT_SIZE, which can hold the value of one of them only; rename one`,
		},
		{"axes of two variables", "", `, "variant": {"size": "1", "size-x": "2"}`, plan.Options{}, ""},
		{
			"thresholds that exclude each other", `, "thresholds": [{"metric": "x", "min": 5}, {"metric": "y", "max": 4}, {"metric": "x", "max": 4}]`, "",
			plan.Options{},
			"manifest: /built_models/n/thresholds/2: the thresholds on x cannot be satisfied together: min 5 is greater than max 4",
		},
		{"thresholds of a range", `, "thresholds": [{"metric": "x", "min": 4}, {"metric": "x", "max": 4}, {"metric": "x", "equal": 4}]`, "", plan.Options{}, ""},
		{
			"no time for a duration", `, "timeout": 1`, `, "duration": 3`,
			plan.Options{},
			"manifest: /built_models/n/timeout: a test with a duration is asked to go on within four fifths of its time limit, and of 1 s that is less than a second; give it at least 2",
		},
		{
			"no time on the command line", "", `, "duration": 3`,
			plan.Options{TimeoutSeconds: new(1)},
			"--timeout: a test with a duration is asked to go on within four fifths of its time limit, and of 1 s that is less than a second; give it at least 2",
		},
		{"some time for a duration", `, "timeout": 2`, `, "duration": 3`, plan.Options{}, ""},
		{"a short time, no duration", `, "timeout": 1`, "", plan.Options{}, ""},
		{"malformed pairs", `, "scope": "pair"`, "", plan.Options{Nodes: ab, Pairs: "a:z"}, `--pairs: the pair a:z names the node "z", which is none of the 2 nodes of the run`},
		{
			"pairs of one node", `, "scope": "pair"`, "",
			plan.Options{Nodes: []string{"a"}, Pairs: "all"},
			"manifest: /built_models/n/scope: scope pair needs at least 2 nodes, and --nodes names 1 (a)",
		},
		{"pairs, and no test of them", `, "scope": "node"`, "", plan.Options{Nodes: ab, Pairs: "all"}, "--pairs: no test is of scope pair"},
		{
			"no scope", "", "",
			plan.Options{Nodes: ab},
			"manifest: /built_models/n/scope: it has no scope, so that it is one job on 1 node, and --nodes names 2 (a,b): say what each job is about with scope node, pair or group",
		},
		{
			"scope job", `, "scope": "job"`, "",
			plan.Options{Nodes: ab},
			"manifest: /built_models/n/scope: its scope is job, so that it is one job on 1 node, and --nodes names 2 (a,b): say what each job is about with scope node, pair or group",
		},
	} {
		if got := refusal(t, tt.entry, tt.test, tt.opt); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

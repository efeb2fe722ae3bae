package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay/pkg/metric"
	"assay/pkg/pairwise"
	"assay/pkg/threshold"
	"assay/pkg/verdict"
)

func gbps() verdict.Expectation {
	return verdict.Expectation{Metrics: []metric.Spec{
		{Name: "transport", Evidence: true, Better: "higher"}, {Name: "streams"}, {Name: "bandwidthGbps", Unit: "Gbps", Better: "higher"},
	}}
}

// linkJob is a job about a link with a value, or where that is negative a FAIL without.
func linkJob(a, b string, round int, value float64) Job {
	j := Job{
		Reasons: []verdict.Reason{}, Warnings: []verdict.Reason{}, Ranks: []Rank{}, Measurements: []Measurement{}, Key: "net", Name: "net", ID: "net." + a + "." + b, Scope: "pair", Test: "net", Nodes: []string{a, b}, Round: round, Verdict: verdict.Pass,
	}
	if value < 0 {
		j.Verdict = verdict.Fail
		return j
	}
	j.Measurements = []Measurement{
		{Name: "streams", Value: finite(4)},
		{Name: "bandwidthGbps", Value: &value, Unit: "Gbps", Source: metric.SourceKeyValue},
	}
	return j
}

// fabricRun is a run of all pairs of n nodes, of which one is slow, one link is slow,
// one failed and one could not be measured.
func fabricRun(n int) Run {
	name := func(i int) string { return fmt.Sprintf("node%d", i+1) }
	var jobs []Job
	var nodes []string
	for i := range n {
		nodes = append(nodes, name(i))
	}
	for round, pairs := range pairwise.All(n) {
		for _, p := range pairs {
			value := 9.8 + float64((p[0]*3+p[1])%4)/20
			switch {
			case p[0] == 2 || p[1] == 2:
				value = 2.1
			case p == pairwise.Pair{0, 1}:
				value = 4.25
			case p == pairwise.Pair{3, 4}:
				value = -1
			}
			j := linkJob(name(p[0]), name(p[1]), round+1, value)
			if (p == pairwise.Pair{0, 5}) {
				j.Verdict = verdict.Error // what it printed before does not count
			}
			jobs = append(jobs, j)
		}
	}
	run := New(Header{RunID: "r", Dir: "/runs/r", Target: "local", StartedAt: at(0), FinishedAt: at(9)}, jobs)
	run.Pairs = NewPairs(jobs, nodes, func(string) verdict.Expectation { return gbps() })
	return run
}

func TestPairsText(t *testing.T) {
	for _, n := range []int{6, 8, 9} {
		var buf bytes.Buffer
		pairs(&buf, fabricRun(n).Pairs, "slurm", false)
		golden(t, fmt.Sprintf("pairs%d.txt", n), buf.Bytes())
		for _, line := range strings.Split(buf.String(), "\n")[:n+2] {
			if textWidth(line) > 80 {
				t.Errorf("wider than 80 columns: %s", line)
			}
		}
	}
}

func TestManyFindings(t *testing.T) {
	p := Pairs{Test: "net", Nodes: make([]string, 9), Findings: make([]string, 15)}
	for all, want := range map[bool]int{false: 14, true: 16} {
		var buf bytes.Buffer
		pairs(&buf, []Pairs{p}, "slurm", all)
		if lines := strings.Count(buf.String(), "\n"); lines != want || strings.Contains(buf.String(), "…and 3 more") == all {
			t.Errorf("all %t: %d lines, want %d:\n%s", all, lines, want, &buf)
		}
	}
}

func TestPairsJSON(t *testing.T) {
	run := fabricRun(6)
	followsSchema(t, run)
	p := run.Pairs[0]
	if p.Cells[0][1] == nil || *p.Cells[0][1] != 4.25 || p.Cells[0][1] != p.Cells[1][0] && *p.Cells[1][0] != 4.25 || p.Cells[0][0] != nil || p.Cells[3][4] != nil {
		t.Errorf("cells %v", p.Cells)
	}
	if p.Words[3][4] != "FAIL" || p.Words[5][0] != "ERROR" || p.Words[0][0] != "" || p.Rounds[0][1] == 0 || p.NotMeasured != 1 {
		t.Errorf("words %v, rounds %v, %d not measured", p.Words, p.Rounds, p.NotMeasured)
	}
	if n := p.NodeRanking[0]; n.Node != "node3" || !n.Suspect || *n.Score != 2.1 || n.Slow != 5 {
		t.Errorf("the worst node %+v", n)
	}
	if l := p.LinkRanking[0]; l.Nodes != [2]string{"node4", "node5"} || !l.Suspect || l.Value != nil || l.Job != "net.node4.node5" {
		t.Errorf("the worst link %+v", l)
	}
	var back Run
	text, err := Encode(run)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run.Pairs, back.Pairs, cmpopts.IgnoreFields(Pairs{}, "Facts")); d != "" {
		t.Errorf("decoded (-want +got):\n%s", d)
	}
}

func TestPairsHTML(t *testing.T) {
	run := fabricRun(6)
	run.Pairs[0].Nodes[0] = "<b>x"
	page := string(render(t, func(b *bytes.Buffer) error { return HTML(b, run, nil) }))
	for _, want := range []string{
		`<h2>pairs of net: bandwidthGbps, higher is better</h2>`, `<th class="suspect">node3</th>`, `<td class="suspect">FAIL</td>`,
		`<td class="">ERROR</td>`, `&lt;b&gt;x`, `node4–node5: failed, where other links of both nodes reach 9.8 Gbps</li>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	large := string(render(t, func(b *bytes.Buffer) error { return HTML(b, fabricRun(65), nil) }))
	if strings.Contains(large, `<table class="matrix">`) || !strings.Contains(large, "65 nodes and 2080 links, the worst first") {
		t.Error("a matrix of 65 nodes is on the page, or no ranking")
	}
}

func TestPairsMarkdown(t *testing.T) {
	text := string(render(t, func(b *bytes.Buffer) error { return Markdown(b, fabricRun(6)) }))
	if want := "**pairs of net\\: bandwidthGbps, higher is better**\n\n- node3\\: all its links are slower than the others' \\(2.1 against 9.8 Gbps\\)\n"; !strings.Contains(text, want) {
		t.Errorf("the summary has no %q:\n%s", want, text)
	}
}

func TestFindings(t *testing.T) {
	higher := gbps()
	for _, tt := range []struct {
		name   string
		jobs   []Job
		expect verdict.Expectation
		want   []string
	}{
		{"one link", []Job{linkJob("a", "b", 0, 1)}, higher, nil},
		{"nothing", []Job{linkJob("a", "b", 1, 9), linkJob("a", "c", 1, 9.1), linkJob("b", "c", 1, 9)}, higher, []string{
			"no node and no link stands out from the others",
		}},
		{"link", []Job{linkJob("a", "b", 1, 2), linkJob("a", "c", 1, 9.1), linkJob("b", "c", 1, 9)}, higher, []string{
			"a–b: slow (2 Gbps) although both nodes are fast on other links (9 Gbps): look at the cable or port",
		}},
		{"all links of a node failed", []Job{linkJob("a", "b", 1, -1), linkJob("a", "c", 1, -1), linkJob("b", "c", 1, 9), linkJob("b", "d", 1, 9), linkJob("c", "d", 1, 9)}, higher, []string{
			"a: all its links are slow (failed; the others' median is 9 Gbps): look at the node",
		}},
		{"most links of a node", []Job{
			linkJob("a", "b", 1, 2), linkJob("a", "c", 1, 2), linkJob("a", "d", 1, 9), linkJob("b", "c", 1, 9), linkJob("b", "d", 1, 9), linkJob("c", "d", 1, 9),
		}, higher, []string{"a: 2 of its 3 links are slow (2 Gbps; the others' median is 9 Gbps): look at the node"}},
		{"apart", []Job{linkJob("a", "b", 1, 2), linkJob("c", "d", 1, 9), linkJob("e", "f", 1, 9)}, higher, []string{
			"a–b: slow (2 Gbps) where other links reach 9 Gbps, and a and b have no other link that tells more: look at both nodes and at the link, or measure them with others",
		}},
		{"between two slow nodes", []Job{
			linkJob("a", "b", 1, 2), linkJob("b", "c", 1, 2), linkJob("c", "d", 1, 2), linkJob("d", "e", 1, 9), linkJob("e", "f", 1, 9), linkJob("f", "g", 1, 9), linkJob("a", "g", 1, 2),
		}, higher, []string{
			"a: all its links are slow (2 Gbps; the others' median is 9 Gbps): look at the node",
			"b: slow (2 Gbps; the others' median is 9 Gbps), but only on links to nodes that are slow themselves: measure it with another node",
			"c: all its links are slow (2 Gbps; the others' median is 9 Gbps): look at the node",
		}},
		{"a bad link of a bad node", []Job{
			linkJob("a", "b", 1, 2), linkJob("a", "c", 1, 5), linkJob("a", "d", 1, 5), linkJob("b", "c", 1, 9), linkJob("b", "d", 1, 9), linkJob("c", "d", 1, 9),
		}, higher, []string{
			"a: all its links are slow (5 Gbps; the others' median is 9 Gbps): look at the node",
			"a–b: slow (2 Gbps), worse than a is on other links (5 Gbps): look at the cable or port too",
		}},
		{"no metric", []Job{linkJob("a", "b", 1, 2), linkJob("c", "d", 1, 9)}, verdict.Expectation{}, []string{
			"the test declares no metric to compare links by; declare one with what is better (higher or lower)",
		}},
		{"no metric, and one not judged", []Job{linkJob("a", "b", 1, 2), linkJob("c", "d", 1, -1), {Key: "net", Scope: "pair", Nodes: []string{"a", "c"}, Verdict: verdict.Error}}, verdict.Expectation{}, []string{
			"the test declares no metric to compare links by; declare one with what is better (higher or lower)",
			"1 of 3 links could not be judged, and nothing is said of what they are like",
		}},
		{"no direction", []Job{linkJob("a", "b", 1, 2), linkJob("c", "d", 1, 9)}, verdict.Expectation{Metrics: []metric.Spec{{Name: "bandwidthGbps"}}}, []string{
			"nothing is ranked: the card does not say what is better of bandwidthGbps (higher or lower)",
		}},
		{"one measured", []Job{linkJob("a", "b", 1, 2), {Key: "net", Scope: "pair", Nodes: []string{"a", "c"}, Verdict: verdict.Skip}}, higher, []string{
			"fewer than two links were measured, so that nothing can be told apart",
			"1 of 2 links could not be measured, and nothing is said of what they are like",
		}},
	} {
		var got []string
		for _, p := range NewPairs(tt.jobs, nil, func(string) verdict.Expectation { return tt.expect }) {
			got = append(got, p.Findings...)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestCompared(t *testing.T) {
	bound := 1.0
	for _, tt := range []struct {
		x    verdict.Expectation
		want string
	}{
		{gbps(), "bandwidthGbps Gbps higher"},
		{verdict.Expectation{Thresholds: []threshold.Threshold{{Metric: "x", Equal: &bound}, {Metric: "y", Max: &bound}}}, "y  lower"},
		{verdict.Expectation{Metrics: []metric.Spec{{Name: "z", Unit: "S"}}, Thresholds: []threshold.Threshold{{Metric: "z", Min: &bound}}}, "z S higher"},
		{verdict.Expectation{Thresholds: []threshold.Threshold{{Metric: "x", Min: &bound, Max: &bound}}}, "x  "},
		{verdict.Expectation{Metrics: []metric.Spec{{Name: "z", Unit: "S"}}}, "z S "},
	} {
		name, unit, better := compared(tt.x)
		if got := name + " " + unit + " " + better; got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestIsMetric(t *testing.T) {
	performance := Measurement{Name: "tokens/s", Model: "small", Source: metric.SourceResults}
	plain := Measurement{Name: "x", Source: metric.SourceKeyValue}
	modelled := Measurement{Name: "x", Model: "m", Source: metric.SourceMetricsJSON}
	for name, want := range map[string][3]bool{
		"performance": {true, false, false}, "small/performance": {true, false, false}, "tokens/s": {true, false, false},
		"x": {false, true, false}, "m/x": {false, false, true},
	} {
		if got := [3]bool{IsMetric(performance, name), IsMetric(plain, name), IsMetric(modelled, name)}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

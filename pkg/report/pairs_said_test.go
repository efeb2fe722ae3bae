package report

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/verdict"
)

// People are told what was measured, and what to look at where nodes are more than names.
func TestSaid(t *testing.T) {
	for name, tt := range map[string]struct {
		jobs []Job
		want []Fact
	}{
		"all links of a node failed": {[]Job{linkJob("a", "b", 1, -1), linkJob("a", "c", 1, -1), linkJob("b", "c", 1, 9), linkJob("b", "d", 1, 9), linkJob("c", "d", 1, 9)}, []Fact{
			{"a: all its links failed (the others' median is 9 Gbps)", "look at the node"},
		}},
		"most links of a node": {[]Job{
			linkJob("a", "b", 1, 2), linkJob("a", "c", 1, 2), linkJob("a", "d", 1, 9), linkJob("b", "c", 1, 9), linkJob("b", "d", 1, 9), linkJob("c", "d", 1, 9),
		}, []Fact{{"a: 2 of its 3 links are slower than the others' (2 against 9 Gbps)", "look at the node"}}},
		"apart": {[]Job{linkJob("a", "b", 1, 2), linkJob("c", "d", 1, 9), linkJob("e", "f", 1, 9)}, []Fact{
			{"a–b: slower than other links (2 against 9 Gbps), and a and b have no other link that tells more", "look at both nodes and at the link, or measure them with others"},
		}},
		"a bad link of a bad node": {[]Job{
			linkJob("a", "b", 1, 2), linkJob("a", "c", 1, 5), linkJob("a", "d", 1, 5), linkJob("b", "c", 1, 9), linkJob("b", "d", 1, 9), linkJob("c", "d", 1, 9),
		}, []Fact{
			{"a: all its links are slower than the others' (5 against 9 Gbps)", "look at the node"},
			{"a–b: slower than other links of a (2 against 5 Gbps)", "look at the cable or port too"},
		}},
		"between two slow nodes": {[]Job{
			linkJob("a", "b", 1, 2), linkJob("b", "c", 1, 2), linkJob("c", "d", 1, 2), linkJob("d", "e", 1, 9), linkJob("e", "f", 1, 9), linkJob("f", "g", 1, 9), linkJob("a", "g", 1, 2),
		}, []Fact{
			{"a: all its links are slower than the others' (2 against 9 Gbps)", "look at the node"},
			{"b: slower than the others (2 against 9 Gbps), but only on links to nodes that are slow themselves", "measure it with another node"},
			{"c: all its links are slower than the others' (2 against 9 Gbps)", "look at the node"},
		}},
		"a failed link": {[]Job{linkJob("a", "b", 1, -1), linkJob("a", "c", 1, 9), linkJob("b", "c", 1, 9)}, []Fact{
			{"a–b: failed, where other links of both nodes reach 9 Gbps", "look at the cable or port"},
		}},
		"nothing": {[]Job{linkJob("a", "b", 1, 9), linkJob("a", "c", 1, 9), linkJob("b", "c", 1, 9)}, []Fact{{Measured: "no node and no link stands out from the others"}}},
	} {
		p := NewPairs(tt.jobs, nil, func(string) verdict.Expectation { return gbps() })[0]
		if d := cmp.Diff(tt.want, p.Facts); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		for target, advised := range map[string]bool{"local": false, "slurm": true} {
			for i, text := range p.said(target) {
				want := tt.want[i].Measured
				if advised && tt.want[i].Advice != "" {
					want += "; " + tt.want[i].Advice
				}
				if text != want {
					t.Errorf("%s on %s: %q, want %q", name, target, text, want)
				}
			}
		}
		p.Facts = nil
		if d := cmp.Diff(p.Findings, p.said("local")); d != "" {
			t.Errorf("%s as read from a file (-want +got):\n%s", name, d)
		}
	}
}

// Where links are compared by nothing, the matrix is of their verdicts.
func TestPairsWithoutAMetric(t *testing.T) {
	var buf bytes.Buffer
	list := NewPairs([]Job{linkJob("a", "b", 1, 2), linkJob("a", "c", 1, -1), linkJob("b", "c", 1, 3)}, nil, func(string) verdict.Expectation { return verdict.Expectation{} })
	pairs(&buf, list, "slurm", false)
	want := `pairs of net
            a       b       c
    a       -    PASS    FAIL
    b    PASS       -    PASS
    c    FAIL    PASS       -
    the test declares no metric to compare links by; declare one with what is better (higher or lower)
`
	if d := cmp.Diff(want, buf.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

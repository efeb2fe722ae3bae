package pairwise_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"assay/pkg/pairwise"
)

// fabric measures links of nodes: each has its noise, and nodes and links may be slow.
type fabric struct {
	better   pairwise.Better
	factor   float64 // that is left of the speed of what is slow
	badNodes map[int]bool
	badLink  pairwise.Pair
	noise    func(pairwise.Pair) float64 // about 1
}

func (f fabric) measure(rounds [][]pairwise.Pair) []pairwise.Link {
	var out []pairwise.Link
	for _, p := range slices.Concat(rounds...) {
		v := 10 * f.noise(p)
		if f.badNodes[p[0]] || f.badNodes[p[1]] || p == f.badLink {
			v *= f.factor
		}
		if f.better == pairwise.Lower {
			v = 1000 / v
		}
		out = append(out, pairwise.Link{A: name(p[0]), B: name(p[1]), Outcome: pairwise.Measured, Value: v})
	}
	return out
}

func name(i int) string { return fmt.Sprintf("node%02d", i) }

// blamed lists what stands out: suspects as they are, what is unclear with a "?".
func blamed(a pairwise.Analysis) (nodes, links []string) {
	mark := map[pairwise.Standing]string{pairwise.Suspect: "", pairwise.Unclear: "?"}
	for _, n := range a.Nodes {
		if m, ok := mark[n.Standing]; ok {
			nodes = append(nodes, n.Node+m)
		}
	}
	for _, l := range a.Links {
		if m, ok := mark[l.Standing]; ok {
			links = append(links, l.A+"-"+l.B+m)
		}
	}
	slices.Sort(nodes)
	slices.Sort(links)
	return nodes, links
}

func expectBlamed(t *testing.T, about string, a pairwise.Analysis, wantNodes, wantLinks []string) {
	t.Helper()
	nodes, links := blamed(a)
	if d := cmp.Diff([2][]string{wantNodes, wantLinks}, [2][]string{nodes, links}, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s: nodes and links blamed (-want +got):\n%s", about, d)
	}
}

// noise is a fixed 3 % to either side that looks random.
func noise(seed int) func(pairwise.Pair) float64 {
	return func(p pairwise.Pair) float64 {
		h := uint64(seed*7919+p[0]*104729+p[1]*1299709) * 0x9e3779b97f4a7c15
		return 1 + 0.03*(2*float64(h>>40)/float64(1<<24)-1)
	}
}

// everyFabric calls do for 3 to 12 nodes, measured as all pairs and as a ring, with a
// metric of either direction.
func everyFabric(do func(about string, n int, rounds [][]pairwise.Pair, f fabric)) {
	for n := 3; n <= 12; n++ {
		for mode, rounds := range map[string][][]pairwise.Pair{"all": pairwise.All(n), "ring": pairwise.Ring(n)} {
			for _, better := range []pairwise.Better{pairwise.Higher, pairwise.Lower} {
				for seed := range 5 {
					// What has two links a node does not tell what differs by little.
					factors := []float64{0.2, 0.8}
					if mode == "ring" || n == 3 {
						factors[1] = 0.6
					}
					f := fabric{better: better, factor: factors[seed%2], noise: noise(seed), badLink: pairwise.Pair{-1, -1}}
					do(fmt.Sprintf("%d nodes, %s, direction %d, seed %d", n, mode, better, seed), n, rounds, f)
				}
			}
		}
	}
}

func TestNothingSlow(t *testing.T) {
	everyFabric(func(about string, _ int, rounds [][]pairwise.Pair, f fabric) {
		expectBlamed(t, about, pairwise.Analyse(f.measure(rounds), f.better), nil, nil)
	})
}

func TestOneSlowNode(t *testing.T) {
	everyFabric(func(about string, n int, rounds [][]pairwise.Pair, f fabric) {
		for bad := range n {
			f.badNodes = map[int]bool{bad: true}
			expectBlamed(t, fmt.Sprintf("%s, node %d slow", about, bad), pairwise.Analyse(f.measure(rounds), f.better), []string{name(bad)}, nil)
		}
	})
}

func TestOneSlowLink(t *testing.T) {
	everyFabric(func(about string, _ int, rounds [][]pairwise.Pair, f fabric) {
		for _, bad := range slices.Concat(rounds...) {
			f.badLink = bad
			expectBlamed(t, fmt.Sprintf("%s, link %v slow", about, bad), pairwise.Analyse(f.measure(rounds), f.better), nil, []string{name(bad[0]) + "-" + name(bad[1])})
		}
	})
}

func TestTwoSlowNodes(t *testing.T) {
	everyFabric(func(about string, n int, rounds [][]pairwise.Pair, f fabric) {
		f.factor = min(f.factor, 0.7) // two of six widen what counts as noise
		for a := range n {
			for b := a + 1; b < n && n >= 6; b++ {
				f.badNodes = map[int]bool{a: true, b: true}
				want := []string{name(a), name(b)}
				// In a ring the node between two slow ones has no other neighbour.
				if between := (a + 1) % n; len(rounds) <= 3 && b == (a+2)%n {
					want = append(want, name(between)+"?")
				} else if between = (b + 1) % n; len(rounds) <= 3 && a == (b+2)%n {
					want = append(want, name(between)+"?")
				}
				slices.Sort(want)
				expectBlamed(t, fmt.Sprintf("%s, nodes %d and %d slow", about, a, b), pairwise.Analyse(f.measure(rounds), f.better), want, nil)
			}
		}
	})
}

// A slow node and a slow link elsewhere are both found, where each node has links
// enough.
func TestSlowNodeAndSlowLink(t *testing.T) {
	for n := 5; n <= 12; n++ {
		f := fabric{better: pairwise.Higher, factor: 0.5, noise: noise(n), badNodes: map[int]bool{0: true}, badLink: pairwise.Pair{2, 3}}
		expectBlamed(t, fmt.Sprint(n), pairwise.Analyse(f.measure(pairwise.All(n)), f.better), []string{name(0)}, []string{"node02-node03"})
	}
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "nodes")
		var links []pairwise.Link
		for _, p := range slices.Concat(pairwise.All(n)...) {
			l := pairwise.Link{A: name(p[0]), B: name(p[1]), Outcome: pairwise.Outcome(rapid.IntRange(0, 2).Draw(t, "outcome"))}
			if l.Outcome == pairwise.Measured {
				l.Value = rapid.SampledFrom([]float64{-1, 0, 1, 2, 9.9, 10, 10.1, math.MaxFloat64}).Draw(t, "value")
			}
			if rapid.Bool().Draw(t, "asked") {
				links = append(links, l)
			}
		}
		better := pairwise.Better(rapid.IntRange(0, 2).Draw(t, "better"))
		want := pairwise.Analyse(links, better)
		got := pairwise.Analyse(rapid.Permutation(links).Draw(t, "order"), better)
		if d := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("another order says something else:\n%s", d)
		}
		nodes, blamedLinks := blamed(got)
		if !got.Comparable && len(nodes)+len(blamedLinks) > 0 {
			t.Fatalf("nothing can be compared, and %v %v are blamed", nodes, blamedLinks)
		}
		for _, l := range got.Links {
			if l.Outcome == pairwise.NotMeasured && l.Standing != pairwise.Unremarkable {
				t.Fatalf("%v was not measured and is blamed", l)
			}
		}
	})
}

// parse reads links as "a-b 9.8, a-c fail, b-c ?".
func parse(t *testing.T, text string) []pairwise.Link {
	t.Helper()
	var out []pairwise.Link
	for _, one := range strings.Split(text, ",") {
		pair, value, _ := strings.Cut(strings.TrimSpace(one), " ")
		a, b, _ := strings.Cut(pair, "-")
		l := pairwise.Link{A: a, B: b}
		switch value {
		case "?":
		case "fail":
			l.Outcome = pairwise.Failed
		default:
			l.Outcome = pairwise.Measured
			if _, err := fmt.Sscan(value, &l.Value); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, l)
	}
	return out
}

func TestAnalyse(t *testing.T) {
	for _, tt := range []struct {
		name, links  string
		nodes, slows []string
	}{
		{"two nodes", "a-b 1", nil, nil},
		{"a node whose links fail", "a-b 9, a-c fail, b-c fail, a-d 9, b-d 9, c-d fail", []string{"c"}, nil},
		{"a link that fails", "a-b fail, a-c 9, b-c 9", nil, []string{"a-b"}},
		{"everything fails", "a-b fail, a-c fail, b-c fail", nil, nil},
		{"what was not measured", "a-b ?, a-c 9, b-c 9, a-d ?, b-d 9, c-d 9", nil, nil},
		{"node with one link of several", "a-b 1, b-c 9, c-d 9, b-d 9", []string{"a?"}, []string{"a-b?"}},
		{"links without a common node", "a-b 1, c-d 9, e-f 9, g-h 9", []string{"a?", "b?"}, []string{"a-b?"}},
		{"exactly at the bound of few links", "a-b 7.5, a-c 10, b-c 10", nil, nil},
		{"just past the bound of few links", "a-b 7.49, a-c 10, b-c 10", nil, []string{"a-b"}},
		{"exactly at the bound", "a-b 9, a-c 10, b-c 10, a-d 10, b-d 10, c-d 10", nil, nil},
		{"just past the bound", "a-b 8.99, a-c 10, b-c 10, a-d 10, b-d 10, c-d 10", nil, []string{"a-b"}},
		{"three links that differ by little", "a-b 95, a-c 92, b-c 107", nil, nil},
		{"a link that fails among noise", "a-b fail, a-c 5, b-c 9, a-d 14, b-d 7, c-d 11", nil, []string{"a-b"}},
		{"zero", "a-b 0, a-c 0, b-c 0", nil, nil},
		{"two thirds of the links of a node", "a-b 5, a-c 5, a-d 9, b-c 9, b-d 9, c-d 9", []string{"a"}, nil},
	} {
		expectBlamed(t, tt.name, pairwise.Analyse(parse(t, tt.links), pairwise.Higher), tt.nodes, tt.slows)
	}
}

func TestRanking(t *testing.T) {
	a := pairwise.Analyse(parse(t, "a-b 9.8, a-c 2, b-c 2.1, a-d 10, b-d 9.9, c-d ?"), pairwise.Higher)
	var got []string
	for _, n := range a.Nodes {
		got = append(got, fmt.Sprintf("%s %g of %g, %d of %d slow, %d not measured", n.Node, n.Score, n.OthersScore, n.Slow, n.Links, n.NotMeasured))
	}
	want := []string{
		"c 2.1 of 9.8, 2 of 2 slow, 1 not measured", "a 9.8 of 9.8, 1 of 3 slow, 0 not measured",
		"b 9.8 of 9.8, 1 of 3 slow, 0 not measured", "d 10 of 9.8, 0 of 2 slow, 1 not measured",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if first, last := a.Links[0], a.Links[5]; first.A+first.B != "ac" || last.A+last.B != "cd" || a.NotMeasured != 1 || a.LinkMedian != 9.8 {
		t.Errorf("links %v", a.Links)
	}
}

func BenchmarkAnalyse(b *testing.B) {
	f := fabric{better: pairwise.Higher, noise: noise(1), badNodes: map[int]bool{7: true}, factor: 0.5}
	links := f.measure(pairwise.All(128))
	for b.Loop() {
		pairwise.Analyse(links, pairwise.Higher)
	}
}

// Links of nodes that are all alike, measured with a lot of noise.
func TestNoiseBlamesNobody(t *testing.T) {
	links := []pairwise.Link{}
	for _, l := range []struct {
		a, b string
		v    float64
	}{{"1", "2", 16.06}, {"1", "3", 10.14}, {"1", "4", 12.01}, {"2", "3", 7.861}, {"2", "4", 12.88}, {"3", "4", 16.55}} {
		links = append(links, pairwise.Link{A: l.a, B: l.b, Outcome: pairwise.Measured, Value: l.v})
	}
	a := pairwise.Analyse(links, pairwise.Higher)
	for _, n := range a.Nodes {
		if n.Standing != pairwise.Unremarkable {
			t.Errorf("node %+v", n)
		}
	}
	for _, l := range a.Links {
		if l.Standing != pairwise.Unremarkable {
			t.Errorf("link %+v", l)
		}
	}
}

package isolate_test

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"assay/pkg/isolate"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("n%02d", i)
	}
	return out
}

// play runs a search with nodes that answer, and checks what holds for every step.
func play(t rapid.TB, nodes []string, answer func(set []string) isolate.Answer) (c isolate.Conclusion, path []string) {
	t.Helper()
	s := isolate.New(nodes)
	for sets := s.Next(); len(sets) > 0; sets = s.Next() {
		if s.Conclusion().Kind != isolate.Searching {
			t.Fatalf("it has ended and goes on: %v", sets)
		}
		busy := map[string]bool{}
		for _, set := range sets {
			if len(set) < 2 {
				t.Fatalf("%v cannot run as a group", set)
			}
			for _, n := range set {
				if busy[n] || !slices.Contains(nodes, n) {
					t.Fatalf("%v: node %s is twice in a step, or unknown", sets, n)
				}
				busy[n] = true
			}
		}
		for _, set := range sets {
			a := answer(set)
			path = append(path, fmt.Sprint(strings.Join(set, " "), " ", a))
			s.Tell(set, a)
		}
		if len(path) > 20*len(nodes) {
			t.Fatalf("it does not end: %d jobs for %d nodes", len(path), len(nodes))
		}
	}
	if s.Conclusion().Kind == isolate.Searching {
		t.Fatal("it has nothing to run, and has not ended")
	}
	return s.Conclusion(), path
}

// blame is nodes some of which fail alone, and some only where a whole set is there.
func blame(culprits []string, together ...[]string) func([]string) isolate.Answer {
	within := func(set, all []string) bool {
		return !slices.ContainsFunc(all, func(n string) bool { return !slices.Contains(set, n) })
	}
	return func(set []string) isolate.Answer {
		if slices.ContainsFunc(culprits, func(c string) bool { return slices.Contains(set, c) }) ||
			slices.ContainsFunc(together, func(all []string) bool { return within(set, all) }) {
			return isolate.Bad
		}
		return isolate.Good
	}
}

// levels is the logarithm to base 2, rounded up.
func levels(n int) int { return bits.Len(uint(n - 1)) }

func expect(t *testing.T, about string, want, got isolate.Conclusion, path []string) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s\n%s", about, d, strings.Join(path, "\n"))
	}
}

func TestOneCulprit(t *testing.T) {
	for n := 2; n <= 32; n++ {
		nodes := names(n)
		most := 0
		for _, culprit := range nodes {
			got, path := play(t, nodes, blame([]string{culprit}))
			want := isolate.Conclusion{Kind: isolate.Culprits, Culprits: []string{culprit}}
			if n == 2 {
				want = isolate.Conclusion{Kind: isolate.NotToldApart, Among: nodes}
			}
			expect(t, fmt.Sprintf("%d nodes, %s to blame", n, culprit), want, got, path)
			most = max(most, len(path))
		}
		if bound := 2*levels(n) + 2; most > bound {
			t.Errorf("%d nodes: %d jobs, want at most %d", n, most, bound)
		}
	}
}

func TestTwoCulprits(t *testing.T) {
	for n := 4; n <= 32; n++ {
		nodes := names(n)
		for i := range n {
			for j := i + 1; j < n; j++ {
				culprits := []string{nodes[i], nodes[j]}
				got, path := play(t, nodes, blame(culprits))
				expect(t, fmt.Sprintf("%d nodes, %v to blame", n, culprits), isolate.Conclusion{Kind: isolate.Culprits, Culprits: culprits}, got, path)
				if bound := 4*levels(n) + 4; len(path) > bound {
					t.Errorf("%d nodes, %v: %d jobs, want at most %d", n, culprits, len(path), bound)
				}
			}
		}
	}
}

func TestPairThatFailsOnlyTogether(t *testing.T) {
	for n := 3; n <= 32; n++ {
		nodes := names(n)
		for i := range n {
			for j := i + 1; j < n; j++ {
				pair := []string{nodes[i], nodes[j]}
				got, path := play(t, nodes, blame(nil, pair))
				want := isolate.Conclusion{Kind: isolate.OnlyTogether, Together: [][]string{pair}}
				expect(t, fmt.Sprintf("%d nodes, %v fail together", n, pair), want, got, path)
				if bound := 4*levels(n) + 3; len(path) > bound {
					t.Errorf("%d nodes, %v: %d jobs, want at most %d", n, pair, len(path), bound)
				}
			}
		}
	}
}

func TestEveryNodeBad(t *testing.T) {
	for n := 2; n <= 32; n++ {
		nodes := names(n)
		got, path := play(t, nodes, blame(nodes))
		expect(t, fmt.Sprint(n), isolate.Conclusion{Kind: isolate.NotToldApart, Among: nodes}, got, path)
		if len(path) > n+8 {
			t.Errorf("%d nodes: %d jobs", n, len(path))
		}
	}
}

func TestCases(t *testing.T) {
	for _, tt := range []struct {
		name     string
		nodes    int
		answer   func([]string) isolate.Answer
		want     isolate.Conclusion
		jobsMost int
	}{
		{"all pass now", 8, blame(nil), isolate.Conclusion{Kind: isolate.NotReproducible}, 1},
		{"half of each pair", 8, blame([]string{"n00", "n02", "n05", "n06"}), isolate.Conclusion{Kind: isolate.Culprits, Culprits: []string{"n00", "n02", "n05", "n06"}}, 99},
		{"a quarter", 16, blame(names(4)), isolate.Conclusion{Kind: isolate.Culprits, Culprits: names(4)}, 99},
		{"all but two", 8, blame(names(6)), isolate.Conclusion{Kind: isolate.Culprits, Culprits: names(6)}, 99},
		{"three together", 16, blame(nil, []string{"n01", "n06", "n12"}), isolate.Conclusion{Kind: isolate.OnlyTogether, Together: [][]string{{"n01", "n06", "n12"}}}, 99},
		{
			"a culprit, and two that fail together", 16, blame([]string{"n03"}, []string{"n05", "n11"}),
			isolate.Conclusion{Kind: isolate.Culprits, Culprits: []string{"n03"}, Together: [][]string{{"n05", "n11"}}},
			99,
		},
		{
			"a culprit, whose neighbour fails with one partner", 4, blame([]string{"n00"}, []string{"n01", "n03"}),
			isolate.Conclusion{Kind: isolate.Culprits, Culprits: []string{"n00"}, Together: [][]string{{"n01", "n03"}}},
			99,
		},
		{
			"two pairs that fail together", 8, blame(nil, []string{"n00", "n01"}, []string{"n02", "n07"}),
			isolate.Conclusion{Kind: isolate.OnlyTogether, Together: [][]string{{"n00", "n01"}, {"n02", "n07"}}},
			99,
		},
	} {
		got, path := play(t, names(tt.nodes), tt.answer)
		expect(t, tt.name, tt.want, got, path)
		if len(path) > tt.jobsMost {
			t.Errorf("%s: %d jobs:\n%s", tt.name, len(path), strings.Join(path, "\n"))
		}
	}
}

// What fails by its size alone has no small set; the search for one ends.
func TestTooMany(t *testing.T) {
	got, path := play(t, names(32), func(set []string) isolate.Answer {
		if len(set) > 27 {
			return isolate.Bad
		}
		return isolate.Good
	})
	if got.Kind != isolate.OnlyTogether || !got.Larger && len(got.Together[0]) != 28 || len(path) > 45 {
		t.Errorf("%+v after %d jobs", got, len(path))
	}
}

func TestUnknown(t *testing.T) {
	nodes := names(8)
	silent := func(often int) func([]string) isolate.Answer {
		left := map[string]int{}
		return func(set []string) isolate.Answer {
			key := strings.Join(set, " ")
			if left[key]++; left[key] <= often {
				return isolate.Unknown
			}
			return blame([]string{"n05"})(set)
		}
	}
	got, path := play(t, nodes, silent(1))
	expect(t, "silent once", isolate.Conclusion{Kind: isolate.Culprits, Culprits: []string{"n05"}}, got, path)
	got, path = play(t, nodes, silent(2))
	expect(t, "silent twice", isolate.Conclusion{Kind: isolate.Unanswered, Among: nodes}, got, path)
	if len(path) != 2 {
		t.Errorf("%d jobs", len(path))
	}
}

// breaksOff makes what answers Bad break off instead.
func breaksOff(answer func([]string) isolate.Answer) func([]string) isolate.Answer {
	return func(set []string) isolate.Answer {
		if a := answer(set); a != isolate.Bad {
			return a
		}
		return isolate.Suspect
	}
}

// What breaks off is run once more before it counts, and nothing else is.
func TestBreaksOff(t *testing.T) {
	for n := 3; n <= 32; n++ {
		nodes := names(n)
		for _, culprit := range nodes {
			want, once := play(t, nodes, blame([]string{culprit}))
			got, path := play(t, nodes, breaksOff(blame([]string{culprit})))
			expect(t, fmt.Sprintf("%d nodes, %s breaks off", n, culprit), want, got, path)
			bad := 0
			for _, p := range once {
				if strings.HasSuffix(p, fmt.Sprint(" ", isolate.Bad)) {
					bad++
				}
			}
			if bound := 3*levels(n) + 3; len(path) > bound {
				t.Errorf("%d nodes: %d jobs, want at most %d", n, len(path), bound)
			}
			if len(path) != len(once)+bad {
				t.Errorf("%d nodes: %d jobs, of which %d should be repeated: %d", n, len(once), bad, len(path))
			}
		}
	}
}

// What breaks off once blames nobody: a checker may fail for its own reasons.
func TestBreaksOffOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := names(rapid.IntRange(2, 20).Draw(t, "nodes"))
		seen := map[string]bool{}
		got, path := play(t, nodes, func(set []string) isolate.Answer {
			if key := strings.Join(set, " "); !seen[key] && rapid.Bool().Draw(t, key) {
				seen[key] = true
				return isolate.Suspect
			}
			return isolate.Good
		})
		if got.Kind != isolate.NotReproducible {
			t.Fatalf("%+v after\n%s", got, strings.Join(path, "\n"))
		}
	})
}

// A node that fails now and then leads to some conclusion, and one that passed is never
// called a culprit.
func TestFlaky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "nodes")
		passed := map[string]bool{}
		got, path := play(t, names(n), func(set []string) isolate.Answer {
			a := rapid.SampledFrom([]isolate.Answer{isolate.Good, isolate.Bad, isolate.Bad, isolate.Suspect, isolate.Unknown}).Draw(t, "answer")
			for _, node := range set {
				passed[node] = passed[node] || a == isolate.Good
			}
			return a
		})
		for _, c := range got.Culprits {
			if passed[c] {
				t.Fatalf("%s passed, and is called a culprit after\n%s", c, strings.Join(path, "\n"))
			}
		}
	})
}

// Whatever is to blame is found, or said not to be found: nobody is blamed wrongly
// where nodes fail alone.
func TestManyCulprits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := names(rapid.IntRange(2, 32).Draw(t, "nodes"))
		culprits := []string{}
		for _, n := range nodes {
			if rapid.IntRange(0, 3).Draw(t, n) == 0 {
				culprits = append(culprits, n)
			}
		}
		got, path := play(t, nodes, blame(culprits))
		switch {
		case len(culprits) == 0:
			if got.Kind != isolate.NotReproducible {
				t.Fatalf("%+v", got)
			}
		case got.Kind == isolate.NotToldApart:
			if 2*len(culprits) < len(nodes) && len(nodes) > 3 {
				t.Fatalf("not told apart, with %v of %d to blame:\n%s", culprits, len(nodes), strings.Join(path, "\n"))
			}
		case got.Kind != isolate.Culprits || cmp.Diff(culprits, got.Culprits) != "" || len(got.Together) > 0:
			t.Fatalf("%+v, and %v are to blame:\n%s", got, culprits, strings.Join(path, "\n"))
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	nodes := names(512)
	answer := blame([]string{nodes[300]})
	for b.Loop() {
		s := isolate.New(nodes)
		for sets := s.Next(); len(sets) > 0; sets = s.Next() {
			for _, set := range sets {
				s.Tell(set, answer(set))
			}
		}
	}
}

package pairwise_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"assay/pkg/pairwise"
)

// checkRounds fails unless no node is twice in a round and no link twice at all.
func checkRounds(t *rapid.T, rounds [][]pairwise.Pair, n int) map[pairwise.Pair]bool {
	links := map[pairwise.Pair]bool{}
	for i, round := range rounds {
		if len(round) == 0 {
			t.Fatalf("round %d is empty", i)
		}
		busy := map[int]bool{}
		for _, p := range round {
			for _, node := range p {
				if node < 0 || node >= n || busy[node] {
					t.Fatalf("round %d: node %d is not there or meets two: %v", i, node, round)
				}
				busy[node] = true
			}
			key := pairwise.Pair{min(p[0], p[1]), max(p[0], p[1])}
			if links[key] {
				t.Fatalf("link %v is measured twice", key)
			}
			links[key] = true
		}
	}
	return links
}

func TestTournament(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 70).Draw(t, "nodes")
		rounds := pairwise.All(n)
		if got := len(checkRounds(t, rounds, n)); got != n*(n-1)/2 {
			t.Fatalf("%d links of %d", got, n*(n-1)/2)
		}
		want := n - 1
		if n%2 == 1 {
			want = n
		}
		if len(rounds) != want {
			t.Fatalf("%d rounds, want %d", len(rounds), want)
		}
	})
}

func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 70).Draw(t, "nodes")
		rounds := pairwise.Ring(n)
		degree := map[int]int{}
		for p := range checkRounds(t, rounds, n) {
			degree[p[0]]++
			degree[p[1]]++
		}
		for i := range n {
			if degree[i] != 2 {
				t.Fatalf("node %d has %d links", i, degree[i])
			}
		}
		if len(rounds) > 3 || n%2 == 0 && len(rounds) != 2 {
			t.Fatalf("%d rounds for %d nodes", len(rounds), n)
		}
	})
}

func TestSelect(t *testing.T) {
	nodes := []string{"a", "b", "c", "d"}
	for _, tt := range []struct{ choice, want string }{
		{"a:b,c:d", ""},
		{"a:b, b:c", ""},
		{"a:b,b:a", "the pair b:a is listed twice"},
		{"a:a", "the pair a:a is one node twice"},
		{"a:x", `the pair a:x names the node "x", which is none of the 4 nodes of the run`},
		{"a", `"a" is no choice of pairs`},
		{"", `"" is no choice of pairs`},
		{"All", `"All" is no choice of pairs`},
	} {
		_, err := pairwise.Select(tt.choice, nodes)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.choice, err, tt.want)
		}
	}
	if rounds, _ := pairwise.Select("a:b,c:d,a:c", nodes); len(rounds) != 2 || len(rounds[0]) != 2 {
		t.Errorf("rounds %v", rounds)
	}
	if pairwise.All(1) != nil || pairwise.Ring(1) != nil || len(pairwise.Ring(2)) != 1 {
		t.Error("one node has no links, two have one")
	}
}

package pairwise_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"assay/pkg/pairwise"
)

// draws measures many sets of n nodes with normal noise, the same each time, and counts
// in how many of them blamed says yes.
func draws(rounds [][]pairwise.Pair, f fabric, sigma float64, blamed func(pairwise.Analysis) bool) (share float64) {
	const sets = 400
	r := rand.New(rand.NewPCG(1, uint64(1000*sigma))) // the same each time
	f.noise = func(pairwise.Pair) float64 { return 1 + sigma*r.NormFloat64() }
	count := 0
	for range sets {
		if blamed(pairwise.Analyse(f.measure(rounds), f.better)) {
			count++
		}
	}
	return float64(count) / sets
}

// Nodes and links that are all alike are seldom blamed, however many there are.
func TestChanceBlamesNobody(t *testing.T) {
	for _, n := range []int{3, 4, 5, 8, 32} {
		for mode, rounds := range map[string][][]pairwise.Pair{"all": pairwise.All(n), "ring": pairwise.Ring(n)} {
			for _, sigma := range []float64{0.05, 0.08} {
				f := fabric{better: pairwise.Higher, badLink: pairwise.Pair{-1, -1}}
				share := draws(rounds, f, sigma, func(a pairwise.Analysis) bool {
					nodes, links := blamed(a)
					return len(nodes)+len(links) > 0
				})
				if share > 0.05 {
					t.Errorf("%d nodes, %s, noise %g: blamed in %.1f %% of the sets", n, mode, sigma, 100*share)
				}
			}
		}
	}
}

// What has lost half of its speed is found among noise, and told apart.
func TestFoundAmongNoise(t *testing.T) {
	for _, n := range []int{4, 5, 8, 16} {
		for _, badNode := range []bool{true, false} {
			f, want := fabric{better: pairwise.Higher, factor: 0.5, badLink: pairwise.Pair{0, 1}}, "[] [node00-node01]"
			if badNode {
				f.badLink, f.badNodes, want = pairwise.Pair{-1, -1}, map[int]bool{1: true}, "[node01] []"
			}
			share := draws(pairwise.All(n), f, 0.03, func(a pairwise.Analysis) bool {
				nodes, links := blamed(a)
				return fmt.Sprint(nodes, links) == want
			})
			if share < 0.95 {
				t.Errorf("%d nodes, want %s: found in %.1f %% of the sets", n, want, 100*share)
			}
		}
	}
}

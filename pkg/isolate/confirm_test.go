package isolate_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"assay/pkg/isolate"
)

// A failure that is gone after it was seen once blames nobody.
func TestFailsOnce(t *testing.T) {
	for n := 3; n <= 32; n++ {
		first := true
		got, path := play(t, names(n), func([]string) isolate.Answer {
			if first {
				first = false
				return isolate.Bad
			}
			return isolate.Good
		})
		if got.Kind != isolate.Contradictory {
			t.Errorf("%d nodes: %+v after\n%s", n, got, strings.Join(path, "\n"))
		}
	}
}

// What fails at random, whichever nodes are there, seldom makes culprits.
func TestFailsAtRandom(t *testing.T) {
	const searches = 500
	// Of few nodes the bound of jobs leaves no room to ask again.
	for n, most := range map[int]int{4: 15, 8: 10, 16: 8, 32: 8} {
		for _, p := range []float64{0.5, 0.7, 0.9} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(100*p))) // the same each time
			kinds := map[isolate.Kind]int{}
			for range searches {
				got, _ := play(t, names(n), func([]string) isolate.Answer {
					if r.Float64() < p {
						return isolate.Bad
					}
					return isolate.Good
				})
				kinds[got.Kind]++
			}
			if wrong := kinds[isolate.Culprits]; 100*wrong > most*searches {
				t.Errorf("%d nodes that fail at random with %g: culprits in %d of %d searches", n, p, wrong, searches)
			}
		}
	}
}

// A culprit besides what fails by its size alone: the search ends.
func TestCulpritAmongTooMany(t *testing.T) {
	culprit := blame([]string{"n03"})
	got, path := play(t, names(32), func(set []string) isolate.Answer {
		if len(set) > 27 {
			return isolate.Bad
		}
		return culprit(set)
	})
	if got.Kind != isolate.Culprits || len(got.Culprits) != 1 || len(got.Together) == 0 || len(path) > 80 {
		t.Errorf("%+v after %d jobs", got, len(path))
	}
}

package isolate

import "slices"

// enoughBad is how many failures it takes to call a node a culprit, of those that no other
// culprit explains. Halving gives so many to one culprit by itself. Where there are
// several each has fewer, and chance had more occasions to make one: it takes more of
// them, as it does of what fails only together, and the others have to pass so often.
const (
	enoughBad        = 3
	enoughOfSeveral  = 4
	enoughTogether   = 2
	enoughGoodOfRest = 2
)

// confirmed says whether what failures and passes say of culprits does not rest on single
// answers, as those of a test that fails at random would: each culprit has failed often
// enough, and where there are several, the others have passed more than once. It wants
// again what did not; an answer that differs from the first is a contradiction.
func (t *thought) confirmed(f found, rest set) bool {
	enough, several := enoughBad, len(f.culprits)+len(f.together) > 1
	if several {
		enough = enoughOfSeveral
	}
	for _, c := range f.culprits {
		if bad, pair := t.against(c, f.culprits); pair != nil && bad < enough {
			t.want(pair)
		}
	}
	if !several {
		return len(t.wanted) == 0
	}
	for _, s := range f.together {
		if t.fails(s) < enoughTogether {
			t.want(s)
		}
	}
	// Where the search for a smaller set was given up, the rest still fails.
	if !f.larger && len(rest) > 1 && t.passes(rest) < enoughGoodOfRest {
		t.want(rest)
	}
	return len(t.wanted) == 0
}

// fails is how often just this set failed.
func (t *thought) fails(s set) int {
	count := 0
	for _, o := range t.told {
		if o.answer == Bad && slices.Equal(o.set, s) {
			count++
		}
	}
	return count
}

// against are the failures that only one of the culprits explains, and the pair among
// them that failed last.
func (t *thought) against(culprit int, culprits set) (bad int, pair set) {
	for _, o := range t.told {
		if o.answer != Bad || !slices.Contains(o.set, culprit) || slices.ContainsFunc(o.set, func(n int) bool {
			return n != culprit && slices.Contains(culprits, n)
		}) {
			continue
		}
		if bad++; len(o.set) == 2 {
			pair = o.set
		}
	}
	return bad, pair
}

// passes is how often a set passed, alone or as a part of a larger one.
func (t *thought) passes(s set) int {
	count := 0
	for _, o := range t.told {
		if o.answer == Good && s.within(o.set) {
			count++
		}
	}
	return count
}

// stale says whether a set failed last before a part of it passed: the failure may be gone.
func (t *thought) stale(s set) bool {
	for _, o := range slices.Backward(t.told) {
		switch {
		case slices.Equal(o.set, s):
			return false
		case o.answer == Good && o.set.within(s):
			return true
		}
	}
	return false
}

// bothWays says whether some set has failed and passed.
func (t *thought) bothWays() bool {
	first := map[string]Answer{}
	for _, o := range t.told {
		key := o.set.key()
		if a, known := first[key]; known && a != o.answer {
			return true
		}
		first[key] = o.answer
	}
	return false
}

// within says whether all of a set is in another.
func (s set) within(all set) bool {
	return !slices.ContainsFunc(s, func(n int) bool { return !slices.Contains(all, n) })
}

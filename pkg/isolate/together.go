package isolate

import (
	"math/bits"
	"slices"
)

// partnerTries is how many pairs are run to find one that passes where everything has
// failed so far.
const partnerTries = 8

// seekPartner wants pairs of nodes of different sets to run, until one passes. Each of
// the sets is a single node of which nothing is known, or two nodes that fail together;
// when one of these two is to blame, a pair of the others passes. ok is false while it
// wants an answer.
func (t *thought) seekPartner(stuck []set) (ok bool) {
	sets := slices.Clone(stuck)
	slices.SortStableFunc(sets, func(a, b set) int { return len(a) - len(b) }) // what never failed comes first
	tried := 0
	for i := 0; i+1 < len(sets); i += 2 {
		for _, a := range sets[i] {
			for _, b := range sets[i+1] {
				if tried++; tried > partnerTries {
					return true
				}
				if _, known := t.ask(pair(a, b)); !known {
					return false
				}
			}
		}
	}
	return true
}

// smallest finds the smallest set that fails in two sets that pass apart and fail
// together: first what it takes of the one, then what it takes of the other.
func (t *thought) smallest(left, right set) (found, bool) {
	limit := 4*bits.Len(uint(len(left)+len(right))) + 4
	t.tests = limit
	a, ok := t.needed(left, right)
	if !ok {
		return found{}, false
	}
	b, ok := t.needed(right, a)
	if !ok {
		return found{}, false
	}
	both := union(a, b)
	answer, ok := t.ask(both)
	if ok && answer == Bad && t.stale(both) { // every part that it was made of has passed since
		t.want(both)
		return found{}, false
	}
	return found{together: []set{both}, larger: t.tests <= 0, flaky: answer == Good}, ok
}

// needed is what of s has to be there for it to fail together with rest, which passes
// alone: a half of it, or else something of both halves. When too many tests were made,
// it is all of s.
func (t *thought) needed(s, rest set) (set, bool) {
	if len(s) == 1 || t.tests <= 0 {
		return s, true
	}
	left, right := s[:(len(s)+1)/2], s[(len(s)+1)/2:]
	for _, half := range []set{left, right} {
		t.tests--
		answer, ok := t.ask(union(half, rest))
		if !ok {
			return nil, false
		}
		if answer == Bad {
			return t.needed(half, rest)
		}
	}
	a, ok := t.needed(left, union(right, rest))
	if !ok {
		return nil, false
	}
	b, ok := t.needed(right, union(a, rest))
	return union(a, b), ok
}

func union(a, b set) set {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

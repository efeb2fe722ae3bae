package isolate

import (
	"slices"
)

// thought is one pass over what was told. It wants answers that are missing, and then
// gets no further; otherwise it reaches a conclusion.
type thought struct {
	*Search
	wanted []set
	tests  int // of the search for a smallest set
}

// found is what the search in a set came to.
type found struct {
	culprits set
	together []set
	larger   bool
	stuck    []set // fail, or are not known, and nothing that is known to be good can run with their nodes
	flaky    bool  // answers contradict each other
}

func (f *found) add(o found) {
	f.culprits = append(f.culprits, o.culprits...)
	f.together = append(f.together, o.together...)
	f.stuck = append(f.stuck, o.stuck...)
	f.larger = f.larger || o.larger
	f.flaky = f.flaky || o.flaky
}

// conclude looks for culprits among all, then whether the others pass without them, and
// so on with the others when they do not. The conclusion counts unless answers are
// wanted.
func (t *thought) conclude() Conclusion {
	all := make(set, len(t.nodes))
	for i := range all {
		all[i] = i
	}
	if t.bothWays() {
		return Conclusion{Kind: Contradictory, Among: t.names(all)}
	}
	var have found
	rest := all
	for ; len(rest) >= 2; rest = t.without(all, have) {
		answer, ok := t.ask(rest)
		if !ok {
			return Conclusion{}
		}
		if answer == Good {
			break
		}
		f, ok := t.search(rest)
		switch {
		case !ok:
			return Conclusion{}
		case len(f.stuck) > 0:
			return Conclusion{Kind: NotToldApart, Among: t.names(rest)}
		case f.flaky || t.contradicts(f):
			return Conclusion{Kind: Contradictory, Among: t.names(rest)}
		}
		if have.add(f); f.larger {
			break // what fails by its size has as many such sets as one likes
		}
	}
	if !t.confirmed(have, rest) {
		return Conclusion{}
	}
	return t.conclusion(have)
}

func (t *thought) conclusion(f found) Conclusion {
	slices.Sort(f.culprits)
	c := Conclusion{Kind: NotReproducible, Larger: f.larger}
	for _, s := range f.together {
		c.Kind = OnlyTogether
		c.Together = append(c.Together, t.names(s))
	}
	if len(f.culprits) > 0 {
		c.Kind, c.Culprits = Culprits, t.names(f.culprits)
	}
	return c
}

// without is what is left of all nodes without the culprits and one of each set that
// fails only together.
func (t *thought) without(all set, f found) set {
	return slices.DeleteFunc(slices.Clone(all), func(n int) bool {
		return slices.Contains(f.culprits, n) || slices.ContainsFunc(f.together, func(s set) bool { return s[len(s)-1] == n })
	})
}

// contradicts says whether something passed that contains what is to blame.
func (t *thought) contradicts(f found) bool {
	if len(f.culprits)+len(f.together) == 0 {
		return true
	}
	return slices.ContainsFunc(f.culprits, t.passed) || slices.ContainsFunc(f.together, t.inGood)
}

// search looks for what is to blame in a set that fails, until it has an answer for all
// of it. ok is false when answers are wanted.
func (t *thought) search(s set) (found, bool) {
	f, ok := t.halve(s)
	if !ok || len(f.stuck) == 0 {
		return f, ok
	}
	return f, t.seekPartner(f.stuck)
}

// halve looks for what is to blame in a set that fails. ok is false when answers are
// wanted.
func (t *thought) halve(s set) (f found, ok bool) {
	if len(s) == 1 {
		return found{culprits: s}, true
	}
	left, right := s[:(len(s)+1)/2], s[(len(s)+1)/2:]
	answers, ok := t.askBoth(left, right)
	if !ok {
		return f, false
	}
	if answers[0] == Good && answers[1] == Good {
		return t.smallest(left, right)
	}
	for i, half := range []set{left, right} {
		switch {
		case answers[i] == Unknown && len(half) == 1:
			f.stuck = append(f.stuck, half)
		case answers[i] == Bad:
			deeper, ok := t.halve(half)
			if !ok {
				return f, false
			}
			f.add(deeper)
		}
	}
	if len(s) == 2 && len(f.stuck) == 2 {
		f.stuck = []set{s}
	}
	return f, true
}

// askBoth gets the answers for two sets without a common node, from one step if it can.
// A single node without a partner stays Unknown.
func (t *thought) askBoth(left, right set) (answers [2]Answer, ok bool) {
	ok = true
	var busy set
	for i, half := range []set{left, right} {
		run, answer := t.lookUp(half, slices.Concat(left, right, busy))
		if answers[i] = answer; answer == Unknown && run != nil {
			t.want(run)
			busy = append(busy, run...)
			ok = false
		}
	}
	return answers, ok
}

// lookUp is what is known of a set, or else what has to be run to know it: a single
// node runs with a partner that passed, if possible none of avoid. run is nil when there
// is no partner.
func (t *thought) lookUp(s, avoid set) (run set, a Answer) {
	if t.inGood(s) {
		return s, Good
	}
	if len(s) > 1 {
		return s, t.exact(s)
	}
	failed, partner := false, -1
	for n := range t.nodes {
		switch {
		case n == s[0] || !t.passed(n):
		case t.exact(pair(s[0], n)) == Bad:
			if failed = true; t.failsWithout(s[0], n) {
				return nil, Bad
			}
		case t.suspect[pair(s[0], n).key()] > 0: // it has to be seen twice
			return pair(s[0], n), Unknown
		case partner < 0, slices.Contains(avoid, partner) && !slices.Contains(avoid, n):
			partner = n
		}
	}
	switch {
	case partner >= 0:
		return pair(s[0], partner), Unknown
	case failed:
		return nil, Bad // with the only one that it could run with
	}
	return nil, Unknown
}

// failsWithout says whether a node fails without its partner too: else the two may fail
// only together. Its company has to be good on that occasion.
func (t *thought) failsWithout(n, partner int) bool {
	return slices.ContainsFunc(t.told, func(o told) bool {
		return o.answer == Bad && slices.Contains(o.set, n) && !slices.ContainsFunc(o.set, func(c int) bool {
			return c == partner || c != n && !t.passed(c)
		})
	})
}

func pair(a, b int) set { return set{min(a, b), max(a, b)} }

// ask gets the answer for a set of several nodes.
func (t *thought) ask(s set) (Answer, bool) {
	a := t.exact(s)
	if a == Unknown && t.inGood(s) {
		a = Good
	}
	if a == Unknown {
		t.want(s)
	}
	return a, a != Unknown
}

// want asks for a set to be run, unless it has a node in common with one that is
// wanted already: its turn comes.
func (t *thought) want(s set) {
	for _, w := range t.wanted {
		if slices.ContainsFunc(s, func(n int) bool { return slices.Contains(w, n) }) {
			return
		}
	}
	t.wanted = append(t.wanted, slices.Clone(s))
}

// givenUp is a wanted set of which nothing was learnt too often.
func (t *thought) givenUp() set {
	for _, w := range t.wanted {
		if t.unknown[w.key()] >= tries {
			return w
		}
	}
	return nil
}

// exact is what was told last of just this set.
func (t *thought) exact(s set) Answer {
	for _, o := range slices.Backward(t.told) {
		if slices.Equal(o.set, s) {
			return o.answer
		}
	}
	return Unknown
}

// inGood says whether a set passed, or is a part of one that did.
func (t *thought) inGood(s set) bool {
	return slices.ContainsFunc(t.told, func(o told) bool {
		return o.answer == Good && s.within(o.set)
	})
}

// passed says whether a node was in a set that passed.
func (t *thought) passed(n int) bool { return t.inGood(set{n}) }

// Package isolate finds out which of several nodes that fail together are to blame, by
// halving, with as few jobs as possible. It is pure: it proposes sets of nodes to run
// together, and takes what came of them.
package isolate

import (
	"slices"
	"strconv"
	"strings"
)

// Answer is what came of running a set of nodes. The zero value is Unknown: it says
// nothing of the nodes.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Good
	Bad
	// Suspect is Bad once it was said twice of the same set, without a Good or Bad in
	// between: something broke off, which need not be for the nodes.
	Suspect
)

// Kind says what a search came to. The zero value is Searching.
type Kind int

// The kinds of conclusion.
const (
	Searching       Kind = iota // it has not ended
	Culprits                    // some nodes are to blame: the others pass together without them
	OnlyTogether                // no node is to blame alone: a set of them fails only together
	NotReproducible             // all nodes together pass now
	NotToldApart                // everything fails, so that no node has a partner that is known to be good
	Contradictory               // what failed before passed later, or the other way round
	Unanswered                  // a set was run twice, and nothing was learnt of it
)

// String returns the word for the kind as the command prints it.
func (k Kind) String() string {
	names := []string{"searching", "culprits", "only_together", "not_reproducible", "not_told_apart", "contradictory", "unanswered"}
	if k < 0 || int(k) >= len(names) {
		return strconv.Itoa(int(k))
	}
	return names[k]
}

// Conclusion is what a search came to.
type Conclusion struct {
	Kind     Kind
	Culprits []string // in the order of the nodes
	// Together are sets whose nodes pass apart and fail together. There can be some
	// besides Culprits.
	Together [][]string
	// Larger says that the search for the smallest such set was given up: a part of the
	// last of Together may fail already.
	Larger bool
	// Among are the nodes that Kind is about where it names no culprit.
	Among []string
}

// Search is a search for culprits. What was told stands; the rest is worked out again
// from it each time, so that the same answers lead to the same proposals.
type Search struct {
	nodes    []string
	place    map[string]int
	told     []told
	unknown  map[string]int // by set: how often nothing was learnt of it
	suspect  map[string]int // by set: how often it broke off
	proposed []set
	done     Conclusion
}

// set is places in the list of nodes, ascending.
type set []int

type told struct {
	set    set
	answer Answer // Good or Bad
}

func (s set) key() string {
	words := make([]string, len(s))
	for i, n := range s {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

// tries is how often a set is run of which nothing is learnt, or that breaks off.
const tries = 2

// New begins a search among nodes that failed together, at least two, each named once.
func New(nodes []string) *Search {
	s := &Search{nodes: slices.Clone(nodes), place: map[string]int{}, unknown: map[string]int{}, suspect: map[string]int{}}
	for i, n := range nodes {
		s.place[n] = i
	}
	s.think()
	return s
}

// Next returns the sets of nodes to run now, each of at least two nodes. No node is in
// two of them, so they can run at the same time. There is none when the search has
// ended.
func (s *Search) Next() [][]string {
	var out [][]string
	for _, p := range s.proposed {
		out = append(out, s.names(p))
	}
	return out
}

// Tell says what came of running a set of nodes.
func (s *Search) Tell(nodes []string, a Answer) {
	var ran set
	for _, n := range nodes {
		if at, known := s.place[n]; known {
			ran = append(ran, at)
		}
	}
	slices.Sort(ran)
	key := ran.key()
	if a == Suspect {
		if s.suspect[key]++; s.suspect[key] == tries {
			a = Bad
		}
	}
	switch a {
	case Unknown:
		s.unknown[key]++
	case Good, Bad:
		s.told = append(s.told, told{ran, a})
		s.suspect[key] = 0
	case Suspect: // it is proposed again
	}
	s.think()
}

// Conclusion is what the search came to; its kind is Searching until it has ended.
func (s *Search) Conclusion() Conclusion { return s.done }

func (s *Search) names(places set) []string {
	out := make([]string, len(places))
	for i, at := range places {
		out[i] = s.nodes[at]
	}
	return out
}

// think works out what follows from what was told: either sets to run, or the
// conclusion.
func (s *Search) think() {
	t := thought{Search: s}
	conclusion := t.conclude()
	s.proposed, s.done = nil, Conclusion{}
	switch unanswered := t.givenUp(); {
	case len(t.wanted) == 0:
		s.done = conclusion
	case unanswered != nil:
		s.done = Conclusion{Kind: Unanswered, Among: s.names(unanswered)}
	default:
		s.proposed = t.wanted
	}
}

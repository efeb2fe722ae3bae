// Package pairwise says which pairs of nodes are measured in which order, and what
// the measurements of all pairs say of single nodes and single links. It is pure.
package pairwise

import (
	"errors"
	"fmt"
	"strings"
)

// Pair is a link between two nodes, by their places in a list: the server and the
// client.
type Pair [2]int

// All gives the rounds of a tournament in which each of n nodes meets each other
// once. The pairs of a round have no node in common, so they can be measured at the
// same time: an even number of nodes needs n-1 rounds, an odd one n. It is the circle
// method: one node stays and the others turn around it.
func All(n int) [][]Pair {
	if n < 2 {
		return nil
	}
	seats := n + n%2 // of an odd number one sits out each round
	rounds := make([][]Pair, 0, seats-1)
	for round := range seats - 1 {
		var pairs []Pair
		for i := range seats / 2 {
			a, b := seat(i, round, seats), seat(seats-1-i, round, seats)
			if a < n && b < n {
				pairs = append(pairs, Pair{min(a, b), max(a, b)})
			}
		}
		rounds = append(rounds, pairs)
	}
	return rounds
}

// seat is who sits in a place of the circle in a round: the last one never moves.
func seat(place, round, seats int) int {
	if place == seats-1 {
		return seats - 1
	}
	return (place + round) % (seats - 1)
}

// Ring gives the rounds in which each node meets the next one, and the last one the
// first: two rounds for an even number of nodes, three for an odd one.
func Ring(n int) [][]Pair {
	switch {
	case n < 2:
		return nil
	case n == 2:
		return [][]Pair{{{0, 1}}}
	}
	rounds := make([][]Pair, 2, 3)
	for i := range n - 1 {
		rounds[i%2] = append(rounds[i%2], Pair{i, i + 1})
	}
	last := Pair{0, n - 1}
	if n%2 == 0 {
		rounds[1] = append(rounds[1], last)
		return rounds
	}
	return append(rounds, []Pair{last})
}

// Rounds puts pairs into rounds without a common node, each pair as early as it fits
// behind those before it.
func Rounds(pairs []Pair) [][]Pair {
	var rounds [][]Pair
	next := map[int]int{} // by node: the first round that is free
	for _, p := range pairs {
		at := max(next[p[0]], next[p[1]])
		for len(rounds) <= at {
			rounds = append(rounds, nil)
		}
		rounds[at] = append(rounds[at], p)
		next[p[0]], next[p[1]] = at+1, at+1
	}
	return rounds
}

// The ways to choose pairs.
const (
	ModeAll  = "all"
	ModeRing = "ring"
)

// Select gives the rounds of a choice of pairs of nodes: "all", "ring", or a list as
// "a:b,c:d", each pair the server and the client.
func Select(choice string, nodes []string) ([][]Pair, error) {
	switch choice {
	case ModeAll:
		return All(len(nodes)), nil
	case ModeRing:
		return Ring(len(nodes)), nil
	}
	place := make(map[string]int, len(nodes))
	for i, n := range nodes {
		place[n] = i
	}
	var pairs []Pair
	seen := map[Pair]bool{}
	for _, text := range strings.Split(choice, ",") {
		a, b, ok := strings.Cut(strings.TrimSpace(text), ":")
		if !ok {
			return nil, fmt.Errorf("%q is no choice of pairs: all, ring, or a list such as node1:node2,node3:node4", choice)
		}
		var p Pair
		for i, name := range []string{a, b} {
			at, known := place[strings.TrimSpace(name)]
			if !known {
				return nil, fmt.Errorf("the pair %s names the node %q, which is none of the %d nodes of the run", text, name, len(nodes))
			}
			p[i] = at
		}
		switch {
		case p[0] == p[1]:
			return nil, fmt.Errorf("the pair %s is one node twice", text)
		case seen[p] || seen[Pair{p[1], p[0]}]:
			return nil, fmt.Errorf("the pair %s is listed twice", text)
		}
		seen[p] = true
		pairs = append(pairs, p)
	}
	if len(pairs) == 0 {
		return nil, errors.New("no pair is listed")
	}
	return Rounds(pairs), nil
}

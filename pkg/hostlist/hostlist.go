// Package hostlist reads the host lists of SLURM, such as
// rack[0-1]_blade[01-03],login1. It is pure.
//
// What `scontrol show hostnames` answers is what Expand answers: the same names
// in the same order, duplicates kept. It takes more than SLURM 22.05 does, which
// refuses text after the last bracket of a name (n[1-3]-ib) and steps
// (n[0-10:2]), and less where that prints a name that nobody wrote: for a
// bracket that is not closed, a range without an end, or a space in a bracket.
package hostlist

import (
	"fmt"
	"iter"
)

// The bounds of a list.
const (
	MaxHosts = 1_000_000 // of one list, in host names
	MaxName  = 255       // of one host name, in bytes
)

// maxShown bounds what an error repeats of a list, in bytes.
const maxShown = 80

// Error says why a list cannot be read.
type Error struct {
	List    string // as it was given
	Offset  int    // of what is wrong in List, in bytes from 0
	Message string
}

// Error returns the list, shortened, the offset and the message.
func (e *Error) Error() string {
	shown, more := e.List, ""
	if len(shown) > maxShown {
		shown, more = shown[:maxShown], "…"
	}
	return fmt.Sprintf("host list %q%s: byte %d: %s", shown, more, e.Offset, e.Message)
}

// Expand returns the host names of a list in its order, duplicates included. The
// error is an *Error.
func Expand(list string) ([]string, error) {
	names, total, err := parse(list)
	if err != nil {
		return nil, err
	}
	hosts := make([]string, 0, total)
	for _, n := range names {
		for host := range n.hosts() {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// First returns the first host name of a list, and the error that Expand would
// return. It expands no other.
func First(list string) (string, error) {
	names, _, err := parse(list)
	if err != nil {
		return "", err
	}
	return names[0].host(0), nil
}

// name is one element of a list: text[0] bracket[0] text[1] … text[n].
type name struct {
	texts    []string
	brackets []bracket
}

// bracket is what stands between [ and ].
type bracket []span

// span is lo-hi:step, with lo padded to a width.
type span struct {
	lo, hi, step uint64
	width        int
}

func (s span) count() uint64 { return (s.hi-s.lo)/s.step + 1 }

func (s span) number(i uint64) string { return fmt.Sprintf("%0*d", s.width, s.lo+i*s.step) }

// count returns how many numbers the bracket has, or a number beyond MaxHosts.
func (b bracket) count() uint64 {
	var sum uint64
	for _, s := range b {
		if sum += s.count(); sum > MaxHosts {
			break
		}
	}
	return sum
}

func (b bracket) number(i uint64) string {
	for _, s := range b {
		if i < s.count() {
			return s.number(i)
		}
		i -= s.count()
	}
	return ""
}

// count returns how many hosts the name stands for, or a number beyond MaxHosts.
func (n name) count() uint64 {
	product := uint64(1)
	for _, b := range n.brackets {
		if product *= b.count(); product > MaxHosts {
			break
		}
	}
	return product
}

// host returns the host at a position. The last bracket turns fastest, then the
// first, the second and so on: that is the order of scontrol.
func (n name) host(at uint64) string {
	last := len(n.brackets) - 1
	if last < 0 {
		return n.texts[0]
	}
	numbers := make([]string, len(n.brackets))
	take := func(i int) {
		size := n.brackets[i].count()
		numbers[i] = n.brackets[i].number(at % size)
		at /= size
	}
	take(last)
	for i := range last {
		take(i)
	}
	host := n.texts[0]
	for i, number := range numbers {
		host += number + n.texts[i+1]
	}
	return host
}

// longest returns the length of the longest host of the name, in bytes.
func (n name) longest() int {
	sum := 0
	for _, text := range n.texts {
		sum += len(text)
	}
	for _, b := range n.brackets {
		widest := 0
		for _, s := range b {
			widest = max(widest, len(s.number(s.count()-1)))
		}
		sum += widest
	}
	return sum
}

func (n name) hosts() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n.count() {
			if !yield(n.host(i)) {
				return
			}
		}
	}
}

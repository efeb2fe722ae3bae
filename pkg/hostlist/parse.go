package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

// maxDigits bounds a number, padding included, so that it fits a uint64.
const maxDigits = 18

// parser reads a list from left to right. Its zero offset is the beginning.
type parser struct {
	list string
	at   int
}

// parse returns the elements of a list, at least one, and how many hosts they
// are.
func parse(list string) (names []name, total int, err error) {
	p := &parser{list: list}
	var sum uint64
	for {
		p.skipSeparators()
		if p.done() {
			break
		}
		start := p.at
		n, err := p.name()
		if err != nil {
			return nil, 0, err
		}
		if sum += n.count(); sum > MaxHosts {
			return nil, 0, p.fail(start, "more than %d hosts up to here", MaxHosts)
		}
		if long := n.longest(); long > MaxName {
			return nil, 0, p.fail(start, "a host name of %d bytes; at most %d", long, MaxName)
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		return nil, 0, p.fail(0, "no host name")
	}
	return names, int(sum), nil
}

func (p *parser) done() bool { return p.at >= len(p.list) }

func (p *parser) fail(at int, format string, args ...any) error {
	return &Error{List: p.list, Offset: at, Message: fmt.Sprintf(format, args...)}
}

// separates reports whether a byte ends an element. Several in a row are one.
func separates(c byte) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' }

func (p *parser) skipSeparators() {
	for !p.done() && separates(p.list[p.at]) {
		p.at++
	}
}

// name reads one element up to a separator.
func (p *parser) name() (name, error) {
	var n name
	from := p.at
	for ; !p.done() && !separates(p.list[p.at]); p.at++ {
		switch c := p.list[p.at]; {
		case c == '[':
			n.texts = append(n.texts, p.list[from:p.at])
			b, err := p.bracket()
			if err != nil {
				return n, err
			}
			n.brackets = append(n.brackets, b)
			from = p.at + 1
		case c == ']':
			return n, p.fail(p.at, "a ']' without a '['")
		case c < ' ' || c == 0x7f:
			return n, p.fail(p.at, "a control character, %q", c)
		}
	}
	n.texts = append(n.texts, p.list[from:p.at])
	return n, nil
}

// bracket reads [a-b,c,…] and stops at its end, the ']'.
func (p *parser) bracket() (bracket, error) {
	open := p.at
	end := strings.IndexByte(p.list[open:], ']')
	if end < 0 {
		return nil, p.fail(open, "a '[' without a ']'")
	}
	var b bracket
	p.at++
	for words := p.list[p.at : open+end]; ; {
		word, rest, more := strings.Cut(words, ",")
		s, err := p.span(word)
		if err != nil {
			return nil, err
		}
		b = append(b, s)
		p.at += len(word)
		if !more {
			return b, nil
		}
		p.at++
		words = rest
	}
}

// span reads lo, lo-hi or lo-hi:step, which stands at p.at.
func (p *parser) span(word string) (span, error) {
	if word == "" {
		return span{}, p.fail(p.at, "a number is missing")
	}
	ends, step, stepped := strings.Cut(word, ":")
	lo, hi, ranged := strings.Cut(ends, "-")
	s := span{step: 1, width: len(lo)}
	var err error
	if s.lo, err = p.number(p.at, lo); err != nil {
		return s, err
	}
	s.hi = s.lo
	if ranged {
		if s.hi, err = p.number(p.at+len(lo)+1, hi); err != nil {
			return s, err
		}
	}
	if s.hi < s.lo {
		return s, p.fail(p.at, "the range %s runs downwards", ends)
	}
	if !stepped {
		return s, nil
	}
	at := p.at + len(ends) + 1
	if s.step, err = p.number(at, step); err != nil {
		return s, err
	}
	if !ranged || s.step == 0 {
		return s, p.fail(at, "a step belongs to a range and is at least 1")
	}
	return s, nil
}

// number reads a number that stands at an offset.
func (p *parser) number(at int, digits string) (uint64, error) {
	if digits == "" {
		return 0, p.fail(at, "a number is missing")
	}
	for i := range len(digits) {
		if c := digits[i]; c < '0' || c > '9' {
			return 0, p.fail(at+i, "%q where a digit is expected", digits[i:i+1])
		}
	}
	if len(digits) > maxDigits {
		return 0, p.fail(at, "a number of %d digits; at most %d", len(digits), maxDigits)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, p.fail(at, "%v", err)
	}
	return n, nil
}

package hostlist

import (
	"fmt"
	"strconv"
	"strings"
)

// Compress writes host names as a list, for people and for SLURM: neighbours
// that differ in the number at their end share a bracket. Order and duplicates
// are kept, so that Expand gives the same names.
func Compress(hosts []string) string {
	var words []string
	for i := 0; i < len(hosts); {
		prefix, _ := splitNumber(hosts[i])
		var spans []span
		for ; i < len(hosts); i++ {
			p, digits := splitNumber(hosts[i])
			if p != prefix || (digits == "" && len(spans) > 0) {
				break
			}
			if digits == "" {
				words = append(words, hosts[i])
				continue
			}
			spans = join(spans, digits)
		}
		if len(spans) > 0 {
			words = append(words, prefix+write(spans))
		}
	}
	return strings.Join(words, ",")
}

// splitNumber cuts the number off the end of a host name.
func splitNumber(host string) (prefix, digits string) {
	at := len(host)
	for at > 0 && len(host)-at < maxDigits && host[at-1] >= '0' && host[at-1] <= '9' {
		at--
	}
	return host[:at], host[at:]
}

// join adds a number to the last span where it continues that, padding included.
func join(spans []span, digits string) []span {
	n, _ := strconv.ParseUint(digits, 10, 64) // at most maxDigits digits
	if len(spans) > 0 {
		last := &spans[len(spans)-1]
		if n == last.hi+1 && fmt.Sprintf("%0*d", last.width, n) == digits {
			last.hi = n
			return spans
		}
	}
	return append(spans, span{lo: n, hi: n, step: 1, width: len(digits)})
}

func write(spans []span) string {
	var words []string
	for _, s := range spans {
		word := s.number(0)
		if s.hi > s.lo {
			word += "-" + s.number(s.count()-1)
		}
		words = append(words, word)
	}
	if len(spans) == 1 && spans[0].lo == spans[0].hi {
		return words[0]
	}
	return "[" + strings.Join(words, ",") + "]"
}

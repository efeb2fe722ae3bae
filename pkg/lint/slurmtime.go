package lint

import (
	"fmt"
	"strconv"
	"strings"

	"assay/pkg/document"
)

// shortTimes gathers the explicit timeouts that one slurm.time must cover.
type shortTimes struct{ models []timeout }

type timeout struct {
	model   string
	seconds int
}

// note remembers the timeout of a card. -1 is the default and 0 is none: neither
// is a wish that slurm.time could disappoint.
func (s *shortTimes) note(card document.Node) {
	if seconds, ok := card.Get("timeout").Int(); ok && seconds > 0 {
		name := card.Get("name").Text()
		s.models = append(s.models, timeout{name, seconds})
	}
}

// slurmTime checks slurm.time by itself and against timeouts.
func (c *checker) slurmTime(slurm document.Node, times *shortTimes) {
	n := slurm.Get("time")
	if n.Kind() != document.KindString && n.Kind() != document.KindNumber {
		return
	}
	text := n.Text()
	if text == "" || strings.Contains(text, "$") { // filled in later
		return
	}
	limit, unlimited, ok := slurmSeconds(text)
	if !ok {
		c.at(Error, SlurmTimeFormat, n, fmt.Sprintf("%q is no time limit that sbatch takes", text), "write M, M:S, H:M:S, D-H, D-H:M or D-H:M:S, such as 02:30:00")
		return
	}
	if unlimited {
		return
	}
	var longest timeout
	short := 0
	for _, m := range times.models {
		if m.seconds > limit {
			short++
			if m.seconds > longest.seconds {
				longest = m
			}
		}
	}
	if short == 0 {
		return
	}
	message := fmt.Sprintf("the time limit %s is %d s, and the timeout of %q is %d s: SLURM would end it first", text, limit, longest.model, longest.seconds)
	if short > 1 {
		message += fmt.Sprintf(" (and %d more)", short-1)
	}
	c.at(Error, SlurmTimeShort, n, message, "raise slurm.time or lower the timeout")
}

// slurmSeconds reads a time limit as sbatch does: M, M:S, H:M:S, D-H, D-H:M,
// D-H:M:S, or a word for no limit.
func slurmSeconds(text string) (seconds int, unlimited, ok bool) {
	text = strings.TrimSpace(text)
	switch strings.ToUpper(text) {
	case "UNLIMITED", "INFINITE", "-1":
		return 0, true, true
	}
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	d, valid := digits(days)
	if !valid {
		return 0, false, false
	}
	parts := strings.Split(clock, ":")
	values := make([]int, len(parts))
	for i, p := range parts {
		if values[i], valid = digits(p); !valid {
			return 0, false, false
		}
	}
	const minute, hour, day = 60, 3600, 86400
	switch {
	case len(parts) > 3:
		return 0, false, false
	case hasDays:
		var clock [3]int
		copy(clock[:], values)
		return d*day + clock[0]*hour + clock[1]*minute + clock[2], false, true
	case len(parts) == 1:
		return values[0] * minute, values[0] == 0, true
	case len(parts) == 2:
		return values[0]*minute + values[1], false, true
	}
	return values[0]*hour + values[1]*minute + values[2], false, true
}

// digits reads a number of at most nine digits.
func digits(s string) (int, bool) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.Atoi(s)
	return v, err == nil
}

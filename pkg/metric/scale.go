package metric

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isBarePrefix reports whether a word may be the prefix of a unit that was left out:
// "14k" is 14000 to who wrote it. Some are units too (K, T, G), and which is meant
// cannot be told. Lower case m and g are metres and grams.
func isBarePrefix(word string) bool {
	letter, _ := strings.CutSuffix(word, "i")
	if word == "k" {
		return true
	}
	return len(letter) == 1 && strings.Contains("KMGTPE", letter)
}

// otherScale reports whether two units measure the same in steps of another size, so
// that a number in one of them is surely another number in the other.
func otherScale(a, b string) bool { return !SameUnit(a, b) && dimension(a) == dimension(b) }

// dimension is what a unit measures, whatever its size: "s" of "ms" and of "min", "b/s"
// of "GiB/s" and of "Mbit/s". Of a unit that is not registered it is the unit without
// what may be a prefix.
func dimension(unit string) string {
	unit = withoutPrefix(registered(spelledOut(unit)))
	switch plain := strings.ToLower(registered(unit)); plain {
	case "min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours", "day", "days":
		return "s"
	case "°f", "f":
		return "°c"
	default:
		return strings.ReplaceAll(plain, "bit", "b")
	}
}

// registered spells a unit as reports print it, if it is a registered one.
func registered(unit string) string {
	for _, s := range Suffixes() {
		if SameUnit(unit, s.Unit) {
			return s.Unit
		}
	}
	return unit
}

// withoutPrefix is a unit without "k", "Mi", "u" and the like.
func withoutPrefix(unit string) string {
	for _, prefix := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "k", "K", "M", "G", "T", "P", "E", "m", "u", "µ", "μ", "n"} {
		rest, ok := strings.CutPrefix(unit, prefix)
		if r, _ := utf8.DecodeRuneInString(rest); ok && unicode.IsLetter(r) && rest != "in" && rest != "ins" { // min is no prefix of in
			return rest
		}
	}
	return unit
}

// scale says what is wrong with the unit of a value.
type scale int

const (
	scaleFits    scale = iota
	scaleDoubted       // another unit, that may be a word for the same
	scaleOther         // certainly another number than the metric promises
)

// scaleOf compares the unit that a value was written in with those that its metric is
// declared in or ends in, of which it returns the one that counts.
func (g *group) scaleOf(spec Spec, r Reading) (scale, string) {
	units := g.promised(spec)
	known := func(u string) bool { return SameUnit(u, r.Unit) }
	switch {
	case r.Unit == "" || r.NotApplicable || r.Label:
		return scaleFits, ""
	case isBarePrefix(r.Unit):
		if r.Unit == spec.Unit {
			return scaleFits, ""
		}
		return scaleOther, ""
	case len(units) == 0 || slices.ContainsFunc(units, known):
		return scaleFits, ""
	case otherScale(r.Unit, units[0]):
		return scaleOther, units[0]
	case spec.Unit == "" && IsPerformance(r.Source): // a free name: planA is in no amperes
		return scaleFits, ""
	}
	return scaleDoubted, units[0]
}

// promised lists the units that the numbers of a group are in: as it is declared, and
// as its name ends. A name that ends in PerS is a rate of anything.
func (g *group) promised(spec Spec) []string {
	var units []string
	if spec.Unit != "" {
		units = append(units, spec.Unit)
	}
	if unit, ok := UnitOf(g.key.name); ok && !strings.HasSuffix(g.key.name, "PerS") {
		units = append(units, unit)
	}
	return units
}

// misread is the problem of the first value that counts and is in another unit than
// the metric; nil: there is none. Such a number is not converted, and not compared.
func (g *group) misread(spec Spec) *Problem {
	for _, v := range g.counting(spec) {
		if s, unit := g.scaleOf(spec, v.reading); s == scaleOther {
			p := otherNumber(v, unit)
			p.Code = CodeNotANumber
			return &p
		}
	}
	return nil
}

// counting lists the values that make the measurement.
func (g *group) counting(spec Spec) []ranked {
	switch spec.Aggregate {
	case "":
		return []ranked{g.first()}
	case AggregateRoot:
		return g.values[:1]
	}
	return g.values
}

// otherUnit warns of the first value that was written in another unit than the metric
// has. The number is never converted.
func (g *group) otherUnit(spec Spec) []Problem {
	for _, v := range g.values {
		switch s, unit := g.scaleOf(spec, v.reading); s {
		case scaleFits:
		case scaleOther:
			return []Problem{otherNumber(v, unit)}
		case scaleDoubted:
			r, is := v.reading, "its name ends in "
			if spec.Unit != "" {
				is = "it is declared in "
			}
			p := disagreement(r, "rank %d wrote %s in %s, and %s; the number is taken as it stands", v.rank, title(r.Name, r.Model), r.Unit, is+unit)
			p.From = v.from
			return []Problem{p}
		}
	}
	return nil
}

// otherNumber says that a value is not the number that stands there.
func otherNumber(v ranked, unit string) Problem {
	r := v.reading
	why := fmt.Sprintf("and its unit is %s; numbers are not converted", unit)
	if unit == "" {
		why = fmt.Sprintf("and %s alone may be a multiple or a unit; write the number out, or declare the unit", r.Unit)
	}
	p := disagreement(r, "rank %d wrote %s as %s, %s", v.rank, title(r.Name, r.Model), written(r), why)
	p.From, p.Text = v.from, written(r)
	return p
}

// written is a value with its unit.
func written(r Reading) string { return clip(r.Text) + " " + clip(r.Unit) }

// each lists what every rank reported, each as a measurement of its own. What is in
// another unit is a label, but for the value that the problem of the group is about.
func (g *group) each(spec Spec, misread bool) []Measurement {
	var list []Measurement
	for _, v := range g.values {
		m := g.one(spec, v)
		if s, _ := g.scaleOf(spec, v.reading); s == scaleOther {
			if misread && v.rank == g.first().rank {
				continue
			}
			m.Value, m.Text, m.Label = 0, written(v.reading), true
			if units := g.promised(spec); len(units) > 0 {
				m.Unit = units[0]
			} else {
				m.Unit = ""
			}
		}
		list = append(list, *m)
	}
	return list
}

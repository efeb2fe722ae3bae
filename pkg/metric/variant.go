package metric

import (
	"cmp"
	"slices"
)

// variant is what the last line said that spelled a name in one way.
type variant struct{ key, value string }

// maxVariants is how many other spellings of one name are remembered.
const maxVariants = 4

// otherVariants is what spellings of a name said last that next does not have.
func otherVariants(old, next entry) []variant {
	if len(old.others) == 0 && old.key() == next.key() {
		return nil // nearly always
	}
	var out []variant
	for _, o := range append(slices.Clone(old.others), variant{old.key(), old.value()}) {
		if o.key != next.key() {
			out = slices.DeleteFunc(out, func(s variant) bool { return s.key == o.key })
			out = append(out, o)
		}
	}
	return out[max(len(out)-maxVariants, 0):]
}

// key is the name as the line spelled it.
func (e entry) key() string { return cmp.Or(e.spelled, e.name()) }

// merged says where another spelling of a name said another thing.
func (e entry) merged() []Problem {
	var out []Problem
	for _, o := range e.others {
		if o.value != e.value() {
			out = append(out, disagreement(Reading{Name: e.name(), Source: e.reading.Source},
				"%s was reported as %s (%s) and as %s (%s), which are spellings of one metric; the last of them counts, %s",
				e.name(), clip(o.value), o.key, clip(e.value()), e.key(), e.key()))
		}
	}
	return out
}

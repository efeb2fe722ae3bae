package plan

import (
	"fmt"
	"strconv"
	"strings"
)

const askDuration, askVariant = "DURATION_SECONDS", "VARIANT_"

// askPrefixes begin the names of what a workload is told beyond its place: our own, and
// those of the burn-in runner contract.
func askPrefixes() []string { return []string{"ASSAY_", "BURNIN_"} }

// Asked are the variables that tell a workload for how long to go on and which variant
// of its test it is. The manifest's own variables win over them.
func (a Attempt) Asked() map[string]string {
	env := map[string]string{}
	for _, prefix := range askPrefixes() {
		if a.DurationSeconds > 0 {
			env[prefix+askDuration] = strconv.Itoa(a.DurationSeconds)
		}
		for axis, value := range a.Job.Variant {
			env[prefix+askVariant+variableName(axis)] = value
		}
	}
	return env
}

// IsAsked reports whether a variable is one that Asked may have.
func IsAsked(name string) bool {
	for _, prefix := range askPrefixes() {
		if rest, ok := strings.CutPrefix(name, prefix); ok && (rest == askDuration || strings.HasPrefix(rest, askVariant)) {
			return true
		}
	}
	return false
}

// SameVariable says of which axes of variants, if any, a workload would find the values
// in one variable, so that it could have only one of them; empty when of none.
func SameVariable(axes []string) (why string) {
	first := map[string]string{}
	for _, axis := range axes {
		name := VariantVariable(axis)
		if was, twice := first[name]; twice {
			return fmt.Sprintf("the axes %q and %q have one variable, %s, which can hold the value of one of them only", was, axis, name)
		}
		first[name] = axis
	}
	return ""
}

// VariantVariable is the variable in which a workload finds the value of an axis.
func VariantVariable(axis string) string { return askPrefixes()[0] + askVariant + variableName(axis) }

// variableName is the name of an axis as that of a variable.
func variableName(axis string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, axis)
}

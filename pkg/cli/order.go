package cli

import (
	"maps"
	"slices"

	"assay/pkg/phrase"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// plural writes a number of things, such as "1 job" or "3 jobs".
func plural(n int, noun string) string { return phrase.Count(n, noun) }

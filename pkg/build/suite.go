package build

import (
	"maps"
	"slices"
	"strings"

	"assay/pkg/discover"
	"assay/pkg/suite"
)

// entry is what an image of a card is made an entry of the manifest for.
type entry struct {
	key  string
	test string // key of the test of a suite; empty when there is none
	raw  map[string]any
}

// entries are the entries of an image: one, or one for each test of the suite that
// runs its card.
func (o Options) entries(c discover.Found, image Image) []entry {
	if o.Suite == nil {
		return []entry{{key: image.Key, raw: c.Raw}}
	}
	var out []entry
	for _, t := range o.Suite.Tests {
		if t.Card == c.Name { // what the key of an image adds to the card's name tells its architecture
			out = append(out, entry{key: t.Key + strings.TrimPrefix(image.Key, c.Name), test: t.Key, raw: t.Raw})
		}
	}
	return out
}

// miss keeps the keys that the entries of a failed image would have had: a test that
// cannot run must not leave its suite, where nobody would miss it.
func (b *built) miss(lost []entry) {
	for _, e := range lost {
		if !slices.Contains(b.keys[e.test], e.key) {
			b.keys[e.test] = append(b.keys[e.test], e.key)
		}
	}
}

// suiteBlock is the suite as the manifest has it. keys are those of the entries of each
// test: one with an image for each of several architectures has several. The key of a
// test whose image failed is that of no entry, by which a run is refused.
func suiteBlock(s suite.Frozen, keys map[string][]string) map[string]any {
	tests := []any{}
	for _, t := range s.Tests {
		for _, key := range keys[t.Key] {
			e := maps.Clone(t.Entry)
			e["key"] = key
			tests = append(tests, e)
		}
	}
	block := maps.Clone(s.Block)
	block["tests"] = tests
	return block
}

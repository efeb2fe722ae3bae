package lint

import (
	"strings"

	"assay/pkg/document"
)

// schema reports violations of a schema and near misses of its keys, but for
// what stands in blocks that are ignored anyway.
func (c *checker) schema(name string, n document.Node, ignored []string) {
	s, err := c.linter.schema(name)
	if err != nil {
		c.at(Error, Internal, n, err.Error(), "")
		return
	}
	violations, moreErrors := s.Validate(n)
	misses, moreWarnings := s.NearMisses(n)
	c.more[Error] = c.more[Error] || moreErrors
	c.more[Warning] = c.more[Warning] || moreWarnings
	for _, p := range misspelt(violations, misses) {
		if !within(p.Pointer, ignored) {
			c.problem(p)
		}
	}
}

func within(pointer string, blocks []string) bool {
	for _, b := range blocks {
		if pointer == b || strings.HasPrefix(pointer, b+"/") {
			return true
		}
	}
	return false
}

// misspelt puts violations and near misses together. A required key that is
// missing and has a near miss beside it is one problem, at the key that is there.
func misspelt(violations, misses []document.Problem) []document.Problem {
	at := map[string]int{}
	for i, m := range misses {
		parent := m.Pointer[:strings.LastIndexByte(m.Pointer, '/')]
		at[parent+"/"+document.Escape(m.Key)] = i
	}
	all := misses
	for _, v := range violations {
		i, near := at[v.Pointer+"/"+document.Escape(v.Key)]
		if v.Code != document.CodeRequired || !near {
			all = append(all, v)
			continue
		}
		all[i].Code, all[i].Warning = v.Code, false
		all[i].Message = strings.TrimSuffix(all[i].Message, "?") + ", which is required?"
	}
	return all
}

package report

import "html/template"

// pageMatrix is how many nodes a matrix on the page has at most; rankings say what a
// larger one would.
const pageMatrix = 64

// pairFuncs are what the template of pairs needs.
func pairFuncs() template.FuncMap {
	class := map[string]string{suspectMark: "suspect", unclearMark: "unclear", noMark: ""}
	return template.FuncMap{
		"pairTitle":   Pairs.title,
		"pairSaid":    Pairs.said,
		"pairMatrix":  func(p Pairs) bool { return len(p.Nodes) <= pageMatrix },
		"pairNode":    func(p Pairs, n string) string { return class[p.nodeMark(n)] },
		"pairLink":    func(p Pairs, a, b string) string { return class[p.linkMark(a, b)] },
		"pairCell":    Pairs.cell,
		"pairCompare": Pairs.compare,
	}
}

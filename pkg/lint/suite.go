package lint

import "assay/pkg/document"

// suite checks a suite. What its cards are is not known here, so only what a
// test overrides is checked.
func (c *checker) suite(root document.Node) {
	c.schema("suite", root, nil)
	if root.Kind() != document.KindObject {
		return
	}
	c.overrides(root)
	tests := root.Get("tests")
	if tests.Kind() != document.KindArray {
		return
	}
	for t := range tests.Children() {
		if c.full() {
			break
		}
		if t.Kind() == document.KindObject {
			c.overrides(t)
		}
	}
}

func (c *checker) overrides(n document.Node) {
	c.thresholds(n.Get("thresholds"), nil, n)
	c.envNames(n.Get("env_vars"))
	c.nodesAgree(n.Get("slurm"), n.Get("distributed"))
	c.launcher(n.Get("distributed"))
	c.scope(n, deployment{})
	variants := n.Get("variants")
	if variants.Kind() != document.KindArray {
		return
	}
	for v := range variants.Children() {
		c.thresholds(v.Get("thresholds"), nil, v)
		c.envNames(v.Get("env_vars"))
	}
}

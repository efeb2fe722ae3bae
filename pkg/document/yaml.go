package document

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"assay/pkg/phrase"
)

// The limits that keep a small YAML file from becoming a huge document.
const (
	maxYAMLSize    = 32 << 20  // bytes of a YAML file
	maxYAMLContent = 64 << 20  // bytes of its content as JSON
	maxAliasNodes  = 1_000_000 // values that come out of aliases
)

// parseYAML turns the source into JSON, notes where each value came from, and
// parses that: one tree for both notations.
func (d *Document) parseYAML() ([]Problem, bool) {
	root, problem, ok := d.readYAML()
	if !ok {
		return []Problem{problem}, false
	}
	c := &converter{d: d, open: map[*yaml.Node]bool{}, anchors: map[string]*yaml.Node{}}
	c.value(root, 0, -1)
	if c.fatal {
		return c.problems, false
	}
	d.json = string(c.out)
	d.origins = c.origins
	more, ok := d.parseJSON()
	return append(c.problems, more...), ok
}

// readYAML reads the one YAML document of the source.
func (d *Document) readYAML() (root *yaml.Node, p Problem, ok bool) {
	if len(d.source) > maxYAMLSize {
		return nil, d.problemAt(0, CodeYAML, fmt.Sprintf("a YAML file of more than %d MiB is not read", maxYAMLSize>>20), "write it as JSON"), false
	}
	if p, bad := d.unreadable(); bad {
		return nil, p, false
	}
	// The scanner has panicked on hostile input before; a file must never end the process.
	defer func() {
		if r := recover(); r != nil {
			root, p, ok = nil, d.problemAt(0, CodeSyntax, fmt.Sprintf("the YAML cannot be read: %v", r), ""), false
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(d.source))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, d.problemAt(0, CodeEmpty, "the file has only comments", ""), false
	case err != nil:
		return nil, d.yamlSyntax(err), false
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, d.problemAt(d.offsetOf(second.Line, second.Column), CodeYAML, "a second YAML document begins here", "keep one document in a file"), false
	case !errors.Is(err, io.EOF):
		return nil, d.yamlSyntax(err), false
	}
	if len(doc.Content) == 0 {
		return nil, d.problemAt(0, CodeEmpty, "the file is empty", ""), false
	}
	return doc.Content[0], Problem{}, true
}

// converter writes the JSON form of a YAML tree. It meets nodes in the order in
// which the JSON parser will add them, so origins line up with nodes.
type converter struct {
	d        *Document
	out      []byte
	origins  []origin
	problems []Problem
	fatal    bool
	path     []string // keys and indices of the value being written, escaped
	aliased  int      // values written because of an alias
	inAlias  int
	open     map[*yaml.Node]bool // what is being written
	anchors  map[string]*yaml.Node
}

// value writes one node. keyOffset is where its key stands, or -1.
func (c *converter) value(n *yaml.Node, depth, keyOffset int) {
	if c.fatal {
		return
	}
	if n.Kind == yaml.AliasNode {
		if c.open[n.Alias] {
			c.fail(n, CodeYAML, fmt.Sprintf("the alias *%s stands inside of what it stands for", phrase.Clip(n.Value, 60)))
			return
		}
		c.inAlias++
		c.value(n.Alias, depth, keyOffset)
		c.inAlias--
		return
	}
	c.open[n] = true
	defer delete(c.open, n)
	if c.tooMuch(n, depth) {
		return
	}
	at := c.d.offsetOf(n.Line, n.Column)
	if keyOffset < 0 {
		keyOffset = at
	}
	c.origins = append(c.origins, origin{uint32(keyOffset), uint32(at)})
	c.surprises(n)
	switch n.Kind {
	case yaml.MappingNode:
		c.mapping(n, depth)
	case yaml.SequenceNode:
		c.out = append(c.out, '[')
		for i, item := range n.Content {
			if i > 0 {
				c.out = append(c.out, ',')
			}
			c.path = append(c.path, strconv.Itoa(i))
			c.value(item, depth+1, -1)
			c.path = c.path[:len(c.path)-1]
		}
		c.out = append(c.out, ']')
	default:
		c.scalar(n)
	}
}

func (c *converter) tooMuch(n *yaml.Node, depth int) bool {
	if c.inAlias > 0 {
		c.aliased++
	}
	switch {
	case depth >= MaxDepth && n.Kind != yaml.ScalarNode:
		c.fail(n, CodeDepth, fmt.Sprintf("the nesting is deeper than %d levels", MaxDepth))
	case c.aliased > maxAliasNodes || len(c.out) > maxYAMLContent:
		c.fail(n, CodeYAML, "the aliases of this file expand to more than it is allowed to hold")
	}
	return c.fatal
}

func (c *converter) fail(n *yaml.Node, code, message string) {
	c.fatal = true
	c.report(n, code, message)
}

func (c *converter) report(n *yaml.Node, code, message string) *Problem {
	p := c.d.problemAt(c.d.offsetOf(n.Line, n.Column), code, message, "")
	if len(c.path) > 0 && code != CodeDepth { // a pointer that deep helps nobody
		p.Pointer = "/" + strings.Join(c.path, "/")
	}
	c.problems = append(c.problems, p)
	return &c.problems[len(c.problems)-1]
}

func (c *converter) mapping(n *yaml.Node, depth int) {
	c.out = append(c.out, '{')
	first := true
	own := map[string]bool{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			c.fail(k, CodeYAML, "a key must be a word or a quoted string")
			return
		}
		if k.ShortTag() == "!!merge" {
			merges = append(merges, v)
			continue
		}
		own[k.Value] = true
		c.member(k, v, depth, &first)
	}
	for _, m := range merges {
		c.merge(m, own, depth, &first)
	}
	c.out = append(c.out, '}')
}

func (c *converter) member(k, v *yaml.Node, depth int, first *bool) {
	if !*first {
		c.out = append(c.out, ',')
	}
	*first = false
	c.quote(k, k.Value)
	c.out = append(c.out, ':')
	c.path = append(c.path, Escape(k.Value))
	c.value(v, depth+1, c.d.offsetOf(k.Line, k.Column))
	c.path = c.path[:len(c.path)-1]
}

// merge writes the members that `<<` brings in and that are not there yet.
func (c *converter) merge(m *yaml.Node, own map[string]bool, depth int, first *bool) {
	c.inAlias++
	defer func() { c.inAlias-- }()
	if m.Kind == yaml.AliasNode {
		m = m.Alias
	}
	if c.open[m] {
		c.fail(m, CodeYAML, "<< stands inside of what it brings in")
		return
	}
	c.open[m] = true
	defer delete(c.open, m)
	if c.tooMuch(m, depth) {
		return
	}
	switch m.Kind {
	case yaml.SequenceNode:
		for _, item := range m.Content {
			c.merge(item, own, depth+1, first)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(m.Content); i += 2 {
			k, v := m.Content[i], m.Content[i+1]
			switch {
			case k.ShortTag() == "!!merge":
				c.merge(v, own, depth+1, first)
			case k.Kind == yaml.ScalarNode && !own[k.Value]:
				own[k.Value] = true
				c.member(k, v, depth, first)
			}
		}
	default:
		c.fail(m, CodeYAML, "<< must name a mapping")
	}
}

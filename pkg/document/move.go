package document

import (
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// MoveYAML returns texts of a YAML document in which members of the root stand
// under another member, which is added when it is missing: one text for each
// place that they can be put, the best first. Where an anchor has to stay before
// its aliases, only some of them have the content that is meant. Whole lines are
// moved and indented; all others stay as they are, byte by byte. A layout in
// which the members have no lines of their own is an error.
func MoveYAML(d *Document, keys []string, under string) ([]string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(d.source), &doc); err != nil {
		return nil, err
	}
	m := &mover{lines: splitLines(d.source), root: doc.Content[0], cut: map[int]bool{}}
	if err := m.layout(); err != nil {
		return nil, err
	}
	var blocks []span
	for _, key := range keys {
		s, err := m.member(key)
		if err != nil {
			return nil, fmt.Errorf("%w; move %s under %s by hand", err, key, under)
		}
		blocks = append(blocks, s)
	}
	slices.SortFunc(blocks, func(a, b span) int { return a.from - b.from })
	return m.texts(blocks, keys, under)
}

// span is the lines of one member, with the remarks right above it.
type span struct{ from, to int }

// mover moves lines of a text.
type mover struct {
	lines  []string // with their line ends
	root   *yaml.Node
	indent string // of the root's keys
	end    int    // where the last member ends
	cut    map[int]bool
}

// splitLines cuts a text after each line end.
func splitLines(s string) []string {
	all := strings.SplitAfter(s, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// layout checks that the root is written as lines of its own.
func (m *mover) layout() error {
	if m.root.Kind != yaml.MappingNode || m.root.Style&yaml.FlowStyle != 0 {
		return fmt.Errorf("line %d: the file is not written as one key a line; move the blocks by hand", m.root.Line)
	}
	if text := strings.Join(m.lines, ""); strings.Count(text, "\r") != strings.Count(text, "\r\n") || strings.ContainsAny(text, "\u0085\u2028\u2029") {
		return fmt.Errorf("the file has line ends other than LF and CRLF; move the blocks by hand")
	}
	m.indent = strings.Repeat(" ", m.root.Column-1)
	m.end = len(m.lines)
	last := m.root.Content[len(m.root.Content)-2].Line - 1
	for i := last; i < len(m.lines); i++ {
		if line := strings.TrimRight(m.lines[i], " \t\r\n"); i > last && (line == "..." || strings.HasPrefix(line, "--- ") || line == "---") {
			m.end = i
			break
		}
	}
	return nil
}

// member returns the lines of a member of the root.
func (m *mover) member(key string) (span, error) {
	i := m.find(m.root, key)
	if i < 0 {
		return span{}, fmt.Errorf("%s comes from a merge (<<)", key)
	}
	k := m.root.Content[i]
	if line := m.lines[k.Line-1]; k.Kind != yaml.ScalarNode || k.Anchor != "" || strings.TrimSpace(line[:min(len(line), k.Column-1)]) != "" {
		return span{}, fmt.Errorf("line %d: %s does not begin its line", k.Line, key)
	}
	s := m.spanOf(m.root, i, m.end, m.indent)
	for s.from > 1 && m.remark(s.from-1, m.indent) {
		s.from--
	}
	if s.from == 1 && m.remark(0, m.indent) { // what the file begins with is about the file
		s.from = k.Line - 1
	}
	return s, nil
}

// spanOf returns the lines of the member at i of a mapping that ends before a
// line: up to the next member, without the empty lines and the remarks before it.
func (m *mover) spanOf(mapping *yaml.Node, i, end int, indent string) span {
	s := span{mapping.Content[i].Line - 1, end}
	if i+2 < len(mapping.Content) {
		s.to = mapping.Content[i+2].Line - 1
	}
	for s.to > s.from+1 && (strings.TrimSpace(m.lines[s.to-1]) == "" || m.remark(s.to-1, indent)) {
		s.to--
	}
	return s
}

// remark says whether a line is a comment that is not indented deeper than its
// siblings.
func (m *mover) remark(line int, indent string) bool {
	text := strings.TrimLeft(m.lines[line], " ")
	return strings.HasPrefix(text, "#") && len(m.lines[line])-len(text) <= len(indent)
}

func (m *mover) find(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key && mapping.Content[i].Kind == yaml.ScalarNode {
			return i
		}
	}
	return -1
}

// texts builds the results.
func (m *mover) texts(blocks []span, keys []string, under string) ([]string, error) {
	i := m.find(m.root, under)
	if i < 0 {
		header := m.indent + under + ":" + m.newline()
		first, last := blocks[0].from, blocks[len(blocks)-1].from
		texts := []string{m.build(first, header, blocks, "  ")}
		if last != first {
			texts = append(texts, m.build(last, header, blocks, "  "))
		}
		return texts, nil
	}
	home, err := m.member(under)
	if err != nil {
		return nil, fmt.Errorf("%w; write it as a block of lines", err)
	}
	k, target := m.root.Content[i], m.root.Content[i+1]
	switch {
	case target.Kind == yaml.AliasNode:
		return nil, fmt.Errorf("line %d: %s is an alias; write it out first", target.Line, under)
	case target.Kind == yaml.ScalarNode || len(target.Content) == 0:
		return m.fill(k, target, home, blocks)
	case target.Style&yaml.FlowStyle != 0 || target.Content[0].Line == k.Line:
		return nil, fmt.Errorf("line %d: %s is written in braces; write it as a block of lines, or put %s into it by hand", target.Line, under, strings.Join(keys, ", "))
	}
	indent := strings.Repeat(" ", target.Column-1)
	for _, key := range keys {
		if at := m.find(target, key); at >= 0 { // it is null
			old := m.spanOf(target, at, home.to, indent)
			for line := old.from; line < old.to; line++ {
				m.cut[line] = true
			}
		}
	}
	unit := strings.TrimPrefix(indent, m.indent)
	return []string{m.build(home.to, "", blocks, unit), m.build(target.Content[0].Line-1, "", blocks, unit)}, nil
}

// fill puts the blocks into a member that is null or empty.
func (m *mover) fill(k, target *yaml.Node, home span, blocks []span) ([]string, error) {
	if target.Anchor != "" || target.Style&yaml.TaggedStyle != 0 || home.to != k.Line {
		return nil, fmt.Errorf("line %d: %s has an anchor, a tag or several lines although it is empty; put the blocks under it by hand", k.Line, k.Value)
	}
	if target.Kind == yaml.MappingNode || target.Value != "" {
		line := []rune(m.lines[k.Line-1])
		before, rest := string(line[:target.Column-1]), string(line[target.Column-1:])
		_, rest, found := strings.Cut(rest, "}")
		if target.Kind == yaml.ScalarNode {
			rest, found = strings.CutPrefix(string(line[target.Column-1:]), target.Value)
		}
		if !found {
			return nil, fmt.Errorf("line %d: %s is not empty; put the blocks under it by hand", k.Line, k.Value)
		}
		if strings.TrimSpace(rest) == "" {
			before = strings.TrimRight(before, " ")
		}
		m.lines[k.Line-1] = before + rest
	}
	return []string{m.build(home.to, "", blocks, "  ")}, nil
}

// build writes the text with the blocks before a line, after a header.
func (m *mover) build(at int, header string, blocks []span, unit string) string {
	gone := func(i int) bool {
		return m.cut[i] || slices.ContainsFunc(blocks, func(s span) bool { return i >= s.from && i < s.to })
	}
	var out strings.Builder
	write := func(line string) {
		if s := out.String(); s != "" && !strings.HasSuffix(s, "\n") {
			out.WriteString(m.newline())
		}
		out.WriteString(line)
	}
	for i := 0; i <= len(m.lines); i++ {
		if i == at {
			write(header)
			for _, s := range blocks {
				for _, line := range m.lines[s.from:s.to] {
					if strings.TrimSpace(line) != "" {
						line = unit + line
					}
					write(line)
				}
			}
		}
		if i < len(m.lines) && !gone(i) {
			write(m.lines[i])
		}
	}
	text := out.String()
	if !strings.HasSuffix(m.lines[len(m.lines)-1], "\n") {
		text = strings.TrimSuffix(text, m.newline())
	}
	return text
}

// newline returns the line end of the file.
func (m *mover) newline() string {
	if strings.HasSuffix(m.lines[0], "\r\n") {
		return "\r\n"
	}
	return "\n"
}

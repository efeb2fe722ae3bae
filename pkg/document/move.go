package document

import (
	"bytes"
	"fmt"

	yaml "go.yaml.in/yaml/v3"
)

// MoveYAML returns the text of a YAML document in which members of the root
// stand under another member, which is added when it is missing. Comments are
// kept; the layout is that of the YAML library.
func MoveYAML(d *Document, keys []string, under string) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(d.source), &doc); err != nil {
		return "", err
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return "", fmt.Errorf("line %d: the root is not a mapping", root.Line)
	}
	target := memberOf(root, under)
	if target == nil {
		target = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: under}, target)
	}
	switch target.Kind { //nolint:exhaustive // the other kinds need nothing
	case yaml.AliasNode:
		return "", fmt.Errorf("line %d: %s is an alias; write it out first", target.Line, under)
	case yaml.ScalarNode: // null
		*target = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	for _, key := range keys {
		if !moveMember(root, target, key) {
			return "", fmt.Errorf("%s comes from a merge (<<); write it out first", key)
		}
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return "", err
	}
	return out.String(), e.Close()
}

func memberOf(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// moveMember moves a member, replacing one of the same key, which is null.
func moveMember(from, to *yaml.Node, key string) bool {
	for i := 0; i+1 < len(from.Content); i += 2 {
		if from.Content[i].Value != key {
			continue
		}
		pair := []*yaml.Node{from.Content[i], from.Content[i+1]}
		from.Content = append(from.Content[:i:i], from.Content[i+2:]...)
		for k := 0; k+1 < len(to.Content); k += 2 {
			if to.Content[k].Value == key {
				to.Content = append(to.Content[:k:k], to.Content[k+2:]...)
				break
			}
		}
		to.Content = append(to.Content, pair...)
		return true
	}
	return false
}

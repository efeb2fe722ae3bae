package document

import (
	"strconv"
	"strings"
)

// Pointer returns the JSON pointer (RFC 6901) of the value.
func (n Node) Pointer() string {
	if n.d == nil || n.i == 0 {
		return ""
	}
	parent := Node{n.d, n.at().parent}
	if parent.Kind() == KindObject {
		return parent.Pointer() + "/" + Escape(n.Key())
	}
	return parent.Pointer() + "/" + strconv.Itoa(int(n.at().keyStart))
}

// Escape makes a key fit for a JSON pointer.
func Escape(key string) string {
	if !strings.ContainsAny(key, "~/") {
		return key
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// Find returns the value a JSON pointer names, or the zero Node.
func (d *Document) Find(pointer string) Node {
	if pointer == "" {
		return d.Root()
	}
	tokens := strings.Split(pointer, "/")[1:]
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return d.Root().descend(tokens)
}

// descend follows keys and array indices; it gives the zero Node where there is
// nothing.
func (n Node) descend(tokens []string) Node {
	for _, t := range tokens {
		if n.Kind() != KindArray {
			n = n.Get(t)
			continue
		}
		index, err := strconv.Atoi(t)
		if err != nil || index < 0 || index >= n.Len() {
			return Node{}
		}
		for c := range n.Children() {
			if index == 0 {
				n = c
				break
			}
			index--
		}
	}
	return n
}

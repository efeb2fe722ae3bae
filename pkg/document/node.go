package document

import (
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds. The zero value is Unknown: there is no value.
const (
	KindUnknown Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// Node is one value of a document. The zero value stands for "not there": every
// method works on it, so that a path can be followed without a check at each
// step.
type Node struct {
	d *Document
	i uint32
}

func (n Node) at() *node { return &n.d.nodes[n.i] }

// Exists says whether there is a value.
func (n Node) Exists() bool { return n.d != nil }

// Given says whether there is a value other than null.
func (n Node) Given() bool { return n.d != nil && n.at().kind != KindNull }

// Kind returns the kind of the value.
func (n Node) Kind() Kind {
	if n.d == nil {
		return KindUnknown
	}
	return n.at().kind
}

// Len returns the number of children of an array or object.
func (n Node) Len() int {
	if n.d == nil {
		return 0
	}
	return int(n.at().count)
}

// Children yields the children of an array or object in document order.
func (n Node) Children() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.Len() == 0 {
			return
		}
		for i := n.i + 1; i != 0; i = n.d.nodes[i].next {
			if !yield(Node{n.d, i}) {
				return
			}
		}
	}
}

// Get returns the member of an object; of several with the same key the last.
func (n Node) Get(key string) Node {
	var found Node
	if n.Kind() != KindObject {
		return found
	}
	for c := range n.Children() {
		if c.Key() == key {
			found = c
		}
	}
	return found
}

// Key returns the key of a member of an object, and "" for anything else.
func (n Node) Key() string {
	if n.d == nil {
		return ""
	}
	v := n.at()
	return n.d.unquote(v.keyStart, v.keyEnd, v.keyEscaped)
}

// Raw returns the value as JSON text.
func (n Node) Raw() string {
	if n.d == nil {
		return ""
	}
	return n.d.json[n.at().start:n.at().end]
}

// Text returns the content of a string, and the JSON text of anything else.
func (n Node) Text() string {
	if n.Kind() != KindString {
		return n.Raw()
	}
	return n.d.unquote(n.at().start, n.at().end, n.at().escaped)
}

// unquote returns the content of the quoted string at [start, end) of the JSON.
func (d *Document) unquote(start, end uint32, escaped bool) string {
	if end-start < 2 {
		return ""
	}
	if !escaped {
		return d.json[start+1 : end-1]
	}
	text, err := jsontext.AppendUnquote(nil, d.json[start:end])
	if err != nil { // the parser accepted it
		return d.json[start+1 : end-1]
	}
	return string(text)
}

// Number returns the value of a number. One beyond the range of float64 is an
// infinity.
func (n Node) Number() (float64, bool) {
	if n.Kind() != KindNumber {
		return 0, false
	}
	v, _ := strconv.ParseFloat(n.Raw(), 64) // out of range gives ±Inf
	return v, true
}

// Int returns an integer that is spelled as a number or as a string.
func (n Node) Int() (int, bool) {
	switch n.Kind() { //nolint:exhaustive // nothing else is an integer
	case KindString:
		v, err := strconv.Atoi(strings.TrimSpace(n.Text()))
		return v, err == nil
	case KindNumber:
		f, _ := n.Number()
		if f != math.Trunc(f) || math.Abs(f) > 1<<52 {
			return 0, false
		}
		return int(f), true
	}
	return 0, false
}

// Value returns the value as Go values; see Document.Value.
func (n Node) Value() any {
	switch n.Kind() { //nolint:exhaustive // null and nothing are nil
	case KindObject:
		m := make(map[string]any, n.Len())
		for c := range n.Children() {
			m[c.Key()] = c.Value()
		}
		return m
	case KindArray:
		list := make([]any, 0, n.Len())
		for c := range n.Children() {
			list = append(list, c.Value())
		}
		return list
	case KindString:
		return n.Text()
	case KindBool:
		return n.Raw() == "true"
	case KindNumber:
		return n.numberValue()
	}
	return nil
}

// numberValue keeps the text of an ordinary number. One with an exponent, or a
// very long one, becomes a finite float64: exact arithmetic on 1e999999999 would
// take for ever.
func (n Node) numberValue() any {
	raw := n.Raw()
	if len(raw) <= 32 && !strings.ContainsAny(raw, "eE") {
		return json.Number(raw)
	}
	v, _ := n.Number()
	return math.Max(-math.MaxFloat64, math.Min(math.MaxFloat64, v))
}

// Offsets returns where a value, with its key if it has one, begins and ends in
// the source. It is meaningful for JSON only.
func (n Node) Offsets() (start, end int) {
	v := n.at()
	if v.keyEnd > 0 {
		return int(v.keyStart), int(v.end)
	}
	return int(v.start), int(v.end)
}

// ValueOffsets returns where a value begins and ends in the source, without its
// key. It is meaningful for JSON only.
func (n Node) ValueOffsets() (start, end int) { return int(n.at().start), int(n.at().end) }

// Position returns where the value begins.
func (n Node) Position() Position {
	if n.d == nil {
		return Position{}
	}
	if n.d.origins != nil {
		return n.d.position(int(n.d.origins[n.i].value))
	}
	return n.d.position(int(n.at().start))
}

// KeyPosition returns where the key begins, or the value where there is no key.
func (n Node) KeyPosition() Position {
	switch {
	case n.d == nil:
		return Position{}
	case n.at().keyEnd == 0:
		return n.Position()
	case n.d.origins != nil:
		return n.d.position(int(n.d.origins[n.i].key))
	}
	return n.d.position(int(n.at().keyStart))
}

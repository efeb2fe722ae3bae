package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"assay/pkg/phrase"
)

// parser builds the tree of a JSON text. It does not recurse, so that no input
// can exhaust the stack.
type parser struct {
	d        *Document
	dec      *jsontext.Decoder
	open     []frame // arrays and objects that are not closed yet
	problems []Problem
	// key is the quoted key that waits for its value; keyEnd is 0 for none.
	key, keyEnd uint32
	keyEscaped  bool
}

// frame is an open array or object, with its newest child.
type frame struct{ container, last uint32 }

// parseJSON reads d.json. It returns false when there is no usable tree.
func (d *Document) parseJSON() ([]Problem, bool) {
	p := &parser{d: d}
	// A buffer is read in place. Duplicate keys are findings, not the end.
	p.dec = jsontext.NewDecoder(bytes.NewBuffer([]byte(d.json)), jsontext.AllowDuplicateNames(true))
	d.nodes = make([]node, 0, len(d.json)/28+1)
	for {
		if err := p.step(); err != nil {
			return append(p.problems, p.syntax(err)), false
		}
		if len(p.open) == 0 && len(d.nodes) > 0 {
			break
		}
		if len(p.open) > MaxDepth {
			return append(p.problems, d.problemAt(int(p.dec.InputOffset())-1, CodeDepth,
				fmt.Sprintf("the nesting is deeper than %d levels", MaxDepth), "")), false
		}
	}
	if p.dec.PeekKind() != 0 {
		return append(p.problems, p.trailing()), false
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return append(p.problems, p.trailing()), false
	}
	return p.problems, true
}

// step reads one key, one scalar, or one bracket.
func (p *parser) step() error {
	kind := p.dec.PeekKind()
	switch kind { //nolint:exhaustive // everything else is a scalar
	case '{', '[':
		if _, err := p.dec.ReadToken(); err != nil {
			return err
		}
		k := KindObject
		if kind == '[' {
			k = KindArray
		}
		end := uint32(p.dec.InputOffset())
		p.open = append(p.open, frame{container: p.add(node{start: end - 1, kind: k})})
		return nil
	case '}', ']':
		if _, err := p.dec.ReadToken(); err != nil {
			return err
		}
		p.close()
		return nil
	}
	raw, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	end := uint32(p.dec.InputOffset())
	start := end - uint32(len(raw))
	escaped := kind == '"' && bytes.IndexByte(raw, '\\') >= 0
	if p.wantsKey() {
		p.key, p.keyEnd, p.keyEscaped = start, end, escaped
		return nil
	}
	i := p.add(node{start: start, end: end, kind: scalarKind(kind), escaped: escaped})
	if kind == '0' {
		p.checkNumber(i, string(raw))
	}
	return nil
}

func scalarKind(k jsontext.Kind) Kind {
	switch k { //nolint:exhaustive // the others are true and false
	case '"':
		return KindString
	case '0':
		return KindNumber
	case 'n':
		return KindNull
	}
	return KindBool
}

func (p *parser) wantsKey() bool {
	if len(p.open) == 0 || p.keyEnd > 0 {
		return false
	}
	return p.d.nodes[p.open[len(p.open)-1].container].kind == KindObject
}

// add appends a node and links it to its parent and its elder sibling.
func (p *parser) add(v node) uint32 {
	i := uint32(len(p.d.nodes))
	if p.keyEnd > 0 {
		v.keyStart, v.keyEnd, v.keyEscaped = p.key, p.keyEnd, p.keyEscaped
		p.keyEnd = 0
	}
	if len(p.open) > 0 {
		f := &p.open[len(p.open)-1]
		v.parent = f.container
		if v.keyEnd == 0 {
			v.keyStart = p.d.nodes[f.container].count
		}
		p.d.nodes[f.container].count++
		if f.last != 0 {
			p.d.nodes[f.last].next = i
		}
		f.last = i
	}
	p.d.nodes = append(p.d.nodes, v)
	return i
}

func (p *parser) close() {
	f := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	p.d.nodes[f.container].end = uint32(p.dec.InputOffset())
	if p.d.nodes[f.container].kind == KindObject {
		p.checkDuplicates(Node{p.d, f.container})
	}
}

// checkDuplicates reports keys that an object has more than once.
func (p *parser) checkDuplicates(object Node) {
	if object.Len() < 2 {
		return
	}
	if object.Len() > 32 {
		p.checkManyDuplicates(object)
		return
	}
	var store [32]Node
	seen := store[:0]
	for c := range object.Children() {
		key := c.Key()
		for _, s := range seen {
			if v := s.at(); v.keyEnd-v.keyStart == c.at().keyEnd-c.at().keyStart || v.keyEscaped || c.at().keyEscaped {
				if s.Key() == key {
					p.duplicate(s, c)
					break
				}
			}
		}
		seen = append(seen, c)
	}
}

func (p *parser) checkManyDuplicates(object Node) {
	seen := make(map[string]Node, object.Len())
	for c := range object.Children() {
		if first, ok := seen[c.Key()]; ok {
			p.duplicate(first, c)
			continue
		}
		seen[c.Key()] = c
	}
}

func (p *parser) duplicate(first, second Node) {
	p.problems = append(p.problems, Problem{
		Code: CodeDuplicate, Pointer: p.pointer() + "/" + Escape(second.Key()), Position: second.KeyPosition(),
		Message: fmt.Sprintf("the key %q is already on line %d; only the last one counts", second.Key(), first.KeyPosition().Line),
		Fix:     "remove or rename one of them",
	})
}

// pointer names the newest child of the innermost open container.
func (p *parser) pointer() string {
	if len(p.open) == 0 {
		return ""
	}
	return Node{p.d, p.open[len(p.open)-1].last}.Pointer()
}

// checkNumber reports a number that no float64 can hold.
func (p *parser) checkNumber(i uint32, raw string) {
	if len(raw) < 300 && !strings.ContainsAny(raw, "eE") {
		return
	}
	if _, err := strconv.ParseFloat(raw, 64); err != nil {
		n := Node{p.d, i}
		p.problems = append(p.problems, Problem{
			Code: CodeNumberRange, Pointer: p.pointer(), Position: n.Position(),
			Message: fmt.Sprintf("%s is not a finite number: its magnitude is beyond 1.8e308", phrase.Clip(raw, 24)),
		})
	}
}

func (p *parser) trailing() Problem {
	offset := p.d.skipSpace(int(p.dec.InputOffset()))
	if strings.HasPrefix(p.d.source[offset:], "//") || strings.HasPrefix(p.d.source[offset:], "/*") || strings.HasPrefix(p.d.source[offset:], "#") {
		return p.d.problemAt(offset, CodeSyntax, noComments, commentFix)
	}
	return p.d.problemAt(offset, CodeSyntax, "there is more after the end of the document", "keep one JSON value in the file")
}

func (d *Document) problemAt(offset int, code, message, fix string) Problem {
	return Problem{Code: code, Position: d.position(offset), Message: message, Fix: fix}
}

func (d *Document) skipSpace(offset int) int {
	for offset < len(d.source) && strings.IndexByte(" \t\r\n", d.source[offset]) >= 0 {
		offset++
	}
	return min(offset, len(d.source))
}

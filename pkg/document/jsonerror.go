package document

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	noComments = "JSON has no comments"
	commentFix = `put the remark into a key that begins with _, such as "_comment"`
)

// syntax turns the decoder's error into one that says what a person did.
func (p *parser) syntax(err error) Problem {
	offset := int(p.dec.InputOffset())
	var s *jsontext.SyntacticError
	if errors.As(err, &s) {
		offset = int(s.ByteOffset)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return p.unfinished()
	}
	offset, message, fix := p.d.explain(offset)
	if message == "" {
		message = plain(err, s)
	}
	result := p.d.problemAt(offset, CodeSyntax, message, fix)
	if len(p.open) > 0 {
		result.Pointer = Node{p.d, p.open[len(p.open)-1].container}.Pointer()
	}
	return result
}

// unfinished says what is still open at the end of the file.
func (p *parser) unfinished() Problem {
	message := "the file ends in the middle of a value"
	if len(p.open) > 0 {
		n := Node{p.d, p.open[len(p.open)-1].container}
		bracket := "}"
		if n.Kind() == KindArray {
			bracket = "]"
		}
		pos := n.Position()
		message = fmt.Sprintf("the file ends before the %s that closes line %d, column %d", bracket, pos.Line, pos.Column)
	}
	return p.d.problemAt(len(p.d.source), CodeSyntax, message, "")
}

// explain recognises the usual mistakes at an offset where JSON ends.
func (d *Document) explain(offset int) (at int, message, fix string) {
	rest := d.source[offset:]
	before := strings.TrimRight(d.source[:offset], " \t\r\n")
	switch {
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"), strings.HasPrefix(rest, "#"):
		return offset, noComments, commentFix
	case strings.HasPrefix(rest, ","):
		next := d.skipSpace(offset + 1)
		if next < len(d.source) && strings.IndexByte("}]", d.source[next]) >= 0 {
			return offset, fmt.Sprintf("a comma before %c is not JSON", d.source[next]), "remove the comma"
		}
		return offset, "a value is missing before this comma", ""
	case strings.HasPrefix(rest, "'"):
		return offset, "this is Python, not JSON: a string stands in double quotes", `write "…" instead of '…'`
	case rest != "" && rest[0] < 0x20:
		return offset, fmt.Sprintf("a string may not contain the control character %q as it stands", rest[0]), fmt.Sprintf("write it as \\u%04x, or a line break as \\n", rest[0])
	case strings.HasPrefix(rest, `"`) && strings.HasSuffix(before, `"`):
		return offset, "a comma or colon is missing before this string", ""
	}
	if r, size := utf8.DecodeRuneInString(rest); r == utf8.RuneError && size == 1 {
		return offset, "the file is not UTF-8 here", "save the file as UTF-8"
	}
	return d.explainWord(offset)
}

// explainWord recognises bare words that other notations have.
func (d *Document) explainWord(offset int) (at int, message, fix string) {
	if offset > 0 && d.source[offset-1] == '-' { // of -Infinity
		offset--
	}
	word := bareWord(d.source[offset:])
	switch word {
	case "":
		return offset, "", ""
	case "NaN", "nan", "Infinity", "-Infinity", "inf", "-inf":
		return offset, word + " is not JSON: a number is finite", "leave the key out, or write null"
	case "True", "False":
		return offset, word + " is Python, not JSON", "write " + strings.ToLower(word)
	case "None":
		return offset, word + " is Python, not JSON", "write null"
	}
	if next := d.skipSpace(offset + len(word)); next < len(d.source) && d.source[next] == ':' {
		return offset, fmt.Sprintf("the key %s stands without quotes", word), fmt.Sprintf("write %q", word)
	}
	return offset, "", ""
}

func bareWord(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = len(s)
	}
	return s[:min(end, 64)]
}

// plain is the decoder's own message without its package and its offset.
func plain(err error, s *jsontext.SyntacticError) string {
	if s != nil && s.Err != nil {
		return s.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "jsontext: ")
}

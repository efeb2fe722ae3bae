package build

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pythonToJSON rewrites a Python literal as JSON; ok is false when text is none.
func pythonToJSON(text string) (out string, ok bool) {
	p := &python{rest: text}
	var b strings.Builder
	if err := p.value(&b, 0); err != nil {
		return "", false
	}
	if p.space(); p.rest != "" {
		return "", false
	}
	return b.String(), true
}

// python reads dicts, lists, tuples, strings, numbers, True, False and None.
type python struct {
	rest string
}

var errNotPython = errors.New("not a Python literal")

// maxPythonDepth keeps hostile input from exhausting the stack.
const maxPythonDepth = 200

func (p *python) space() {
	for {
		p.rest = strings.TrimLeft(p.rest, " \t\r\n")
		if !strings.HasPrefix(p.rest, "#") {
			return
		}
		_, p.rest, _ = strings.Cut(p.rest, "\n")
	}
}

func (p *python) take(prefix string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, prefix)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *python) value(b *strings.Builder, depth int) error {
	switch {
	case depth > maxPythonDepth:
		return errNotPython
	case p.take("{"):
		return p.items(b, "{", "}", depth)
	case p.take("["):
		return p.items(b, "[", "]", depth)
	case p.take("("):
		return p.items(b, "(", ")", depth)
	}
	if s, ok := p.text(); ok {
		return writeString(b, s)
	}
	return p.word(b)
}

// items reads the content of a dict, list or tuple, whose opening is taken.
func (p *python) items(b *strings.Builder, open, end string, depth int) error {
	dict := open == "{"
	first, last := "[", "]"
	if dict {
		first, last = "{", "}"
	}
	b.WriteString(first)
	for n := 0; !p.take(end); n++ {
		if n > 0 {
			if !p.take(",") {
				return errNotPython
			}
			if p.take(end) {
				break
			}
			b.WriteString(", ")
		}
		if dict {
			key, ok := p.text()
			if !ok || !p.take(":") {
				return errNotPython
			}
			if err := writeString(b, key); err != nil {
				return err
			}
			b.WriteString(": ")
		}
		if err := p.value(b, depth+1); err != nil {
			return err
		}
	}
	b.WriteString(last)
	return nil
}

// word reads True, False, None, their JSON spellings, or a number.
func (p *python) word(b *strings.Builder) error {
	p.space()
	end := strings.IndexAny(p.rest, ",:]}) \t\r\n#")
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	switch word {
	case "True", "true":
		word = "true"
	case "False", "false":
		word = "false"
	case "None", "null":
		word = "null"
	default:
		number := strings.TrimPrefix(strings.ReplaceAll(word, "_", ""), "+")
		if i, err := strconv.ParseInt(number, 0, 64); err == nil && strings.ContainsAny(number, "xXoObB") {
			number = strconv.FormatInt(i, 10)
		}
		if !json.Valid([]byte(number)) || strings.ContainsAny(number, `"[{`) {
			f, err := strconv.ParseFloat(number, 64)
			text, jerr := json.Marshal(f)
			if err != nil || jerr != nil {
				return errNotPython
			}
			number = string(text)
		}
		word = number
	}
	b.WriteString(word)
	return nil
}

// text reads one string, or several beside each other, which Python joins.
func (p *python) text() (string, bool) {
	var b strings.Builder
	for n := 0; ; n++ {
		p.space()
		raw := false
		rest := p.rest
		if len(rest) > 1 && strings.IndexByte("rRuU", rest[0]) >= 0 && (rest[1] == '\'' || rest[1] == '"') {
			raw = rest[0] == 'r' || rest[0] == 'R'
			rest = rest[1:]
		}
		if rest == "" || rest[0] != '\'' && rest[0] != '"' {
			return b.String(), n > 0
		}
		quote := rest[:1]
		if triple := strings.Repeat(quote, 3); strings.HasPrefix(rest, triple) {
			quote = triple
		}
		rest, ok := unquote(&b, rest[len(quote):], quote, raw)
		if !ok {
			return "", false
		}
		p.rest = rest
	}
}

// unquote writes a string up to its closing quote and returns what follows it.
func unquote(b *strings.Builder, s, quote string, raw bool) (rest string, ok bool) {
	for s != "" {
		switch {
		case strings.HasPrefix(s, quote):
			return s[len(quote):], true
		case s[0] == '\n' && len(quote) == 1:
			return "", false
		case s[0] != '\\' || len(s) == 1:
			b.WriteByte(s[0])
			s = s[1:]
		case raw:
			b.WriteString(s[:2])
			s = s[2:]
		case s[1] == '\n':
			s = s[2:]
		case strings.IndexByte(`abfnrtvxuU01234567\'"`, s[1]) < 0: // Python keeps the backslash
			b.WriteString(s[:2])
			s = s[2:]
		case s[1] == '\'' || s[1] == '"':
			b.WriteByte(s[1])
			s = s[2:]
		default:
			r, _, tail, err := strconv.UnquoteChar(s, 0)
			if err != nil {
				return "", false
			}
			b.WriteString(string([]rune{r}))
			s = tail
		}
	}
	return "", false
}

func writeString(b *strings.Builder, s string) error {
	if !utf8.ValidString(s) {
		return errNotPython
	}
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	b.WriteString(strings.TrimSuffix(text.String(), "\n"))
	return nil
}

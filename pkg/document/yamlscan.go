package document

import (
	"regexp"
	"strings"
)

// scan is what of a YAML text is open at its end: brackets and a quote. It looks
// at characters only, so that it can say something about a text that no parser
// accepts.
type scan struct {
	text  string
	at    int
	open  []int // offsets of brackets
	quote int   // offset of a quote, -1 for none
	plain bool  // inside a word without quotes
}

func scanYAML(text string) *scan {
	s := &scan{text: text, quote: -1}
	for s.at < len(text) {
		if s.quote >= 0 {
			s.quoted()
		} else {
			s.step()
		}
	}
	return s
}

// closers returns what closes the text.
func (s *scan) closers() string {
	var b strings.Builder
	if s.quote >= 0 {
		b.WriteByte(s.text[s.quote])
	}
	if len(s.open) > 0 {
		b.WriteByte('\n')
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		b.WriteByte(s.text[s.open[i]] + 2) // ] and } stand two behind [ and {
	}
	return b.String()
}

// quoted reads on inside quotes.
func (s *scan) quoted() {
	c := s.text[s.at]
	switch {
	case c == '\\' && s.text[s.quote] == '"', c == '\'' && s.text[s.quote] == '\'' && strings.HasPrefix(s.text[s.at:], "''"):
		s.at = min(s.at+2, len(s.text))
	default:
		if c == s.text[s.quote] {
			s.quote = -1
		}
		s.at++
	}
}

// step reads on outside of quotes.
func (s *scan) step() {
	c := s.text[s.at]
	space := s.at == 0 || strings.IndexByte(" \t\r\n", s.text[s.at-1]) >= 0
	next := s.at+1 >= len(s.text) || strings.IndexByte(" \t\r\n", s.text[s.at+1]) >= 0
	flow := len(s.open) > 0
	switch {
	case c == '#' && space:
		s.skip("\n")
	case c == '\n':
		s.plain = false
		s.at++
	case c == ' ' || c == '\t' || c == '\r':
		s.at++
	case flow && (c == ']' || c == '}'):
		s.open, s.plain = s.open[:len(s.open)-1], false
		s.at++
	case c == '[' || c == '{':
		if flow || !s.plain {
			s.open, s.plain = append(s.open, s.at), false
		}
		s.at++
	case flow && c == ',', c == ':' && (next || flow && !s.plain), (c == '-' || c == '?') && next && !s.plain:
		s.plain = false
		s.at++
	case s.plain:
		s.at++
	case c == '"' || c == '\'':
		s.quote = s.at
		s.at++
	case c == '&' || c == '*' || c == '!':
		if flow {
			s.skip(" \t\r\n,]}")
		} else {
			s.skip(" \t\r\n")
		}
	case !flow && (c == '|' || c == '>') && blockScalar.MatchString(s.rest()):
		s.block()
	default:
		s.plain = true
		s.at++
	}
}

// blockScalar is what stands at the end of a line before a text of several lines.
var blockScalar = regexp.MustCompile(`^[|>][0-9+-]*[ \t]*(#.*)?\r?$`)

// rest returns the rest of the line.
func (s *scan) rest() string {
	line, _, _ := strings.Cut(s.text[s.at:], "\n")
	return line
}

// skip goes to the next character of a set, or to the end.
func (s *scan) skip(until string) {
	if n := strings.IndexAny(s.text[s.at:], until); n >= 0 {
		s.at += n
		return
	}
	s.at = len(s.text)
}

// block skips a text of several lines: those that are indented deeper than the
// key, or the dash, that it belongs to.
func (s *scan) block() {
	begin := strings.LastIndexByte(s.text[:s.at], '\n') + 1
	indent, dash := begin, begin-1
	for indent < s.at && (s.text[indent] == ' ' || s.text[indent] == '-' && s.text[indent+1] == ' ') {
		if s.text[indent] == '-' {
			dash = indent
		}
		indent++
	}
	if indent == s.at {
		indent = dash
	}
	indent -= begin
	for {
		s.skip("\n")
		line, _, _ := strings.Cut(strings.TrimPrefix(s.text[s.at:], "\n"), "\n")
		if s.at == len(s.text) || strings.TrimSpace(line) != "" && len(line)-len(strings.TrimLeft(line, " ")) <= indent {
			return
		}
		s.at++
	}
}

package document

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// The library says at most in which line the construct begins that has a mistake
// in it. The place of the mistake itself is found by asking how much of the file
// can be read without it.

// maxProbed is the largest YAML file, in bytes, that is read over and over to
// find a mistake.
const maxProbed = 256 << 10

// unreadable finds what no YAML may hold, before the library does: it does not
// say where.
func (d *Document) unreadable() (Problem, bool) {
	for i, r := range d.source {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(d.source[i:], "\ufffd"):
			return d.problemAt(i, CodeSyntax, "the file is not UTF-8 here", "save the file as UTF-8"), true
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f, r >= 0x80 && r < 0xa0 && r != 0x85, r == 0xfffe, r == 0xffff:
			return d.problemAt(i, CodeSyntax, fmt.Sprintf("YAML may not contain the control character %q as it stands", r), fmt.Sprintf(`write it as \u%04x in double quotes`, r)), true
		}
	}
	return Problem{}, false
}

var yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// yamlMessage is the library's message without the line.
func yamlMessage(err error) (message string, line int) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error(), 0
	}
	line, _ = strconv.Atoi(m[1])
	return strings.ReplaceAll(m[2], "\n", " "), line
}

// yamlSyntax turns the library's error into one that has its place.
func (d *Document) yamlSyntax(err error) Problem {
	message, line := yamlMessage(err)
	if strings.HasPrefix(message, "exceeded max depth") {
		return d.yamlDepth()
	}
	if p, ok := d.unclosed(message); ok {
		return p
	}
	p := Problem{Code: CodeSyntax, Message: message}
	offset, found := d.locate(func(text string) bool { return yamlFails(text) == message })
	name, isAlias := strings.CutPrefix(message, "unknown anchor '")
	name, _, _ = strings.Cut(name, "'")
	if isAlias && !found {
		at := strings.Index(d.source, "*"+name)
		offset, found = at+len(name), at >= 0
	}
	switch {
	case !found:
		p.Position = d.lineStart(line)
	case isAlias:
		p.Position = d.position(offset - len(name))
		p.Message = fmt.Sprintf("the alias *%s has no anchor &%s before it", name, name)
	case strings.HasPrefix(message, "did not find expected") && !d.behindKey(offset), strings.HasSuffix(message, "expected ':'"):
		p.Position = d.lineStart(d.position(offset).Line) // it is about the line as a whole
	default:
		p.Position = d.position(offset)
	}
	if message == "mapping values are not allowed in this context" {
		p.Fix = `put the text in quotes if the ": " belongs to it`
	}
	if text, _ := d.Line(p.Line); strings.HasPrefix(strings.TrimLeft(text, " "), "\t") || strings.Contains(message, "tab") {
		p.Fix = "indent with spaces; YAML does not allow tabs there"
	}
	return p
}

// unclosed recognises a bracket or a quote that is open at the end of the file.
func (d *Document) unclosed(message string) (Problem, bool) {
	s := scanYAML(d.source)
	switch {
	case s.quote >= 0 && strings.HasSuffix(message, "end of stream"):
		return d.problemAt(s.quote, CodeSyntax, fmt.Sprintf("the %c that opens here is not closed", d.source[s.quote]), ""), true
	case len(s.open) == 0:
		return Problem{}, false
	case strings.HasPrefix(message, "did not find expected ','"), message == "did not find expected node content", strings.HasSuffix(message, "expected ':'"):
		at := s.open[len(s.open)-1]
		return d.problemAt(at, CodeSyntax, fmt.Sprintf("the %c that opens here is not closed", d.source[at]), ""), true
	}
	return Problem{}, false
}

// yamlDepth finds where the nesting becomes too deep.
func (d *Document) yamlDepth() Problem {
	p := d.problemAt(0, CodeDepth, fmt.Sprintf("the nesting is deeper than %d levels", MaxDepth), "")
	if s := scanYAML(d.source); len(s.open) > MaxDepth {
		p.Position = d.position(s.open[MaxDepth])
	} else if offset, found := d.locate(tooDeep); found {
		p.Position = d.position(offset)
	}
	return p
}

// tooDeep says whether a text is nested deeper than MaxDepth.
func tooDeep(text string) bool {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		message, _ := yamlMessage(err)
		return strings.HasPrefix(message, "exceeded max depth")
	}
	var deeper func(n *yaml.Node, depth int) bool
	deeper = func(n *yaml.Node, depth int) bool {
		return depth > MaxDepth && n.Kind != yaml.ScalarNode ||
			slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return deeper(c, depth+1) })
	}
	return deeper(&doc, 0)
}

// locate returns the offset of the first character without which a mistake is
// not there: the last one of the shortest beginning of the file that has it when
// everything open in it is closed. First the line is sought, then the column.
func (d *Document) locate(wrong func(text string) bool) (offset int, found bool) {
	if len(d.source) > maxProbed {
		return 0, false
	}
	fails := func(end int) bool {
		text := d.source[:end]
		return wrong(text + scanYAML(text).closers())
	}
	var ends []int
	for i := range len(d.source) {
		if d.source[i] == '\n' {
			ends = append(ends, i+1)
		}
	}
	ends = append(ends, len(d.source))
	line := sort.Search(len(ends)-1, func(i int) bool { return fails(ends[i]) })
	begin := 0
	if line > 0 {
		begin = ends[line-1]
	}
	var columns []int
	for i := range strings.TrimRight(d.source[begin:ends[line]], "\r\n") {
		columns = append(columns, begin+i)
	}
	if len(columns) == 0 || !fails(ends[line]) {
		return 0, false
	}
	column := sort.Search(len(columns)-1, func(i int) bool { return fails(columns[i+1]) })
	return columns[column], true
}

// behindKey says whether a key stands before an offset in its line.
func (d *Document) behindKey(offset int) bool {
	line := d.source[strings.LastIndexByte(d.source[:offset], '\n')+1 : offset]
	return strings.Contains(line, ": ")
}

// lineStart returns the place of the first character of a line that is not a
// blank.
func (d *Document) lineStart(line int) Position {
	text, _ := d.Line(line)
	return Position{max(line, 1), len(text) - len(strings.TrimLeft(text, " \t")) + 1}
}

// yamlFails returns the library's message about a text, "" for none.
func yamlFails(text string) (message string) {
	defer func() {
		if r := recover(); r != nil {
			message = fmt.Sprint(r)
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(text))
	for range 2 {
		var n yaml.Node
		if err := dec.Decode(&n); err != nil {
			if errors.Is(err, io.EOF) {
				return ""
			}
			message, _ = yamlMessage(err)
			return message
		}
	}
	return ""
}

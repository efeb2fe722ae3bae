// Package document reads JSON and YAML into a tree that knows where each value
// stands in its file, and validates the tree against a JSON Schema. It is the one
// package that knows the schema and YAML libraries.
//
// Lines and columns begin at 1. A column counts characters (Unicode code
// points), not bytes; a byte order mark is not counted.
package document

import (
	"path/filepath"
	"strings"
	"sync"
)

// Format is the notation of a document.
type Format int

// The formats. The zero value is Unknown.
const (
	FormatUnknown Format = iota
	FormatJSON
	FormatYAML
)

// Position is a place in a file. The zero value means that there is none.
type Position struct {
	Line, Column int
}

// Problem is something wrong with a document, with its place in the file.
type Problem struct {
	Code    string // stable, see the Code constants
	Pointer string // JSON pointer (RFC 6901); empty for the document as a whole
	Position
	Warning bool   // the document can be used all the same
	Message string // one sentence
	Fix     string // what to write instead, where that is known
	Key     string // the key that is required and missing, or that was probably meant
}

// The codes of problems.
const (
	CodeEmpty       = "EMPTY"
	CodeSyntax      = "SYNTAX"
	CodeBOM         = "BOM"
	CodeEncoding    = "ENCODING"
	CodeDepth       = "DEPTH"
	CodeDuplicate   = "DUPLICATE_KEY"
	CodeNumberRange = "NUMBER_RANGE"
	CodeYAML        = "YAML_UNSUPPORTED"
	CodeType        = "SCHEMA_TYPE"
	CodeEnum        = "SCHEMA_ENUM"
	CodeRequired    = "SCHEMA_REQUIRED"
	CodeRange       = "SCHEMA_RANGE"
	CodePattern     = "SCHEMA_PATTERN"
	CodeOther       = "SCHEMA"
	CodeNearMiss    = "NEAR_MISS_KEY"
)

// MaxDepth is how deep arrays and objects may be nested.
const MaxDepth = 1000

// Document is a parsed file. It is safe for concurrent use.
type Document struct {
	format Format
	source string // the file without its byte order mark
	json   string // the content as JSON; the source itself for a JSON file
	bom    bool
	nodes  []node
	// origins has the place in source of each node; nil for JSON, where the node
	// says it itself.
	origins []origin

	indexOnce   sync.Once
	checkpoints []checkpoint // made when a position is first asked for
}

// node is one value, 32 bytes. Nodes lie in document order, the root first.
type node struct {
	start, end       uint32 // in json
	keyStart, keyEnd uint32 // the quoted key in json; keyEnd is 0 in a list, and keyStart then the index
	next             uint32 // next sibling; 0 for none
	parent           uint32
	count            uint32 // children of an array or object
	kind             Kind
	escaped          bool // the string has escapes
	keyEscaped       bool
}

// origin is where a value and its key stand in the source.
type origin struct{ key, value uint32 }

// Parse reads a document. The name tells JSON from YAML by its extension, and
// the first character does where it cannot. The document is nil when a problem
// leaves no content to speak of; problems that are warnings never do.
func Parse(name string, data []byte) (*Document, []Problem) {
	d := &Document{source: string(data)}
	var problems []Problem
	if rest, ok := strings.CutPrefix(d.source, "\ufeff"); ok {
		d.source, d.bom = rest, true
		problems = append(problems, Problem{
			Code: CodeBOM, Position: Position{1, 1}, Warning: true,
			Message: "the file begins with a byte order mark, which many tools do not accept",
			Fix:     "save the file as UTF-8 without a byte order mark",
		})
	}
	if p, bad := d.unusable(); bad {
		return nil, append(problems, p)
	}
	d.format = detect(name, d.source)
	var ok bool
	var more []Problem
	if d.format == FormatYAML {
		more, ok = d.parseYAML()
	} else {
		d.json = d.source
		more, ok = d.parseJSON()
	}
	problems = append(problems, more...)
	if !ok {
		return nil, problems
	}
	return d, problems
}

// unusable recognises content that no parser need look at.
func (d *Document) unusable() (Problem, bool) {
	s := d.source
	switch {
	case strings.HasPrefix(s, "\xff\xfe"), strings.HasPrefix(s, "\xfe\xff"):
		return Problem{
			Code: CodeEncoding, Position: Position{1, 1},
			Message: "the file is UTF-16", Fix: "save the file as UTF-8",
		}, true
	case strings.TrimSpace(s) == "":
		return Problem{Code: CodeEmpty, Position: Position{1, 1}, Message: "the file is empty"}, true
	case len(s) > MaxSize:
		return Problem{Code: CodeSyntax, Position: Position{1, 1}, Message: tooLarge(int64(len(s)))}, true
	}
	return Problem{}, false
}

func detect(name, source string) Format {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		return FormatJSON
	case ".yaml", ".yml":
		return FormatYAML
	}
	switch strings.TrimLeft(source, " \t\r\n")[0] {
	case '{', '[', '"':
		return FormatJSON
	}
	return FormatYAML
}

// Format returns the notation of the file.
func (d *Document) Format() Format { return d.format }

// Source returns the text that positions and offsets refer to: the file without
// its byte order mark.
func (d *Document) Source() string { return d.source }

// HasBOM says whether the file begins with a byte order mark.
func (d *Document) HasBOM() bool { return d.bom }

// JSON returns the content as JSON: for a JSON file the bytes as they stand,
// without the byte order mark.
func (d *Document) JSON() []byte { return []byte(d.json) }

// Root returns the outermost value.
func (d *Document) Root() Node { return Node{d, 0} }

// Value returns the content as Go values: map[string]any, []any, string, bool,
// nil, and json.Number or float64 for numbers. Of duplicate keys the last wins.
func (d *Document) Value() any { return d.Root().Value() }

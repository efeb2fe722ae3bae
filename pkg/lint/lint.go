// Package lint finds what is wrong with manifests, cards, suites, thresholds and perf.csv
// before anything runs: violations of their schema, and what no schema can say
// because it is about several fields at once. It reports everything it finds, in
// document order, and executes nothing of what it reads.
package lint

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"assay/pkg/discover"
	"assay/pkg/document"
	"assay/schemas"
)

// Options say how a file is looked at.
type Options struct {
	// Kind is what the file is; Unknown: the content and the name tell.
	Kind Kind
	// Cards are those that a suite names; nil: those of the directory that it lies in,
	// as far as they can be read.
	Cards *discover.Catalog
}

// Result is what was found in one file.
type Result struct {
	File     string
	Kind     Kind
	Findings []Finding // in document order
	// Document is the parsed file; nil when it cannot be parsed, and for perf.csv.
	Document *document.Document

	excerpts map[place]excerpt // the source lines of the findings
}

// HasErrors says whether a run is refused.
func (r *Result) HasErrors() bool { return r.has(Error) }

// HasWarnings says whether there is a warning.
func (r *Result) HasWarnings() bool { return r.has(Warning) }

func (r *Result) has(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == s })
}

// Linter checks files. It compiles each schema once, and is safe for concurrent
// use.
type Linter struct {
	mu      sync.Mutex
	schemas map[string]*document.Schema
	cards   func(root string) (discover.Catalog, error) // reads files, and runs nothing
}

// New returns a Linter.
func New() *Linter { return &Linter{schemas: map[string]*document.Schema{}, cards: declaredCards} }

// File checks one file. That it cannot be read is a finding like any other.
func File(path string, opt Options) *Result { return New().File(path, opt) }

// Bytes checks content that is already in memory. The name is used in findings,
// tells JSON from YAML, and its directory is where an env_file is looked for.
func Bytes(name string, data []byte, opt Options) *Result { return New().Bytes(name, data, opt) }

// File is like the function File.
func (l *Linter) File(path string, opt Options) *Result {
	if opt.Kind == PerfCSV || opt.Kind == UnknownKind && strings.EqualFold(filepath.Ext(path), ".csv") {
		return perfFile(path)
	}
	data, err := document.Read(path)
	if err != nil {
		return readFailed(path, opt.Kind, err)
	}
	return l.Bytes(path, data, opt)
}

func readFailed(path string, kind Kind, err error) *Result {
	message := strings.TrimPrefix(err.Error(), path+" ")
	return &Result{File: path, Kind: kind, Findings: []Finding{{
		File: path, Line: 1, Column: 1, Severity: Error, Code: ReadFailed, Message: message,
	}}}
}

// Bytes is like the function Bytes.
func (l *Linter) Bytes(name string, data []byte, opt Options) *Result {
	if opt.Kind == PerfCSV || opt.Kind == UnknownKind && looksLikePerfCSV(name, data) {
		return perfBytes(name, data)
	}
	c := l.start(name, data, opt)
	if c.doc != nil {
		c.check()
	}
	return c.finish()
}

// start parses content for a check.
func (l *Linter) start(name string, data []byte, opt Options) *checker {
	doc, problems := document.Parse(name, data)
	c := &checker{linter: l, doc: doc, known: opt.Cards, result: &Result{File: name, Kind: opt.Kind, Document: doc, excerpts: map[place]excerpt{}}}
	c.lines = excerptOf(data)
	for _, p := range problems {
		c.problem(p)
	}
	return c
}

// schema returns a compiled schema.
func (l *Linter) schema(name string) (*document.Schema, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.schemas[name]; s != nil {
		return s, nil
	}
	text, err := schemas.Read(name)
	if err != nil {
		return nil, err
	}
	s, err := document.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	l.schemas[name] = s
	return s, nil
}

// checker gathers the findings of one file.
type checker struct {
	linter  *Linter
	doc     *document.Document
	known   *discover.Catalog // cards that a suite can name; nil: they are looked for
	result  *Result
	entries []entry
	lines   func(int) string // for a file that has no document
	count   [Error + 1]int   // of the entries, by severity
	more    [Error + 1]bool  // whether there are more than the entries
}

// maxFindings bounds the errors, and the warnings, of one file: beyond it the file
// is not the thing it claims to be, and more of the same helps nobody.
const maxFindings = 1000

// entry is a finding with its place in the order of the checked file: a finding
// in an env_file stands where the manifest names that file.
type entry struct {
	Finding
	order document.Position
}

func (c *checker) check() {
	root := c.doc.Root()
	if c.result.Kind == UnknownKind {
		c.result.Kind = detect(c.result.File, root)
	}
	switch c.result.Kind {
	case Manifest:
		c.manifest(root)
	case Card:
		c.cards(root)
	case Suite:
		c.suite(root)
	case Thresholds:
		c.thresholdsFile(root, nil)
	default:
		c.at(Error, KindUnknown, root, "the file is not recognised as a manifest, a card, a suite, a file of thresholds or a perf.csv",
			"a manifest has built_images and built_models, a suite has tests, a file of thresholds has hardware, and a card has a name")
	}
}

// at reports something about a value.
func (c *checker) at(s Severity, code string, n document.Node, message, fix string) {
	c.add(s, code, n.Pointer(), n.Position(), message, fix)
}

// atKey reports something about a member, at its key.
func (c *checker) atKey(s Severity, code string, n document.Node, message, fix string) {
	c.add(s, code, n.Pointer(), n.KeyPosition(), message, fix)
}

func (c *checker) problem(p document.Problem) {
	s := Error
	if p.Warning {
		s = Warning
	}
	c.add(s, p.Code, p.Pointer, p.Position, p.Message, p.Fix)
}

func (c *checker) add(s Severity, code, pointer string, pos document.Position, message, fix string) {
	if c.count[s] >= maxFindings {
		c.more[s] = true
		return
	}
	c.count[s]++
	f := Finding{File: c.result.File, Line: pos.Line, Column: pos.Column, Severity: s, Code: code, Pointer: pointer, Message: message, Fix: fix}
	c.entries = append(c.entries, entry{f, pos})
}

// full says that nothing new can come of looking further: more errors would not
// be listed.
func (c *checker) full() bool { return c.more[Error] }

// finish puts the findings into document order, once each.
func (c *checker) finish() *Result {
	errors := map[string]bool{}
	for _, e := range c.entries {
		if e.Severity == Error {
			errors[e.Pointer] = true
		}
	}
	slices.SortStableFunc(c.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.order.Line, b.order.Line), cmp.Compare(a.order.Column, b.order.Column),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), // in another file that stands there
			cmp.Compare(b.Severity, a.Severity), strings.Compare(a.Code, b.Code), strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Message, b.Message))
	})
	var last Finding
	end := document.Position{Line: 1, Column: 1}
	for _, e := range c.entries {
		// What is an error already need not be suspected of being a misspelling.
		if e.Finding == last || e.Code == document.CodeNearMiss && errors[e.Pointer] {
			continue
		}
		last, end = e.Finding, e.order
		c.result.Findings = append(c.result.Findings, e.Finding)
		c.excerpt(e.Finding)
	}
	for _, s := range []Severity{Warning, Error} {
		if c.more[s] {
			c.result.Findings = append(c.result.Findings, Finding{
				File: c.result.File, Line: end.Line, Column: end.Column, Severity: s, Code: More,
				Message: fmt.Sprintf("and more %ss, which are not listed: there are more than %d", s, maxFindings),
			})
		}
	}
	return c.result
}

// excerpt keeps the source line of a finding in the file itself.
func (c *checker) excerpt(f Finding) {
	switch {
	case f.File != c.result.File:
	case c.doc != nil:
		text, at := c.doc.Excerpt(document.Position{Line: f.Line, Column: f.Column}, excerptWidth)
		c.result.excerpts[placeOf(f)] = excerpt{text, at}
	default:
		c.result.excerpts[placeOf(f)] = cut(c.lines(f.Line), f.Column)
	}
}

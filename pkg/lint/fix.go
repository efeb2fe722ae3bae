package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"assay/pkg/document"
	"assay/pkg/durable"
	"assay/pkg/exitcode"
)

// Fix rewrites what has one right answer in a file: it moves deployment blocks
// from the top level of a manifest under deployment_config. It returns the
// change as a unified diff, and whether there is one. The rest of the file stays
// as it is, byte by byte; the file is replaced atomically, and where path is a
// link, the file it leads to. A file that would then say anything else is left
// alone. An error carries exitcode.Invalid.
func Fix(path string) (diff string, changed bool, err error) {
	data, err := document.Read(path)
	if err != nil {
		return "", false, exitcode.With(exitcode.Invalid, err)
	}
	fixed, err := Fixed(path, data)
	if err != nil || bytes.Equal(fixed, data) {
		return "", false, err
	}
	target, err := filepath.EvalSymlinks(path) // a link stays a link
	if err != nil {
		return "", false, fmt.Errorf("%s cannot be rewritten: %w", path, err)
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(target); err == nil {
		mode = info.Mode().Perm()
	}
	if err := durable.WriteFile(target, fixed, mode); err != nil {
		return "", false, fmt.Errorf("%s cannot be rewritten: %w", path, err)
	}
	return unifiedDiff(path, string(data), string(fixed)), true, nil
}

// Fixed returns the content of a file after Fix, without writing it.
func Fixed(name string, data []byte) ([]byte, error) {
	doc, problems := document.Parse(name, data)
	if doc == nil {
		p := problems[len(problems)-1]
		return nil, exitcode.Errorf(exitcode.Invalid, "%s:%d:%d: %s; nothing can be fixed before the file can be parsed", name, p.Line, p.Column, p.Message)
	}
	root := doc.Root()
	if detect(name, root) != Manifest || root.Kind() != document.KindObject {
		return data, nil
	}
	blocks := movable(root)
	if len(blocks) == 0 {
		return data, nil
	}
	for _, p := range problems {
		if p.Code == document.CodeDuplicate {
			return nil, exitcode.Errorf(exitcode.Invalid, "%s:%d:%d: %s; which one is meant must be settled first", name, p.Line, p.Column, p.Message)
		}
	}
	config := root.Get("deployment_config")
	if config.Given() && config.Kind() != document.KindObject {
		return nil, exitcode.Errorf(exitcode.Invalid, "%s: deployment_config is not an object, so nothing can be moved under it", name)
	}
	texts := []string{""}
	var err error
	if doc.Format() == document.FormatYAML {
		texts, err = document.MoveYAML(doc, blocks, "deployment_config")
	} else {
		texts[0] = moveJSON(doc, blocks, config)
	}
	if err != nil {
		return nil, exitcode.With(exitcode.Invalid, fmt.Errorf("%s: %w", name, err))
	}
	var refused error
	for _, text := range texts {
		if doc.HasBOM() {
			text = "\ufeff" + text
		}
		if err := moved(name, data, []byte(text), blocks); err == nil {
			return []byte(text), nil
		} else if refused == nil {
			refused = err
		}
	}
	return nil, exitcode.Errorf(exitcode.Invalid, "%s: %s cannot be moved without changing what the file says (%w); move it by hand", name, strings.Join(blocks, ", "), refused)
}

// moved checks that a text has the content of the one before, but for blocks
// that now stand under deployment_config, and no more errors.
func moved(name string, before, after []byte, blocks []string) error {
	was, _ := document.Parse(name, before)
	is, problems := document.Parse(name, after)
	if is == nil {
		return errors.New(problems[len(problems)-1].Message)
	}
	want, _ := was.Value().(map[string]any)
	config, _ := want["deployment_config"].(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	for _, b := range blocks {
		config[b] = want[b]
		delete(want, b)
	}
	want["deployment_config"] = config
	if !reflect.DeepEqual(want, is.Value()) {
		return errors.New("an anchor or a text would mean something else")
	}
	linter := New()
	if a, b := linter.Bytes(name, before, Options{}).count(Error), linter.Bytes(name, after, Options{}).count(Error); b > a {
		return fmt.Errorf("there would be %d errors instead of %d", b, a)
	}
	return nil
}

// count returns how many findings have a severity.
func (r *Result) count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// movable returns the keys of the top-level blocks that are in force. One that
// is ignored is left alone: only its author knows which of the two is right.
func movable(root document.Node) []string {
	d := deployment{root, root.Get("deployment_config")}
	var names []string
	for _, name := range deploymentBlocks() {
		if !root.Get(name).Given() || d.winner(name).Given() {
			continue
		}
		names = append(names, name)
	}
	return names
}

// moveJSON cuts the blocks out of the text and writes them into
// deployment_config, indented to where they then stand.
func moveJSON(doc *document.Document, names []string, config document.Node) string {
	source, root := doc.Source(), doc.Root()
	style := styleOf(doc)
	var parts []string
	var edits []edit
	for _, name := range names {
		start, end := root.Get(name).Offsets()
		if null := config.Get(name); null.Exists() { // there is a place for it already
			valueStart, _ := root.Get(name).ValueOffsets()
			nullStart, nullEnd := null.ValueOffsets()
			edits = append(edits, edit{nullStart, nullEnd, style.deeper(source[valueStart:end])})
			continue
		}
		parts = append(parts, style.deeper(source[start:end]))
	}
	if config.Given() {
		if len(parts) > 0 {
			edits = append(edits, style.insert(config, parts))
		}
	} else {
		block := `"deployment_config": ` + style.object(parts)
		if config.Exists() { // it is null
			start, end := config.ValueOffsets()
			edits = append(edits, edit{start, end, style.object(parts)})
		} else {
			// It takes the place of the first block that moves.
			start, end := root.Get(names[0]).Offsets()
			edits = append(edits, edit{start, end, block})
			names = names[1:]
		}
	}
	edits = append(edits, cuts(doc, names)...)
	return apply(source, edits)
}

// style is how a JSON file is laid out.
type style struct {
	unit    string // one level of indentation
	newline string // between members; empty for a file of one line
}

func styleOf(doc *document.Document) style {
	source := doc.Source()
	first := document.Node{}
	for c := range doc.Root().Children() {
		first = c
		break
	}
	start, _ := first.Offsets()
	lead := source[:start]
	line := strings.LastIndexByte(lead, '\n')
	if line < 0 {
		return style{}
	}
	s := style{unit: lead[line+1:], newline: "\n"}
	if strings.HasSuffix(lead[:line+1], "\r\n") {
		s.newline = "\r\n"
	}
	return s
}

// deeper indents the lines of a block after the first by one more level.
func (s style) deeper(block string) string {
	return strings.ReplaceAll(block, "\n", "\n"+s.unit)
}

// join puts members after each other at a depth.
func (s style) join(parts []string, depth int) string {
	if s.newline == "" {
		return strings.Join(parts, ", ")
	}
	return strings.Join(parts, ","+s.newline+strings.Repeat(s.unit, depth))
}

// object writes members as an object that is a member of the root.
func (s style) object(parts []string) string {
	if s.newline == "" {
		return "{" + s.join(parts, 2) + "}"
	}
	return "{" + s.newline + strings.Repeat(s.unit, 2) + s.join(parts, 2) + s.newline + s.unit + "}"
}

// insert adds members at the end of an object.
func (s style) insert(object document.Node, parts []string) edit {
	start, end := object.ValueOffsets()
	if object.Len() == 0 {
		return edit{start, end, s.object(parts)}
	}
	var last document.Node
	for c := range object.Children() {
		last = c
	}
	_, at := last.Offsets()
	separator := "," + s.newline + strings.Repeat(s.unit, 2)
	if s.newline == "" {
		separator = ", "
	}
	return edit{at, at, separator + s.join(parts, 2)}
}

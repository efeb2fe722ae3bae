package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"assay/pkg/phrase"
	"assay/pkg/spelling"
)

func (s *Schema) validate(schema *jsonschema.Schema, n Node, value any) []Problem {
	err := schema.Validate(value)
	if err == nil {
		return nil
	}
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return []Problem{{Code: CodeOther, Pointer: n.Pointer(), Position: n.Position(), Message: err.Error()}}
	}
	base := n.Pointer()
	var problems []Problem
	for _, leaf := range leaves(v) {
		problems = append(problems, s.problems(base, n, leaf)...)
	}
	return problems
}

// leaves returns the violations that say something; of the branches of an anyOf
// or oneOf only those of the branch that was probably meant.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(e.Causes) > 0 {
			return meantBranch(e)
		}
	}
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, c := range e.Causes {
		all = append(all, leaves(c)...)
	}
	return all
}

// meantBranch chooses the branch with the right type; of several, the one whose
// violations lie deepest, then the one with the fewest. When every branch wants
// another type, one violation names all the types.
func meantBranch(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var best []*jsonschema.ValidationError
	var types []string
	bestDepth := -1
	for _, c := range e.Causes {
		branch := leaves(c)
		if t, ok := branch[0].ErrorKind.(*kind.Type); ok && len(branch[0].InstanceLocation) == len(e.InstanceLocation) {
			types = append(types, t.Want...)
			continue
		}
		depth := 0
		for _, l := range branch {
			depth = max(depth, len(l.InstanceLocation))
		}
		if depth > bestDepth || depth == bestDepth && len(branch) < len(best) {
			best, bestDepth = branch, depth
		}
	}
	if best != nil {
		return best
	}
	merged := *e
	merged.Causes = nil
	slices.Sort(types)
	merged.ErrorKind = &kind.Type{Want: slices.Compact(types)}
	return []*jsonschema.ValidationError{&merged}
}

// problems turns one violation into problems with a place and plain words.
func (s *Schema) problems(base string, n Node, e *jsonschema.ValidationError) []Problem {
	at := n.descend(e.InstanceLocation)
	if !at.Exists() { // a duplicate key hides it
		at = n
	}
	p := Problem{Pointer: base, Position: at.Position()}
	for _, t := range e.InstanceLocation {
		p.Pointer += "/" + Escape(t)
	}
	subject := subject(at, p.Pointer)
	if k, ok := e.ErrorKind.(*kind.Required); ok {
		var all []Problem
		for _, missing := range k.Missing {
			p.Code, p.Message = CodeRequired, fmt.Sprintf("%s has no %s, which is required", subject, quote(missing))
			p.Fix, p.Key = "add "+quote(missing), missing
			all = append(all, p)
		}
		return all
	}
	p.Code, p.Message, p.Fix = s.words(subject, at, e)
	return []Problem{p}
}

// subject names a value in a sentence: its key, or its place in a list.
func subject(n Node, pointer string) string {
	if pointer == "" {
		return "the document"
	}
	parts := strings.Split(pointer, "/")
	last := strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[len(parts)-1])
	if parent := (Node{n.d, n.at().parent}); parent.Kind() != KindArray {
		return phrase.Clip(last, 60)
	}
	if len(parts) == 2 {
		return "entry " + last + " of the list"
	}
	return parts[len(parts)-2] + "/" + last
}

// words returns the code, the sentence and the fix for one violation.
func (s *Schema) words(subject string, at Node, e *jsonschema.ValidationError) (code, message, fix string) {
	expects := s.expects(e.SchemaURL)
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return CodeType, fmt.Sprintf("%s must be %s, not %s", subject, or(wantWords(k.Want), ""), describe(at)), typeFix(k.Want, at)
	case *kind.Enum:
		return enumWords(subject, at, k)
	case *kind.Const:
		return CodeEnum, fmt.Sprintf("%s must be %v, not %s", subject, k.Want, describe(at)), ""
	case *kind.Pattern:
		if expects == "" {
			expects = "text that matches " + k.Want
		}
		return CodePattern, fmt.Sprintf("%s must be %s, not %s", subject, expects, describe(at)), ""
	case *kind.Minimum:
		return CodeRange, fmt.Sprintf("%s must be at least %s, not %s", subject, k.Want.RatString(), describe(at)), ""
	case *kind.Maximum:
		return CodeRange, fmt.Sprintf("%s must be at most %s, not %s", subject, k.Want.RatString(), describe(at)), ""
	case *kind.MinLength:
		return CodeRange, subject + " must not be empty", ""
	case *kind.MinItems:
		return CodeRange, fmt.Sprintf("%s must have %d or more entries, not %d", subject, k.Want, k.Got), ""
	case *kind.FalseSchema:
		return CodeOther, subject + " is not allowed here", ""
	}
	text := fmt.Sprint(e.ErrorKind)
	if keywords := e.ErrorKind.KeywordPath(); len(keywords) > 0 {
		text = "it violates the schema's " + strings.Join(keywords, "/")
	}
	return CodeOther, subject + ": " + text, ""
}

// expects returns the x-expects annotation of a schema location.
func (s *Schema) expects(location string) string {
	_, pointer, _ := strings.Cut(location, "#")
	m, _ := lookup(s.raw, pointer).(map[string]any)
	text, _ := m["x-expects"].(string)
	return text
}

func enumWords(subject string, at Node, k *kind.Enum) (code, message, fix string) {
	var names, shown []string
	for _, w := range k.Want {
		if text, ok := w.(string); ok && text != "" {
			names, shown = append(names, text), append(shown, text)
		} else if !ok && w != nil {
			shown = append(shown, fmt.Sprint(w))
		}
	}
	message = fmt.Sprintf("%s must be %s, not %s", subject, or(shown, ""), describe(at))
	if at.Kind() == KindString {
		if meant := spelling.Nearest(at.Text(), names); meant != "" {
			return CodeEnum, message + "; did you mean " + quote(meant) + "?", "write " + quote(meant)
		}
	}
	return CodeEnum, message, ""
}

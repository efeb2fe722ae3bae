package document

import (
	"runtime"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// large is how many children a list or a map needs to be validated child by
	// child.
	large = 64
	// maxProblems bounds the violations and the near misses that are returned;
	// beyond it a file is not the thing it claims to be, and more of the same
	// helps nobody.
	maxProblems = 1000
)

// Validate returns the violations of the schema, in no particular order. When
// there are very many it stops looking, and says so by more. Large lists and maps,
// as built_models is, are validated child by child and by several goroutines:
// only one child at a time is then turned into Go values, and into errors.
func (s *Schema) Validate(n Node) (problems []Problem, more bool) {
	problems = s.validateNode(s.compiled, n)
	return problems[:min(len(problems), maxProblems)], len(problems) > maxProblems
}

// validateNode returns all violations, or more than maxProblems of them.
func (s *Schema) validateNode(schema *jsonschema.Schema, n Node) []Problem {
	var later []deferred
	problems := s.validate(schema, n, split(schema, n, &later))
	for _, l := range later {
		if len(problems) > maxProblems {
			break
		}
		problems = append(problems, s.validateChildren(l)...)
	}
	return problems
}

// deferred are children of a large list or map, to be validated one by one.
type deferred []child

type child struct {
	schema *jsonschema.Schema
	node   Node
}

// split returns the value of n in which large lists and maps are empty, and what
// was in them.
func split(schema *jsonschema.Schema, n Node, later *[]deferred) any {
	for schema != nil && schema.Ref != nil {
		schema = schema.Ref
	}
	if schema == nil || !separable(schema) {
		return n.Value()
	}
	var value any
	var apart deferred
	switch n.Kind() {
	case KindObject:
		value, apart = splitMembers(schema, n, later)
	case KindArray:
		value, apart = splitItems(schema, n, later)
	default:
		return n.Value()
	}
	if len(apart) > 0 {
		*later = append(*later, apart)
	}
	return value
}

func splitMembers(schema *jsonschema.Schema, n Node, later *[]deferred) (value map[string]any, apart deferred) {
	value = make(map[string]any, min(n.Len(), large))
	for c := range n.Children() {
		key := c.Key()
		own := memberSchema(schema, key)
		if own != nil && n.Len() > large && !slices.Contains(schema.Required, key) {
			apart = append(apart, child{own, c})
		} else {
			value[key] = split(own, c, later)
		}
	}
	return value, apart
}

// splitItems leaves as many entries as the list must have.
func splitItems(schema *jsonschema.Schema, n Node, later *[]deferred) (value []any, apart deferred) {
	keep := n.Len()
	if keep > large && schema.Items2020 != nil {
		keep = 0
		if schema.MinItems != nil {
			keep = *schema.MinItems
		}
	}
	value = make([]any, 0, min(n.Len(), keep))
	for c := range n.Children() {
		if len(value) < keep {
			value = append(value, split(schema.Items2020, c, later))
		} else {
			apart = append(apart, child{schema.Items2020, c})
		}
	}
	return value, apart
}

// separable says whether validating children alone is the same: no rule of the
// schema is about several of them at once.
func separable(s *jsonschema.Schema) bool {
	return s.Enum == nil && s.Const == nil && s.Not == nil && s.If == nil && s.RecursiveRef == nil && s.DynamicRef == nil &&
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf)+len(s.Dependencies)+len(s.DependentRequired)+len(s.DependentSchemas) == 0 &&
		s.MinProperties == nil && s.MaxProperties == nil && s.PropertyNames == nil && s.UnevaluatedProperties == nil &&
		s.MaxItems == nil && !s.UniqueItems && s.Contains == nil && s.PrefixItems == nil && s.UnevaluatedItems == nil
}

// memberSchema returns the one schema of a member; nil when there is none, or
// several.
func memberSchema(s *jsonschema.Schema, key string) *jsonschema.Schema {
	own := s.Properties[key]
	for pattern, p := range s.PatternProperties {
		if !pattern.MatchString(key) {
			continue
		}
		if own != nil {
			return nil
		}
		own = p
	}
	if own == nil {
		own, _ = s.AdditionalProperties.(*jsonschema.Schema)
	}
	return own
}

// validateChildren returns the violations of the first children that have more
// than maxProblems.
func (s *Schema) validateChildren(children deferred) []Problem {
	workers := min(runtime.GOMAXPROCS(0), len(children)/large+1)
	results := make([][]Problem, workers)
	var wg sync.WaitGroup
	for w := range workers {
		part := children[len(children)*w/workers : len(children)*(w+1)/workers]
		wg.Go(func() {
			for _, c := range part {
				if len(results[w]) > maxProblems {
					return
				}
				results[w] = append(results[w], s.validateNode(c.schema, c.node)...)
			}
		})
	}
	wg.Wait()
	return slices.Concat(results...)
}

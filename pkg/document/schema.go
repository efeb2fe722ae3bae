package document

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a compiled JSON Schema (draft 2020-12). It is safe for concurrent
// use.
type Schema struct {
	compiled *jsonschema.Schema
	raw      map[string]any
	shape    *Shape
}

// Compile compiles the text of a schema. It may refer to itself only.
func Compile(text []byte) (*Schema, error) {
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{}) // a schema never makes us read a file or the network
	const id = "assay:schema"
	root, ok := raw.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the schema is not an object")
	}
	location := id
	if own, ok := root["$id"].(string); ok {
		location = own
	}
	if err := c.AddResource(location, raw); err != nil {
		return nil, fmt.Errorf("the schema is malformed: %w", err)
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("the schema is malformed: %w", err)
	}
	b := &shaper{root: root, refs: map[string]*Shape{}}
	return &Schema{compiled: compiled, raw: root, shape: b.shape(raw)}, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is outside the schema", url)
}

// Shape returns what the schema says about keys.
func (s *Schema) Shape() *Shape { return s.shape }

// largeMap is how many members an object needs to be validated member by member.
const largeMap = 64

// Validate returns all violations of the schema, in no particular order. Large
// objects whose members share one schema, as built_models is, are validated
// member by member and by several goroutines: only one member at a time is then
// turned into Go values.
func (s *Schema) Validate(n Node) []Problem {
	value, later := s.split(n)
	problems := s.validate(s.compiled, n, value)
	for _, l := range later {
		problems = append(problems, s.validateMembers(l.schema, l.object)...)
	}
	return problems
}

// deferred is a large object whose members are validated one by one.
type deferred struct {
	schema *jsonschema.Schema
	object Node
}

// split returns the value of n in which large maps are empty, and those maps.
func (s *Schema) split(n Node) (any, []deferred) {
	if n.Kind() != KindObject {
		return n.Value(), nil
	}
	var later []deferred
	value := make(map[string]any, n.Len())
	for c := range n.Children() {
		key := c.Key()
		if values := s.mapSchema(key); values != nil && c.Kind() == KindObject && c.Len() > largeMap {
			later = slices.DeleteFunc(later, func(l deferred) bool { return l.object.Key() == key })
			later = append(later, deferred{values, c})
			value[key] = map[string]any{}
			continue
		}
		value[key] = c.Value()
	}
	return value, later
}

// mapSchema returns the schema of the members of a property that is a map, or
// nil when validating the members alone would not be the same.
func (s *Schema) mapSchema(property string) *jsonschema.Schema {
	p := s.compiled.Properties[property]
	if p == nil || p.MinProperties != nil || p.MaxProperties != nil || len(p.Properties) > 0 || p.PropertyNames != nil {
		return nil
	}
	values, _ := p.AdditionalProperties.(*jsonschema.Schema)
	return values
}

func (s *Schema) validateMembers(schema *jsonschema.Schema, object Node) []Problem {
	members := slices.Collect(object.Children())
	workers := min(runtime.GOMAXPROCS(0), len(members)/largeMap+1)
	results := make([][]Problem, workers)
	var wg sync.WaitGroup
	for w := range workers {
		from, to := len(members)*w/workers, len(members)*(w+1)/workers
		wg.Go(func() {
			for _, m := range members[from:to] {
				results[w] = append(results[w], s.validate(schema, m, m.Value())...)
			}
		})
	}
	wg.Wait()
	return slices.Concat(results...)
}

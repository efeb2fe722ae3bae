package document

import (
	"bytes"
	"fmt"

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

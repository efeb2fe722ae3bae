package document

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/schemas"
)

// SchemaPage returns the reference page of a schema, in markdown: a table of the
// keys of each object. The error names the schemas there are.
func SchemaPage(name string) (string, error) {
	text, err := schemas.Read(name)
	if err != nil {
		return "", err
	}
	raw, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return "", fmt.Errorf("schema %s: %w", name, err)
	}
	root, ok := raw.(map[string]any)
	if !ok {
		return "", fmt.Errorf("schema %s is not an object", name)
	}
	p := &page{}
	p.line("<!-- Generated from schemas/%s.schema.json. Do not edit. -->", name)
	p.line("")
	p.line("# %s", textOf(root, "title"))
	p.line("")
	p.line("%s", textOf(root, "description"))
	p.line("")
	p.line("`assay schema %s` prints the JSON Schema (draft 2020-12).", name)
	p.object(root)
	defs, _ := root["$defs"].(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(defs)) {
		def, _ := defs[k].(map[string]any)
		p.line("")
		p.line("## %s", k)
		p.line("")
		p.line("%s", textOf(def, "description"))
		if values, ok := def["additionalProperties"].(map[string]any); ok {
			p.line("")
			p.line("Each value is %s.", typeWords(values))
		}
		p.object(def)
	}
	return p.b.String(), nil
}

type page struct{ b strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// object writes the table of an object's keys, in the schema's column order
// where it has one.
func (p *page) object(m map[string]any) {
	props, _ := m["properties"].(map[string]any)
	if len(props) == 0 {
		return
	}
	required, _ := m["required"].([]any)
	p.line("")
	p.line("| key | type | meaning |")
	p.line("|---|---|---|")
	for _, k := range propertyOrder(m, props) {
		prop, _ := props[k].(map[string]any)
		mark := ""
		if slices.Contains(required, any(k)) {
			mark = " (required)"
		}
		p.line("| `%s`%s | %s | %s |", k, mark, typeWords(prop), strings.ReplaceAll(textOf(prop, "description"), "|", `\|`))
	}
}

func propertyOrder(m, props map[string]any) []string {
	columns, ok := m["x-columns"].([]any)
	if !ok {
		return slices.Sorted(maps.Keys(props))
	}
	var keys []string
	for _, c := range columns {
		keys = append(keys, fmt.Sprint(c))
	}
	return keys
}

func textOf(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// typeWords tells in words what a schema accepts.
func typeWords(m map[string]any) string {
	if ref, ok := m["$ref"].(string); ok {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	if list, ok := m["enum"].([]any); ok {
		var words []string
		for _, v := range list {
			if s, ok := v.(string); ok && s != "" {
				words = append(words, "`"+s+"`")
			}
		}
		return strings.Join(words, ", ")
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list, ok := m[k].([]any); ok {
			var words []string
			for _, v := range list {
				if b, ok := v.(map[string]any); ok {
					words = append(words, typeWords(b))
				}
			}
			return or(words, "")
		}
	}
	return typeList(m)
}

func typeList(m map[string]any) string {
	var types []string
	switch t := m["type"].(type) {
	case string:
		types = []string{t}
	case []any:
		for _, v := range t {
			types = append(types, fmt.Sprint(v))
		}
	}
	for i, t := range types {
		if t != "array" {
			continue
		}
		if items, ok := m["items"].(map[string]any); ok {
			types[i] = "list of " + typeWords(items)
		}
	}
	return or(types, "any")
}

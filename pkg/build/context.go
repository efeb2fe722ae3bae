package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"assay/pkg/discover"
	"assay/pkg/exitcode"
)

const inlineName = "--additional-context"

// ParseContext reads additional context from a JSON text and a file, either of
// which may be empty. What the text says goes over what the file says: objects
// are merged key by key, at any depth; everything else, lists too, is replaced.
// The file may be YAML. Errors have code
// INVALID.
func ParseContext(inline, file string) (map[string]any, error) {
	out := map[string]any{}
	if file != "" {
		m, err := contextFile(file)
		if err != nil {
			return nil, err
		}
		out = m
	}
	if inline != "" {
		m, err := contextObject(inlineName, []byte(inline), discover.DecodeJSON)
		if err != nil {
			return nil, err
		}
		merged, _ := merge(out, m).(map[string]any)
		out = merged
	}
	return out, nil
}

func contextFile(file string) (map[string]any, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, exitcode.Errorf(exitcode.Invalid, "the additional context file %s cannot be read: %w", file, err)
	}
	return contextObject(file, data, discover.Decode)
}

func contextObject(name string, data []byte, decode func(string, []byte) (discover.Decoded, error)) (map[string]any, error) {
	doc, err := decode(name, data)
	if err != nil {
		// Valid JSON can be refused too, for a key that it has twice.
		if text, ok := pythonToJSON(string(data)); ok && !json.Valid(data) {
			return nil, exitcode.Errorf(exitcode.Invalid, "%s is not JSON, but it can be read as a Python literal; as JSON it is:\n%s", name, text)
		}
		return nil, invalid(err)
	}
	dec := json.NewDecoder(bytes.NewReader(doc.JSON))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, exitcode.Errorf(exitcode.Invalid, "%s: %w", name, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, exitcode.Errorf(exitcode.Invalid, `%s: an object is expected, as in {"gpu_vendor": "AMD"}`, name)
	}
	return m, nil
}

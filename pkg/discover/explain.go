package discover

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"assay/pkg/card"
)

// strict decodes v into the card, matching the names of fields exactly.
func strict(v any, to *card.Card) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return jsonv2.Unmarshal(b, to)
}

// explain puts a decoder's error into the words of the card.
func explain(err error) string {
	var at *jsonv2.SemanticError
	var std *json.UnmarshalTypeError
	switch {
	case errors.As(err, &std):
		return fmt.Sprintf("%s is expected, not a JSON %s", wanted(std.Type), std.Value)
	case errors.As(err, &at) && at.Err != nil:
		return at.Err.Error()
	case at != nil && at.GoType != nil:
		return fmt.Sprintf("%s is expected, not %s", wanted(at.GoType), kinds(at.JSONKind))
	}
	return err.Error()
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "an object"
	default:
		return t.String()
	}
}

func kinds(k jsontext.Kind) string {
	switch k {
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return "null"
	}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("%T", v)
}

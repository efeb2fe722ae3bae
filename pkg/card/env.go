package card

import (
	"errors"
	"reflect"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Env is a block of environment variables, without the comments in it.
type Env map[string]Scalar

// remark matches the names that only a comment has. Others that begin with _,
// such as _JAVA_OPTIONS, are variables.
var remark = regexp.MustCompile(`^_(comment|note|doc|about)s?([^a-z].*)?$`)

// IsRemark says whether a member of an environment block is a comment: a list
// or an object under a name that begins with _, or anything under _comment,
// _note, _doc or _about.
func IsRemark(name string, scalar bool) bool {
	return remark.MatchString(name) || !scalar && name != "" && name[0] == '_'
}

// UnmarshalJSONFrom reads an object of scalars. A null in it is refused, because
// nobody can say whether it means "empty" or "unset".
func (e *Env) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*e = nil
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
	default:
		return &json.SemanticError{JSONPointer: dec.StackPointer(), JSONKind: dec.PeekKind(), GoType: reflect.TypeFor[Env]()}
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*e = Env{}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name, kind := token.String(), dec.PeekKind()
		switch {
		case kind == 'n':
			if err := dec.SkipValue(); err != nil {
				return err
			}
			return &json.SemanticError{
				JSONPointer: dec.StackPointer(),
				Err:         errors.New(`null is no value for an environment variable: write "" or leave it out`),
			}
		case IsRemark(name, kind != '{' && kind != '['):
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var value Scalar
		if err := json.UnmarshalDecode(dec, &value); err != nil {
			return err
		}
		(*e)[name] = value
	}
	_, err := dec.ReadToken()
	return err
}

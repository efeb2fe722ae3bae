package card

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Flag is a boolean that files spell as a boolean or as a string. Set tells an
// absent or null value from false.
type Flag struct {
	Value bool
	Set   bool
}

// UnmarshalJSON accepts true, "true", "1", 1, their opposites, "" and null.
func (f *Flag) UnmarshalJSON(b []byte) error {
	switch string(bytes.ToLower(bytes.Trim(b, `"`))) {
	case "null", "":
		*f = Flag{}
	case "true", "1", "yes", "on":
		*f = Flag{true, true}
	case "false", "0", "no", "off":
		*f = Flag{false, true}
	default:
		return fmt.Errorf("%.40s is neither true nor false", b)
	}
	return nil
}

// Words is a list of words that files also spell as one scalar.
type Words []string

// UnmarshalJSON accepts a list of scalars, a scalar, "" and null.
func (w *Words) UnmarshalJSON(b []byte) error {
	var list []Scalar
	if len(b) > 0 && b[0] == '[' {
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
	} else {
		var one Scalar
		if err := one.UnmarshalJSON(b); err != nil {
			return err
		}
		if one != "" {
			list = append(list, one)
		}
	}
	*w = nil
	for _, s := range list {
		*w = append(*w, string(s))
	}
	return nil
}

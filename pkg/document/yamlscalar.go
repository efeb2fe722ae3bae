package document

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	yaml "go.yaml.in/yaml/v3"

	"assay/pkg/phrase"
)

// surprises reports what is legal YAML and does not do what its author thinks.
// What an alias repeats is reported where it is written.
func (c *converter) surprises(n *yaml.Node) {
	if c.inAlias > 0 {
		return
	}
	if first := c.anchors[n.Anchor]; n.Anchor != "" && first != nil {
		p := c.report(n, CodeYAML, fmt.Sprintf("the anchor &%s is already on line %d; an alias means the one that stands nearest before it", phrase.Clip(n.Anchor, 60), first.Line))
		p.Warning, p.Fix = true, "rename one of them"
	}
	c.anchors[n.Anchor] = n
	known := []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!merge", "!!timestamp"}
	if n.Style&yaml.TaggedStyle != 0 && !slices.Contains(known, n.ShortTag()) {
		p := c.report(n, CodeYAML, fmt.Sprintf("the tag %s is ignored: the value is taken as it is written", phrase.Clip(n.ShortTag(), 60)))
		p.Warning, p.Fix = true, "remove the tag"
	}
}

// environments are the keys of objects that hold environment variables.
func environments() []string { return []string{"env_vars", "docker_env_vars", "docker_build_arg"} }

// inEnvironment says whether the value being written is that of a variable.
func (c *converter) inEnvironment() bool {
	return len(c.path) > 1 && slices.Contains(environments(), c.path[len(c.path)-2])
}

func (c *converter) scalar(n *yaml.Node) {
	plain := n.Style == 0
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		c.out = append(c.out, "null"...)
		return
	case plain && c.inEnvironment():
		// A program gets the text: 010 is not 8 to it, nor TRUE true.
	case tag == "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			c.out = strconv.AppendBool(c.out, v)
			return
		}
	case tag == "!!int", tag == "!!float", plain && isJSONNumber(n.Value): // 1e999 is a text to YAML
		if c.number(n) {
			return
		}
	}
	c.quote(n, n.Value)
}

func isJSONNumber(s string) bool {
	v := jsontext.Value(s)
	return v.IsValid() && v.Kind() == '0' && strings.TrimSpace(s) == s
}

// number writes a number, or 0 with a problem where JSON has none.
func (c *converter) number(n *yaml.Node) bool {
	if isJSONNumber(n.Value) {
		c.out = append(c.out, n.Value...)
		return true
	}
	var v any
	if n.Decode(&v) != nil {
		return false
	}
	begin := len(c.out)
	switch v := v.(type) {
	case int:
		c.out = strconv.AppendInt(c.out, int64(v), 10)
	case int64:
		c.out = strconv.AppendInt(c.out, v, 10)
	case uint64:
		c.out = strconv.AppendUint(c.out, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			c.report(n, CodeNumberRange, n.Value+" is not a finite number")
			v = 0
		}
		c.out = jsontext.AppendFloat(c.out, v, 64)
	default:
		return false
	}
	if digits := strings.TrimLeft(n.Value, "+-"); c.inAlias == 0 && (strings.ContainsAny(digits, "_xXoObB") || len(digits) > 1 && digits[0] == '0' && digits[1] != '.') {
		read := string(c.out[begin:])
		p := c.report(n, CodeYAML, fmt.Sprintf("%s is the number %s to YAML", phrase.Clip(n.Value, 40), read))
		p.Warning, p.Fix = true, fmt.Sprintf("write %s, or %q if it is a text", read, n.Value)
	}
	return true
}

func (c *converter) quote(n *yaml.Node, s string) {
	out, err := jsontext.AppendQuote(c.out, s)
	if err != nil {
		c.report(n, CodeEncoding, "the text is not UTF-8 here")
	}
	c.out = out
}

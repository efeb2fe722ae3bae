package suite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/pkg/document"
	"assay/pkg/plan"
)

// replaced are the keys of a test that stand instead of the card's.
func replaced() []string {
	return []string{"args", "command", "timeout", "scope", "thresholds", "repeats", "retries", "ready", "ready_timeout", "linger"}
}

// filled are the keys of a suite that stand where neither a test nor its card says.
func filled() []string { return []string{"scope", "repeats", "retries"} }

// Apply puts a test over its card, which stays as it is.
func (s *Suite) Apply(t Test, raw map[string]any) (map[string]any, []document.Problem) {
	out := maps.Clone(raw)
	for _, k := range filled() {
		if d := s.root.Get(k); present(d) && !says(out[k]) {
			out[k] = d.Value()
		}
	}
	for _, layer := range []document.Node{t.At, t.listed} {
		for _, k := range replaced() {
			if v := layer.Get(k); present(v) {
				out[k] = v.Value()
			}
		}
		for _, k := range []string{"slurm", "distributed"} {
			put(out, k, over(out[k], layer.Get(k).Value()))
		}
	}
	env := over(s.root.Get("env_vars").Value(), raw["env_vars"])
	env = over(env, t.At.Get("env_vars").Value())
	put(out, "env_vars", over(env, t.listed.Get("env_vars").Value()))
	problems := t.checkArgs(out)
	return out, append(problems, t.fill(out)...)
}

// checkArgs refuses arguments that nothing would read.
func (t Test) checkArgs(out map[string]any) []document.Problem {
	command, _ := out["command"].([]any)
	if len(command) == 0 {
		return nil
	}
	for _, layer := range []document.Node{t.listed, t.At} {
		if args := layer.Get("args"); present(args) {
			return []document.Problem{problem(args, CodeArgs, fmt.Sprintf("the card %q has a command, which is run as it stands, so that args are not read", t.Card), "write command, with all its words")}
		}
	}
	return nil
}

// fill puts the values of the variant where the program and its environment have
// {axis}.
func (t Test) fill(out map[string]any) []document.Problem {
	if len(t.Variant) == 0 {
		return nil
	}
	f := filler{values: t.Variant, used: map[string]bool{}}
	if text, ok := out["args"].(string); ok && f.wants(text) {
		words, err := plan.SplitWords(text)
		if err != nil {
			return []document.Problem{problem(t.place("args"), CodeArgs, "args cannot be split into words: "+err.Error(), "close the quote, or write args as a list")}
		}
		list := make([]any, len(words))
		for i, w := range words {
			list[i] = w
		}
		out["args"] = list
	}
	for _, k := range []string{"args", "command"} {
		if list, ok := out[k].([]any); ok {
			out[k] = f.list(list)
		}
	}
	if env, ok := out["env_vars"].(map[string]any); ok {
		out["env_vars"] = f.object(env)
	}
	var problems []document.Problem
	for _, axis := range t.axes {
		if !f.used[axis] {
			problems = append(problems, warning(t.place("variants"), CodeAxis,
				fmt.Sprintf("nothing that test %q runs has {%s}, so that its values make a difference only if the program reads them as %s", t.Name, axis, plan.VariantVariable(axis)),
				fmt.Sprintf("write {%s} where the value belongs in args, command or env_vars, unless the program reads the variable", axis)))
		}
	}
	return problems
}

// place is where the test says something, else the test.
func (t Test) place(key string) document.Node {
	for _, layer := range []document.Node{t.listed, t.At} {
		if n := layer.Get(key); n.Exists() {
			return n
		}
	}
	return t.At
}

// filler puts values where texts have {axis}. A brace that names no axis stays.
type filler struct {
	values map[string]string
	used   map[string]bool
}

func (f filler) wants(text string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(f.values)), func(axis string) bool { return strings.Contains(text, "{"+axis+"}") })
}

func (f filler) text(text string) string {
	pairs := make([]string, 0, 2*len(f.values))
	for axis, value := range f.values {
		if strings.Contains(text, "{"+axis+"}") {
			f.used[axis] = true
		}
		pairs = append(pairs, "{"+axis+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func (f filler) list(list []any) []any {
	out := slices.Clone(list)
	for i, v := range out {
		if text, ok := v.(string); ok {
			out[i] = f.text(text)
		}
	}
	return out
}

func (f filler) object(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for k, v := range out {
		if text, ok := v.(string); ok && !strings.HasPrefix(k, "_") {
			out[k] = f.text(text)
		}
	}
	return out
}

// says tells a value from null and an empty text.
func says(v any) bool { return v != nil && v != "" }

func put(m map[string]any, key string, v any) {
	if v != nil {
		m[key] = v
	}
}

// over lays a block over another, key by key; null is nothing.
func over(under, above any) any {
	a, okA := under.(map[string]any)
	b, okB := above.(map[string]any)
	if !okB {
		return under
	}
	if !okA {
		return above
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// number is an integer in plain digits, as the manifest has it.
func number(n document.Node) any {
	if i, ok := n.Int(); ok {
		return json.Number(fmt.Sprint(i))
	}
	return n.Value()
}

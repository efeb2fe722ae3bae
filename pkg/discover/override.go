package discover

import (
	"maps"
	"strings"

	"assay/pkg/exitcode"
)

// override adds the arguments of a selection to the card: to command when it has
// one, since command wins over scripts, else to args. They come last, where the
// usual argument parsers let them win.
func (e *entry) override() error {
	if len(e.Overrides) == 0 {
		return nil
	}
	var words []string
	for _, o := range e.Overrides {
		words = append(words, "--"+o.Key)
		if !o.Flag {
			words = append(words, o.Value)
		}
	}
	e.Raw = maps.Clone(e.Raw) // the catalog's own stays as declared
	if command, ok := e.Raw["command"].([]any); ok && len(command) > 0 {
		e.Raw["command"] = appendWords(command, words)
		return nil
	}
	switch args := e.Raw["args"].(type) {
	case nil:
		e.Raw["args"] = quote(words)
	case string:
		e.Raw["args"] = strings.TrimLeft(args+" "+quote(words), " ")
	case []any:
		e.Raw["args"] = appendWords(args, words)
	default:
		return exitcode.Errorf(exitcode.Invalid, "%s: card %q: args: a string or a list is expected, not %s",
			place(e.File, e.position, e.Pointer+"/args"), e.Name, kindOf(args))
	}
	return nil
}

func appendWords(list []any, words []string) []any {
	out := append([]any(nil), list...)
	for _, w := range words {
		out = append(out, w)
	}
	return out
}

// quote joins words so that splitting as a POSIX shell does gives them back.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.IndexFunc(w, unsafe) >= 0 {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func unsafe(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-+=./:,@%", r)
}

package envfile

import (
	"fmt"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scriptPath is the program that loads modules: descriptor 5 of bash. What the
// tool prints goes to descriptor 6.
const scriptPath = "/dev/fd/5"

// The marks in what goes out: before each module; its status; that the list of
// loaded modules is as before; that the module is not in there; and that there is
// no command.
const (
	markModule  = "\x00module\x00"
	markStatus  = "\x00status\x00"
	markIdle    = "\x00idle\x00"
	markAbsent  = "\x00absent\x00"
	markMissing = "\x00missing\x00"
)

// moduleLoader finds the command, and loads modules up to the first whose status
// is bad. It exports nothing of its own. A tool may succeed although it loaded
// nothing, as Lmod does for a module file that calls exit, so a module that left
// the list of loaded ones as it was is looked for.
const moduleLoader = `
__assay_has() { \builtin declare -F module >/dev/null; }
for __assay_file in "${__assay_first[@]}"; do
	__assay_has || if [ -r "$__assay_file" ]; then . "$__assay_file"; fi </dev/null >&6 2>&6
done
if ! __assay_has && [ -x "${LMOD_CMD:-}" ]; then
	module() { eval "$("$LMOD_CMD" bash "$@")"; }
elif ! __assay_has && [ -x "${MODULES_CMD:-}" ]; then
	module() { eval "$("$MODULES_CMD" bash "$@")"; }
fi
for __assay_file in "${__assay_inits[@]}"; do
	__assay_has || if [ -r "$__assay_file" ]; then . "$__assay_file"; fi </dev/null >&6 2>&6
done
if ! __assay_has; then
	\builtin printf '\0missing\0' >&6
	\builtin exit 1
fi
for __assay_module in "${__assay_modules[@]}"; do
	\builtin printf '\0module\0' >&6
	__assay_before=${LOADEDMODULES-}
	module load "$__assay_module" </dev/null >&6 2>&6
	__assay_loaded=$?
	\builtin printf '\0status\0%d\0' "$__assay_loaded" >&6
	[ "$__assay_loaded" -eq 0 ] || \builtin exit 1
	[ "$__assay_before" = "${LOADEDMODULES-}" ] || continue
	\builtin printf '\0idle\0' >&6
	case ":$__assay_before:" in
	*:"$__assay_module":* | *:"$__assay_module"/*) continue ;;
	esac
	[ -x "${LMOD_CMD:-}" ] || [ -x "${MODULES_CMD:-}" ] || continue
	(module is-loaded "$__assay_module") </dev/null >/dev/null 2>&1 || \builtin printf '\0absent\0' >&6
done
`

// moduleScript is the loader with the files that may define the command, those
// that the environment names first, and the modules.
func moduleScript(env map[string]string, names, inits []string) (string, error) {
	var first []string
	if file := env["BASH_ENV"]; filepath.IsAbs(file) {
		first = append(first, file)
	}
	for _, name := range []string{"MODULESHOME", "LMOD_PKG"} {
		if home := env[name]; filepath.IsAbs(home) {
			first = append(first, filepath.Join(home, "init/bash"))
		}
	}
	var b strings.Builder
	b.WriteString("set +a\n")
	for _, list := range []struct {
		name  string
		words []string
	}{{"first", first}, {"inits", inits}, {"modules", names}} {
		fmt.Fprintf(&b, "%s%s=(", ownPrefix, list.name)
		for _, word := range list.words {
			quoted, err := syntax.Quote(word, syntax.LangBash)
			if err != nil {
				return "", fmt.Errorf("%q cannot be passed to bash: %w", word, err)
			}
			b.WriteString(" " + quoted)
		}
		b.WriteString(" )\n")
	}
	b.WriteString(moduleLoader)
	return b.String(), nil
}

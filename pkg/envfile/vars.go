package envfile

import (
	"log/slog"
	"slices"
	"strings"
)

// Vars is what an env_file changed: variables it set, and inherited ones it
// removed. However it is printed, it shows names only.
type Vars struct {
	names  []string // sorted
	values map[string]string
	unset  []string // sorted
}

// Names returns the names of the variables the file set, sorted.
func (v Vars) Names() []string { return slices.Clone(v.names) }

// Unset returns the names of the inherited variables the file removed, sorted.
func (v Vars) Unset() []string { return slices.Clone(v.unset) }

// Lookup returns the value the file gave to name.
func (v Vars) Lookup(name string) (string, bool) {
	s, ok := v.values[name]
	return s, ok
}

// Apply returns env with the changes of the file made to it. The order of env is
// kept; new variables follow, sorted.
func (v Vars) Apply(env []string) []string {
	out := make([]string, 0, len(env)+len(v.names))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if _, set := v.values[name]; set || slices.Contains(v.unset, name) {
			continue
		}
		out = append(out, kv)
	}
	for _, name := range v.names {
		out = append(out, name+"="+v.values[name])
	}
	return out
}

// String lists the names, never the values.
func (v Vars) String() string {
	words := slices.Clone(v.names)
	for _, n := range v.unset {
		words = append(words, "-"+n)
	}
	return strings.Join(words, " ")
}

// GoString is String, so that %#v shows no value either.
func (v Vars) GoString() string { return "envfile.Vars{" + v.String() + "}" }

// MarshalText is String, so that JSON shows no value either.
func (v Vars) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// LogValue is String, for log/slog.
func (v Vars) LogValue() slog.Value { return slog.StringValue(v.String()) }

// changes compares two environments. Names that belong to bash's bookkeeping,
// and names that no shell can set, are left out.
func changes(before, after map[string]string) Vars {
	v := Vars{values: map[string]string{}}
	for name, value := range after {
		if old, had := before[name]; (had && old == value) || bookkeeping(name) || !identifier(name) {
			continue
		}
		v.names = append(v.names, name)
		v.values[name] = value
	}
	for name := range before {
		if _, still := after[name]; !still && !withheld(name) && !bookkeeping(name) && identifier(name) {
			v.unset = append(v.unset, name)
		}
	}
	slices.Sort(v.names)
	slices.Sort(v.unset)
	return v
}

// toMap reads KEY=VALUE words; the last of a name stands.
func toMap(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok {
			m[name] = value
		}
	}
	return m
}

// identifier reports whether a shell can assign to name. Exported functions
// travel as BASH_FUNC_name%%, which is none: they are not variables.
func identifier(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// bookkeeping reports whether bash itself sets name, so that its change says
// nothing about the file. BASH_ENV is the one BASH_ name that a file sets on
// purpose, e.g. for environment modules.
func bookkeeping(name string) bool {
	switch name {
	case "_", "SHLVL", "PWD", "OLDPWD", "SHELLOPTS", "PPID", "UID", "EUID", "GROUPS",
		"FUNCNAME", "PIPESTATUS", "DIRSTACK", "LINENO", "RANDOM", "SRANDOM", "SECONDS",
		"EPOCHSECONDS", "EPOCHREALTIME", "OPTIND", "OPTARG", "OPTERR", "REPLY",
		"COLUMNS", "LINES", "HISTCMD", "MAPFILE", "COPROC", "BASH", "BASHPID", "BASHOPTS",
		"COMP_CWORD", "COMP_LINE", "COMP_POINT", "COMP_TYPE", "COMP_KEY", "COMP_WORDBREAKS", "COMP_WORDS":
		return true
	case "BASH_ENV":
		return false
	}
	return strings.HasPrefix(name, "BASH_") || strings.HasPrefix(name, ownPrefix)
}

// withheld reports whether name is kept from the sourcing bash because it would
// change how bash runs before the file is read.
func withheld(name string) bool {
	switch name {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "POSIXLY_CORRECT":
		return true
	}
	return strings.HasPrefix(name, ownPrefix)
}

package envfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"

	"assay/pkg/exitcode"
	"assay/pkg/phrase"
	"assay/pkg/plan"
)

// ModuleError says which environment module cannot be loaded.
type ModuleError struct {
	Module  string // as it was asked for; empty when none could be tried
	Message string // the words of the tool, or what to do
}

// Error returns the module and the message.
func (e *ModuleError) Error() string {
	if e.Module == "" {
		return e.Message
	}
	return fmt.Sprintf("environment module %s cannot be loaded: %s", strconv.Quote(e.Module), e.Message)
}

// errNoModules is the end of a node that has no module command.
const errNoModules = "there is no `module` command on this node (neither a shell function nor MODULESHOME, MODULES_CMD or LMOD_CMD, " +
	"and no init file in the usual places), so no environment module can be loaded; install environment-modules or Lmod there, " +
	"or take the modules out of the manifest"

// messagesLimit is how much of what the tool prints is looked at, in bytes.
const messagesLimit = 1 << 20

// LoadModules loads environment modules, one after the other, and returns what
// they changed in o.Base. Of o it uses neither Path nor Format. A module that
// cannot be loaded is a *ModuleError with exitcode.Error, whether the tool says
// so by its status or, as old and some newer ones do, by its words only; the end
// of ctx is returned as it is.
func LoadModules(ctx context.Context, o Options, names []string) (Vars, error) {
	return loadModules(ctx, o, names, initFiles())
}

// initFiles are the files that define `module` where nothing else tells.
func initFiles() []string {
	return []string{
		"/etc/profile.d/modules.sh", "/etc/profile.d/lmod.sh",
		"/usr/share/modules/init/bash", "/usr/share/Modules/init/bash", "/usr/share/lmod/lmod/init/bash",
	}
}

func loadModules(ctx context.Context, o Options, names, inits []string) (Vars, error) {
	for _, name := range names {
		if name == "" || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, unprintable) {
			return Vars{}, moduleError(name, "that is no name of a module")
		}
	}
	script, err := moduleScript(o.Base, names, inits)
	if err != nil {
		return Vars{}, moduleError("", "%v", err)
	}
	program, err := memoryFile()
	if err != nil {
		return Vars{}, moduleError("", "%v", err)
	}
	defer program.Close()
	if _, err := program.WriteString(script); err != nil {
		return Vars{}, moduleError("", "%v", err)
	}
	printed, err := memoryFile()
	if err != nil {
		return Vars{}, moduleError("", "%v", err)
	}
	defer printed.Close()

	o.Path = scriptPath
	if !isDir(o.Dir) {
		o.Dir = "/"
	}
	out, err := evaluate(ctx, o, program, printed)
	if ctx.Err() != nil {
		return Vars{}, ctx.Err()
	}
	return judge(o, names, out, err, readMessages(printed))
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// judge turns what bash and the tool gave into the changes, or into the error of
// the first module that failed.
func judge(o Options, names []string, out outcome, err error, m messages) (Vars, error) {
	hide := moduleSecrets(o, out)
	last := "" // the module that was being loaded
	for i, part := range m.modules {
		if i >= len(names) {
			break
		}
		last = names[i]
		if part.failed() {
			return Vars{}, moduleError(last, "%s", part.words(hide))
		}
	}
	switch {
	case errors.Is(err, errTimeout):
		return Vars{}, moduleError(last, "not done after %v, so it was ended", o.timeout())
	case m.missing:
		return Vars{}, moduleError("", "%s%s", errNoModules, m.initial(hide))
	case err != nil:
		return Vars{}, moduleError(last, "%v%s", err, m.initial(hide))
	}
	return changes(toMap(o.Base), out.after), nil
}

func moduleError(name, format string, args ...any) error {
	return exitcode.With(exitcode.Error, &ModuleError{Module: name, Message: fmt.Sprintf(format, args...)})
}

// moduleSecrets are the values of variables whose name looks like a secret's,
// before and after: messages are full of paths, which are none.
func moduleSecrets(o Options, out outcome) secrets {
	s := secrets{complete: true}
	for _, env := range []map[string]string{toMap(o.Base), out.after} {
		for name, value := range env {
			if plan.LooksSecret(name) {
				s.add(value)
			}
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return s
}

// scriptPath is the program that loads modules, and printed by what the tool
// prints goes out: descriptors 5 and 6 of bash.
const (
	scriptPath = "/dev/fd/5"
	printedTo  = "6"
)

// The marks in what goes out: one before each module, one with its status, one
// where the list of loaded modules is as before, and one for a node without the
// command.
const (
	markModule  = "\x00module\x00"
	markStatus  = "\x00status\x00"
	markIdle    = "\x00idle\x00"
	markMissing = "\x00missing\x00"
)

// moduleScript is what bash does: find the command, then load the modules up to
// the first that fails. It exports nothing of its own.
func moduleScript(base, names, inits []string) (string, error) {
	env := toMap(base)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("set +a")
	line("%shas() { builtin declare -F module >/dev/null; }", ownPrefix)
	files := []string{env["BASH_ENV"]}
	if home := env["MODULESHOME"]; home != "" {
		files = append(files, filepath.Join(home, "init/bash"))
	}
	if pkg := env["LMOD_PKG"]; pkg != "" {
		files = append(files, filepath.Join(pkg, "init/bash"))
	}
	source := func(files []string) error {
		for _, file := range files {
			if !filepath.IsAbs(file) {
				continue
			}
			quoted, err := syntax.Quote(file, syntax.LangBash)
			if err != nil {
				return fmt.Errorf("the path %q cannot be passed to bash: %w", file, err)
			}
			line("%shas || if [ -r %s ]; then . %s; fi </dev/null >&%s 2>&%s", ownPrefix, quoted, quoted, printedTo, printedTo)
		}
		return nil
	}
	if err := source(files); err != nil {
		return "", err
	}
	for _, command := range []string{"LMOD_CMD", "MODULES_CMD"} {
		line(`%shas || if [ -x "${%s:-}" ]; then module() { eval "$("$%s" bash "$@")"; }; fi`, ownPrefix, command, command)
	}
	if err := source(inits); err != nil {
		return "", err
	}
	line(`%shas || { \builtin printf '\0missing\0' >&%s; \builtin exit 1; }`, ownPrefix, printedTo)
	for _, name := range names {
		quoted, err := syntax.Quote(name, syntax.LangBash)
		if err != nil {
			return "", fmt.Errorf("the module name %q cannot be passed to bash: %w", name, err)
		}
		line(`\builtin printf '\0module\0' >&%s; %sbefore=${LOADEDMODULES-}`, printedTo, ownPrefix)
		line(`module load %s </dev/null >&%s 2>&%s`, quoted, printedTo, printedTo)
		line(`%sloaded=$?; \builtin printf '\0status\0%%d\0' "$%sloaded" >&%s`, ownPrefix, ownPrefix, printedTo)
		line(`[ "$%sbefore" != "${LOADEDMODULES-}" ] || \builtin printf '\0idle\0' >&%s`, ownPrefix, printedTo)
		line(`[ "$%sloaded" -eq 0 ] || \builtin exit 1`, ownPrefix)
	}
	return b.String(), nil
}

// messages are what the tool printed.
type messages struct {
	before  string // while the command was looked for
	missing bool   // there is none
	modules []moduleMessages
}

// readMessages reads them. What lies beyond a bound is left out.
func readMessages(f *os.File) messages {
	data := make([]byte, messagesLimit)
	n, _ := f.ReadAt(data, 0)
	parts := strings.Split(string(data[:n]), markModule)
	m := messages{missing: strings.Contains(parts[0], markMissing)}
	m.before, _, _ = strings.Cut(parts[0], markMissing)
	for _, part := range parts[1:] {
		text, status, _ := strings.Cut(part, markStatus)
		status, idle := strings.CutSuffix(status, markIdle)
		m.modules = append(m.modules, moduleMessages{text: text, status: strings.TrimSuffix(status, "\x00"), idle: idle})
	}
	return m
}

// initial is what the search for the command printed, to end an error with.
func (m messages) initial(hide secrets) string {
	if text := tidy(m.before, hide); text != "" {
		return ": " + text
	}
	return ""
}

// tidy makes one line of what a tool printed.
func tidy(text string, hide secrets) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "-=*") != "" {
			lines = append(lines, phrase.Line(hide.hide(line)))
		}
	}
	whole := strings.Join(lines, "; ")
	if len(whole) > messageLimit {
		whole = strings.ToValidUTF8(whole[:messageLimit], "") + "…"
	}
	return whole
}

package envfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay/pkg/exitcode"
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
		"/etc/profile.d/modules.sh", "/etc/profile.d/lmod.sh", "/etc/profile.d/z00_lmod.sh",
		"/usr/share/modules/init/bash", "/usr/share/Modules/init/bash", "/usr/share/lmod/lmod/init/bash",
	}
}

func loadModules(ctx context.Context, o Options, names, inits []string) (Vars, error) {
	for _, name := range names {
		if name == "" || strings.HasPrefix(name, "-") || strings.ContainsFunc(name, unprintable) {
			return Vars{}, moduleError(name, "that is no name of a module")
		}
	}
	script, err := moduleScript(toMap(o.Base), names, inits)
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

// unprintable reports what no name has, and what bytes that are no UTF-8 become.
func unprintable(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

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

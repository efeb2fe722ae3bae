package envfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"assay/pkg/exitcode"
)

// site is a node with module files, and an environment to load them in.
type site struct {
	t    *testing.T
	dir  string
	base []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	return &site{t: t, dir: dir, base: []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "KEPT=yes", "GONE=soon"}}
}

func (s *site) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// fake is a site whose BASH_ENV defines the function.
func fake(t *testing.T, function string) *site {
	s := newSite(t)
	s.base = append(s.base, "BASH_ENV="+s.file("init.sh", function))
	return s
}

func (s *site) load(names ...string) (Vars, error) {
	s.t.Helper()
	return loadModules(s.t.Context(), Options{Base: s.base, Dir: s.dir}, names, nil)
}

// refused expects the module to fail, in words that hold all of says.
func (s *site) refused(module string, names []string, says ...string) {
	s.t.Helper()
	vars, err := s.load(names...)
	var m *ModuleError
	if !errors.As(err, &m) || m.Module != module || exitcode.Of(err) != exitcode.Error {
		s.t.Fatalf("%q: %v, %v (%T); want a refusal of %q", names, vars, err, err, module)
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			s.t.Errorf("%q: %v\ndoes not say %q", names, err, word)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		s.t.Errorf("a secret is given away: %v", err)
	}
}

// tools are the real ones: packages of Debian, and where they are. Only one of
// them can be installed at a time.
func tools() map[string]string {
	return map[string]string{"environment-modules": "/usr/share/modules", "lmod": "/usr/share/lmod/lmod"}
}

// eachTool runs a test with either of them.
func eachTool(t *testing.T, test func(t *testing.T, s *site, tool string)) {
	for tool, home := range tools() {
		t.Run(tool, func(t *testing.T) { test(t, real(t, tool, home), tool) })
	}
}

// real is a site with a real tool.
func real(t *testing.T, tool, home string) *site {
	t.Helper()
	if _, err := os.Stat(filepath.Join(home, "init/bash")); err != nil {
		if os.Getenv("CI") == "true" && tool == "environment-modules" {
			t.Fatalf("install the package %s: %v", tool, err)
		}
		t.Skipf("%s is not installed", tool)
	}
	s := newSite(t)
	s.file("mf/compiler/9", "#%Module\nprepend-path PATH /opt/compiler/9/bin\nsetenv COMPILER nine\nunsetenv GONE\n")
	s.file("mf/compiler/10", "#%Module\nsetenv COMPILER ten\n")
	s.file("mf/other/1", "#%Module\nconflict compiler\nsetenv OTHER 1\n")
	s.file("mf/mpi/4", "#%Module\nprereq compiler\nsetenv MPI \"with $::env(COMPILER)\"\n")
	s.file("mf/broken/1", "#%Module\nno-such-command\n")
	s.file("mf/chatty/1", "#%Module\nputs stderr {ERROR: only talk, nothing more}\nsetenv CHATTY 1\n")
	s.file("mf/leaky/1", "#%Module\nputs stderr \"token is $::env(MY_TOKEN)\"\nexit 1\n")
	s.base = append(s.base, "MODULEPATH="+filepath.Join(s.dir, "mf"), "MODULESHOME="+home)
	return s
}

func TestModules(t *testing.T) {
	eachTool(t, func(t *testing.T, s *site, _ string) {
		vars, err := s.load("compiler/9", "mpi/4")
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"COMPILER": "nine", "MPI": "with nine", "PATH": "/opt/compiler/9/bin:/usr/bin:/bin", "LOADEDMODULES": "compiler/9:mpi/4",
		} {
			if got, _ := vars.Lookup(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if fmt.Sprint(vars.Unset()) != "[GONE]" {
			t.Errorf("unset: %v", vars.Unset())
		}
		for _, name := range vars.Names() {
			if strings.HasPrefix(name, ownPrefix) || name == "KEPT" || name == messageLanguage {
				t.Errorf("%s was changed", name)
			}
		}
	})
}

func TestModulesThatFail(t *testing.T) {
	eachTool(t, func(t *testing.T, s *site, tool string) {
		unknown := "ERROR: Unable to locate a modulefile for 'nope/1'"
		if tool == "lmod" {
			unknown = `Lmod has detected the following error: The following module(s) are unknown:; "nope/1"`
		}
		s.refused("nope/1", []string{"compiler/9", "nope/1", "mpi/4"}, `environment module "nope/1" cannot be loaded: `+unknown)
		s.refused("other/1", []string{"compiler/9", "other/1"}, "compiler", "other/1")
		s.refused("broken/1", []string{"broken/1"}, "no-such-command")
		s.refused("$(touch ran)'\"`id`", []string{"$(touch ran)'\"`id`"})
		if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
			t.Error("the name was executed")
		}
		s.base = append(s.base, "MY_TOKEN=hunter2")
		s.file("mf/silent/1", "#%Module\nexit 1\n")
		s.refused("silent/1", []string{"silent/1"})
		s.refused("leaky/1", []string{"leaky/1"}, "token is ***")
		if vars, err := s.load("chatty/1"); err != nil {
			t.Errorf("%v, %v", vars, err)
		}
	})
}

func TestNamesThatAreNone(t *testing.T) {
	for _, name := range []string{"", "--help", "a\nb", "a\x00b", "\x1b[31m"} {
		fake(t, `module() { touch ran; }`).refused(name, []string{"compiler/9", name}, "no name of a module")
	}
}

// A module that is loaded already, by the site's own start files, is fine.
func TestModuleThatIsLoadedAlready(t *testing.T) {
	eachTool(t, func(t *testing.T, s *site, _ string) {
		vars, err := s.load("compiler/10")
		if err != nil {
			t.Fatal(err)
		}
		s.base = vars.Apply(s.base)
		again, err := s.load("compiler/10")
		if _, changed := again.Lookup("COMPILER"); err != nil || changed {
			t.Errorf("%v, %v", again, err)
		}
	})
}

// The function is found in every place that a site may keep it in.
func TestWhereTheCommandIsFound(t *testing.T) {
	const define = "module() { export FOUND=$1:$2; }\n"
	plain := newSite(t)
	tool := plain.file("tool", "#!/bin/sh\necho \"FOUND=$2:$3; export FOUND\"\n")
	for name, c := range map[string]struct {
		base  []string
		inits []string
	}{
		"BASH_ENV":          {base: []string{"BASH_ENV=" + plain.file("a b/bash env.sh", define)}},
		"MODULESHOME":       {base: []string{"MODULESHOME=" + filepath.Dir(filepath.Dir(plain.file("home/init/bash", define)))}},
		"LMOD_PKG":          {base: []string{"LMOD_PKG=" + filepath.Dir(filepath.Dir(plain.file("pkg/init/bash", define)))}},
		"LMOD_CMD":          {base: []string{"LMOD_CMD=" + tool}},
		"MODULES_CMD":       {base: []string{"MODULES_CMD=" + tool}},
		"exported function": {base: []string{"BASH_FUNC_module%%=() {  export FOUND=$1:$2\n}"}},
		"init file":         {inits: []string{"/no/such/file", plain.file("profile.sh", define)}},
		"stale variables":   {base: []string{"MODULESHOME=/no/such", "LMOD_CMD=/no/such", "BASH_ENV=relative"}, inits: []string{plain.file("profile.sh", define)}},
	} {
		o := Options{Base: append(plain.base, c.base...), Dir: plain.dir}
		vars, err := loadModules(t.Context(), o, []string{"x/1"}, c.inits)
		if got, _ := vars.Lookup("FOUND"); err != nil || got != "load:x/1" {
			t.Errorf("%s: %v, %v", name, vars, err)
		}
	}
}

func TestNoModuleCommand(t *testing.T) {
	s := newSite(t)
	s.refused("", []string{"gcc"}, "no `module` command on this node", "install environment-modules or Lmod", "take the modules out")
	s.base = append(s.base, "BASH_ENV="+s.file("init.sh", "echo broken init >&2\n"))
	s.refused("", []string{"gcc"}, "broken init")
}

// Tools whose status says nothing are understood by their words.
func TestStatusThatSaysNothing(t *testing.T) {
	for name, c := range map[string]struct{ function, module, says string }{
		"Environment Modules 3": {
			`module() { case $2 in good*) export GOOD=1;; *) echo "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for '$2'" >&2;; esac; }`,
			"bad/1", "ERROR:105: Unable to locate a modulefile for 'bad/1'",
		},
		"Lmod": {
			`module() { case $2 in good*) export GOOD=1;; *) printf 'Lmod has detected the following error: The following module(s) are unknown: "%s"\n\nPlease check the spelling\n' "$2" >&2;; esac; }`,
			"bad/1", `Lmod has detected the following error: The following module(s) are unknown: "bad/1"`,
		},
		"Lmod that loaded nothing": {`LMOD_CMD=/bin/true; module() { [ "$1" = load ] || return 1; [ "$2" != good/1 ] || export LOADEDMODULES=good/1; }`, "bad/1", "said nothing, and it is not loaded"},
		"Lmod with a status":       {`module() { [ "$2" = good/1 ] || { echo "unknown: $2"; return 3; }; }`, "bad/1", "unknown: bad/1"},
		"silent status":            {`module() { [ "$2" = good/1 ] || return 3; }`, "bad/1", "returned status 3 and said nothing"},
		"its program is gone": {
			`module() { [ "$2" = good/1 ] || eval "$(/no/such/modulecmd bash "$@")"; }`,
			"bad/1", "/no/such/modulecmd: No such file or directory",
		},
		"it ends bash": {`module() { [ "$2" = good/1 ] || exit 0; }`, "bad/1", "ended bash"},
		"it is killed": {`module() { [ "$2" = good/1 ] || kill -9 $$; }`, "bad/1", "signal"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake(t, c.function)
			s.refused(c.module, []string{"good/1", c.module, "good/1"}, c.says)
			if _, err := s.load("good/1"); err != nil {
				t.Error(err)
			}
		})
	}
}

// What only warns, and what a loaded module complains of, is no failure.
func TestWarnings(t *testing.T) {
	for _, function := range []string{
		`module() { echo "Lmod Warning: deprecated" >&2; export LOADEDMODULES=$2; }`,
		`module() { echo "WARNING: old"; export LOADEDMODULES=$2; }`,
		`module() { echo "x.sh: line 3: /opt/y: No such file or directory" >&2; export LOADEDMODULES=$2; }`,
		`module() { seq 100000 >&2; export LOADEDMODULES=$2; }`,
	} {
		vars, err := fake(t, function).load("good/1")
		if got, _ := vars.Lookup("LOADEDMODULES"); err != nil || got != "good/1" {
			t.Errorf("%s: %v, %v", function, vars, err)
		}
	}
}

func TestModulesInTime(t *testing.T) {
	s := fake(t, `module() { [ "$2" = good/1 ] || sleep 600; }`)
	o := Options{Base: s.base, Dir: s.dir, Timeout: 300 * time.Millisecond}
	_, err := loadModules(t.Context(), o, []string{"good/1", "slow/1"}, nil)
	var m *ModuleError
	if !errors.As(err, &m) || m.Module != "slow/1" || !strings.Contains(err.Error(), "not done after 300ms") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := loadModules(ctx, o, []string{"slow/1"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestModuleScriptParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[^\x00]{0,12}`)
		script, err := moduleScript(map[string]string{"BASH_ENV": "/" + word.Draw(t, "file"), "LMOD_PKG": "/" + word.Draw(t, "home")},
			[]string{word.Draw(t, "module")}, []string{word.Draw(t, "init")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), ""); err != nil {
			t.Fatalf("%v\n%s", err, script)
		}
	})
}

// Whatever a module is called, the tool is asked for just that.
func TestModuleNamesArriveAsTheyAre(t *testing.T) {
	s := fake(t, `module() { export ASKED=$2 WORDS=$#; }`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[^-][^-]{0,12}`).Filter(func(s string) bool { return !strings.ContainsFunc(s, unprintable) }).Draw(t, "name")
		vars, err := loadModules(s.t.Context(), Options{Base: s.base, Dir: s.dir}, []string{name}, nil)
		asked, _ := vars.Lookup("ASKED")
		words, _ := vars.Lookup("WORDS")
		if err != nil || asked != name || words != "2" {
			t.Fatalf("%q: asked for %q in %s words, %v", name, asked, words, err)
		}
	})
}

package envfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/envfile"
	"assay/pkg/exitcode"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func values(v envfile.Vars) map[string]string {
	m := map[string]string{}
	for _, n := range v.Names() {
		m[n], _ = v.Lookup(n)
	}
	return m
}

func base(more ...string) []string {
	return append([]string{"PATH=/usr/bin:/bin", "HOME=/root"}, more...)
}

func TestShell(t *testing.T) {
	sneak := write(t, "sneak.sh", "export SNEAKED=yes\n")
	tests := []struct {
		name  string
		text  string
		base  []string
		want  map[string]string
		unset []string
	}{
		{"plain", "A=1\nB='two words'\n", nil, map[string]string{"A": "1", "B": "two words"}, nil},
		{"empty file", "", nil, map[string]string{}, nil},
		{"expansion", "ROOT=/data\nMODELS=$ROOT/models\n", nil, map[string]string{"ROOT": "/data", "MODELS": "/data/models"}, nil},
		{"default of an inherited variable", "X=${X:-mine}\nY=${Y:-mine}\n", base("Y=yours"), map[string]string{"X": "mine"}, nil},
		{"multi-line", "M='one\ntwo\n'\n", nil, map[string]string{"M": "one\ntwo\n"}, nil},
		{"quotes, dollars and unicode", `Q='a"b$(c)` + "`d`" + `'\''é'`, nil, map[string]string{"Q": "a\"b$(c)`d`'é"}, nil},
		{"command substitution", "N=$(printf 'x y')\n", nil, map[string]string{"N": "x y"}, nil},
		{"export keyword", "export E=1\n", nil, map[string]string{"E": "1"}, nil},
		{"only what changed", "SAME=1\nNEW=2\n", base("SAME=1"), map[string]string{"NEW": "2"}, nil},
		{"PATH may change", "PATH=/nowhere\n", nil, map[string]string{"PATH": "/nowhere"}, nil},
		{"unset", "unset GONE\n", base("GONE=1"), map[string]string{}, []string{"GONE"}},
		{"prints on every descriptor", "echo out; echo err >&2; echo three 2>/dev/null >&3 || true\nA=1\n", nil, map[string]string{"A": "1"}, nil},
		{"uses descriptor 3 itself", "exec 3>/dev/null; echo x >&3; A=1\n", nil, map[string]string{"A": "1"}, nil},
		{"cd is no variable", "cd /tmp; A=1\n", base("PWD=/", "OLDPWD=/"), map[string]string{"A": "1"}, nil},
		{"own errexit", "set -eux; A=1\n", nil, map[string]string{"A": "1"}, nil},
		{"exit trap", "trap 'echo bye' EXIT; A=1\n", nil, map[string]string{"A": "1"}, nil},
		{"functions and arrays are no variables", "f() { :; }\nL=(a b)\nA=1\n", nil, map[string]string{"A": "1"}, nil},
		{"functions that shadow builtins", "exec() { echo no; }; exit() { echo no; }; env() { echo no; }; A=1\n", nil, map[string]string{"A": "1"}, nil},
		{"inherited function", "greet; A=$G\n", base("BASH_FUNC_greet%%=() {  G=hello\n}"), map[string]string{"A": "hello", "G": "hello"}, nil},
		{"getopts and read", "read -r <<< hi; A=1\n", nil, map[string]string{"A": "1"}, nil},
		{"BASH_ENV of the file is kept", "BASH_ENV=/etc/profile\n", nil, map[string]string{"BASH_ENV": "/etc/profile"}, nil},
		{"BASH_ENV inherited is not honoured", "A=${SNEAKED:-no}\n", base("BASH_ENV=" + sneak), map[string]string{"A": "no"}, nil},
		{"options inherited are not honoured", "A=$UNKNOWN_NAME\n", base("SHELLOPTS=nounset:xtrace:noexec"), map[string]string{"A": ""}, nil},
		{"standard input is empty", "read -r LINE || true; A=[$LINE]\n", nil, map[string]string{"A": "[]", "LINE": ""}, nil},
		{"no positional parameters", "A=$#\n", nil, map[string]string{"A": "0"}, nil},
		{"a daemon that keeps everything open", "sleep 20 &\nA=1\n", nil, map[string]string{"A": "1"}, nil},
		{"LANGUAGE is as it was", "A=1\n", base("LANGUAGE=de", "LC_ALL=C.UTF-8"), map[string]string{"A": "1"}, nil},
		{"LANGUAGE of the file", "LANGUAGE=de\n", nil, map[string]string{"LANGUAGE": "de"}, nil},
		{"odd inherited names survive", "A=1\n", base("FOO-BAR=1", "x.y=2"), map[string]string{"A": "1"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.base == nil {
				tt.base = base()
			}
			got, err := envfile.Load(t.Context(), envfile.Options{Path: write(t, "it's $(mad) é.env", tt.text), Base: tt.base})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, values(got)); d != "" {
				t.Errorf("variables (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.unset, got.Unset()); d != "" {
				t.Errorf("removed (-want +got):\n%s", d)
			}
		})
	}
}

func TestShellWorkingDirectory(t *testing.T) {
	path := write(t, "mad.env", "HERE=$(pwd)\n")
	dir := t.TempDir()
	for _, tt := range []struct{ dir, want string }{
		{"", filepath.Dir(path)},
		{dir, dir},
		{filepath.Join(dir, "absent"), filepath.Dir(path)},
	} {
		got, err := envfile.Load(t.Context(), envfile.Options{Path: path, Dir: tt.dir, Base: base()})
		if err != nil {
			t.Fatal(err)
		}
		if here, _ := got.Lookup("HERE"); here != tt.want {
			t.Errorf("Dir %q: sourced in %q, want %q", tt.dir, here, tt.want)
		}
	}
}

func TestRefused(t *testing.T) {
	tests := []struct {
		name, format, text string
		want               []string // all in the message
		not                []string // none in the message
	}{
		{"status", "shell", "A=1\nfalse\n", []string{"status 1"}, nil},
		{"return", "shell", "return 3\n", []string{"status 3"}, nil},
		{"exit", "shell", "exit 9\n", []string{"status 9"}, nil},
		{"exit 0", "shell", "A=1\nexit 0\n", []string{"before its variables could be read back"}, nil},
		{"errexit", "shell", "set -e\ncat /nonexistent\nA=1\n", []string{"status 1", "/nonexistent"}, nil},
		{"bash's message", "shell", "no_such_command_x\n", []string{"line 1", "***: command not found"}, []string{"no_such"}},
		{"syntax", "shell", "A=1\nTOKEN=hunter2 (\n", []string{"line 2", "syntax error"}, []string{"hunter2"}},
		{"unquoted value", "shell", "TOKEN=abc hunter2\n", []string{"line 1", "command not found", "quotes"}, []string{"hunter2"}},
		{"asked for", "shell", "A=${NEEDED:?must be set}\n", []string{"line 1: NEEDED: must be set"}, []string{"quotes"}},
		{"unbound", "shell", "set -eu; A=$NOPE\n", []string{"line 1: NOPE: unbound variable"}, []string{"quotes"}},
		{"unbound, in braces", "shell", "set -eu\nexport A=\"x/${NOPE}\"\n", []string{"line 2: NOPE: unbound variable"}, []string{"quotes"}},
		{"expanded", "shell", "export TOKEN=abc; $TOKEN\n", []string{"line 1: ***: command not found"}, []string{"quotes", "abc"}},
		{"command after an assignment", "shell", "A=1; no_such_command_x\n", []string{"line 1: ***: command not found"}, []string{"quotes"}},
		{"substitution", "shell", "A=$(no_such_command_x y)\n", []string{"line 1: ***: command not found"}, []string{"quotes"}},
		{"program", "shell", "module load cuda\n", []string{"line 1: module: command not found"}, []string{"quotes"}},
		{"asked for, in a file it sources", "shell", "cat > \"${BASH_SOURCE%/*}/site.sh\" <<< 'A=${NEEDED:?no such cluster}'; . \"${BASH_SOURCE%/*}/site.sh\"\n", []string{"/site.sh: line 1: NEEDED: no such cluster"}, nil},
		{"said by the file", "shell", "echo 'no such cluster' >&2; return 3\n", []string{"status 3", "no such cluster"}, nil},
		{"unset of a readonly variable", "shell", "readonly R=1; unset R\n", []string{"unset: R: cannot unset: readonly variable"}, nil},
		{"no file", "shell", ". /nonexistent.sh\n", []string{"line 1: ***: No such file or directory"}, nil},
		{"condition", "shell", "A=1 && [ $A -eq x ]\n", []string{"integer expression expected"}, []string{"quotes"}},
		{"readonly", "shell", "readonly R=1; R=2\n", []string{"R: readonly variable"}, []string{"quotes"}},
		{"trace", "shell", "set -x\nTOKEN=hunter2\nfalse\n", []string{"status 1"}, []string{"hunter2"}},
		{"long message", "shell", "head -c 100000 /dev/zero | tr '\\0' x >&2; false\n", []string{"status 1", "…"}, nil},
		{"killed", "shell", "kill -9 $$\n", []string{"signal"}, nil},
		{"dotenv character", "dotenv", "A=1\n\nB C!=hunter2\n", []string{":3:", "NAME=value"}, []string{"hunter2"}},
		{"dotenv quote", "dotenv", "A=1\nB=\"hunter2\n", []string{":2:", "not closed"}, []string{"hunter2"}},
		{"dotenv no name", "dotenv", "=1\n", []string{"variable name"}, nil},
		{"format", "toml", "A=1\n", []string{"toml", "shell", "dotenv"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "mad.env", tt.text)
			_, err := envfile.Load(t.Context(), envfile.Options{Path: path, Format: tt.format, Base: base()})
			if exitcode.Of(err) != exitcode.Invalid {
				t.Fatalf("error %v has code %v, want %v", err, exitcode.Of(err), exitcode.Invalid)
			}
			for _, s := range append(tt.want, path) {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			for _, s := range tt.not {
				if strings.Contains(err.Error(), s) {
					t.Errorf("%q gives %q away", err, s)
				}
			}
			if len(err.Error()) > 1500 || strings.Contains(err.Error(), "\n") {
				t.Errorf("the message is not one line of bounded length: %q", err)
			}
		})
	}
}

func TestNotAFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "absent.env"): "no such file",
		dir:                              "is a directory",
		fifo:                             "not a regular file",
	} {
		_, err := envfile.Load(t.Context(), envfile.Options{Path: path, Base: base()})
		if exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q and the path", path, err, want)
		}
	}
}

func TestTimeLimitEndsTheWholeGroup(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	path := write(t, "mad.env", "trap '' TERM\n(trap '' TERM; echo $BASHPID > "+pid+"; while :; do sleep 1; done) &\nwait\n")
	_, err := envfile.Load(t.Context(), envfile.Options{
		Path: path, Base: base(), Timeout: 500 * time.Millisecond, Grace: 100 * time.Millisecond,
	})
	if exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), "500ms") {
		t.Fatalf("got %v, want the time limit", err)
	}
	data, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 { // it has been sent KILL; its new parent reaps it
		if err := syscall.Kill(n, 0); errors.Is(err, syscall.ESRCH) || zombie(n) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d of the file still runs", n)
}

func zombie(pid int) bool {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(data), ") Z ")
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := envfile.Load(ctx, envfile.Options{Path: write(t, "mad.env", "sleep 60\n"), Base: base()})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
}

func TestDotenv(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "executed")
	path := write(t, "mad.env", "\ufeff# comment\nA=1\nexport B='two words'\nC=\"x ${A}\"\nD=$(touch "+marker+")\nSAME=1\r\n")
	got, err := envfile.Load(t.Context(), envfile.Options{Path: path, Format: envfile.FormatDotenv, Base: base("SAME=1")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a command of the file was executed")
	}
	if d := cmp.Diff([]string{"A", "B", "C", "D"}, got.Names()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	if c, _ := got.Lookup("C"); c != "x 1" {
		t.Errorf("C is %q, want the expansion of A", c)
	}
}

func TestValuesAreNeverPrinted(t *testing.T) {
	v, err := envfile.Load(t.Context(), envfile.Options{Path: write(t, "mad.env", "TOKEN=hunter2\n"), Base: base()})
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		fmt.Sprint(v), fmt.Sprintf("%v %+v %#v %s", v, v, v, v), fmt.Sprintf("%+v", &v),
		fmt.Sprintf("%+v", struct{ V envfile.Vars }{v}), string(asJSON), v.LogValue().String(),
	} {
		if strings.Contains(s, "hunter2") {
			t.Errorf("printed as %q", s)
		}
	}
	if !strings.Contains(fmt.Sprint(v), "TOKEN") {
		t.Error("the name is not printed")
	}
}

func TestApply(t *testing.T) {
	v, err := envfile.Load(t.Context(), envfile.Options{
		Path: write(t, "mad.env", "B=2\nZ=26\nunset C\n"), Base: base("A=1", "B=1", "C=1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"A=1", "D=4", "B=2", "Z=26"}
	if d := cmp.Diff(want, v.Apply([]string{"A=1", "B=1", "C=1", "D=4"})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Any value that an environment can hold comes back as it is.
func TestShellKeepsEveryValue(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		value := strings.ReplaceAll(rapid.String().Draw(rt, "value"), "\x00", "")
		path := filepath.Join(dir, "v.env")
		text := "V='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			rt.Fatal(err)
		}
		v, err := envfile.Load(t.Context(), envfile.Options{Path: path, Base: base()})
		if err != nil {
			rt.Fatal(err)
		}
		if got, _ := v.Lookup("V"); got != value {
			rt.Fatalf("got %q, want %q", got, value)
		}
	})
}

func BenchmarkShell(b *testing.B) {
	path := write(b, "mad.env", "A=1\nB=$A/x\n")
	for b.Loop() {
		if _, err := envfile.Load(b.Context(), envfile.Options{Path: path, Base: base()}); err != nil {
			b.Fatal(err)
		}
	}
}

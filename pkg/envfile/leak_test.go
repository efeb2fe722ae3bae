package envfile_test

import (
	"strings"
	"testing"

	"assay/pkg/envfile"
	"assay/pkg/exitcode"
)

// No message shows a value, however the file fails and whatever it prints.
func TestMessagesShowNoValue(t *testing.T) {
	// A value that the text of the file does not show.
	const computed = "DB=$(printf 'hunt%s' er2)\n"
	for _, tt := range []struct {
		name, text string
		base       []string
		want       string // is in the message
	}{
		{"trace", "set -x\nTOKEN=hunter2\nfalse\n", nil, "status 1"},
		{"trace, PS4 of the file", "PS4='>> '\nset -x\nTOKEN=hunter2\nfalse\n", nil, "status 1"},
		{"trace, PS4 inherited", "set -x\nTOKEN=hunter2\nfalse\n", base("PS4=>> "), "status 1"},
		{"trace of a computed value", "PS4='>> '\nset -x\nTOKEN=$(printf 'hunt%s' er2)\nunset TOKEN\nfalse\n", nil, "status 1"},
		{"trace to stderr", "PS4='>> '\nBASH_XTRACEFD=2\nset -x\nTOKEN=hunter2\nfalse\n", nil, "status 1"},
		{"trace of a child", "TOKEN=hunter2 PS4='>> ' bash -xc ': $TOKEN; exit 3' || return 3\n", nil, "status 3"},
		{"printed, return", "DB=hunter2\necho \"login with $DB failed\" >&2\nreturn 3\n", nil, "login with *** failed"},
		{"printed, exit", "DB=hunter2\necho \"login with $DB failed\" >&2\nexit 3\n", nil, "login with *** failed"},
		{"printed, exit 0", "DB=hunter2\necho \"login with $DB failed\" >&2\nexit 0\n", nil, "login with *** failed"},
		{"printed, errexit", "set -e\nDB=hunter2\necho \"login with $DB failed\" >&2\nfalse\n", nil, "login with *** failed"},
		{"computed, return", computed + "echo \"login with $DB failed\" >&2\nreturn 3\n", nil, "login with *** failed"},
		{"computed, exit", computed + "echo \"login with $DB failed\" >&2\nexit 3\n", nil, "login with *** failed"},
		{"computed, errexit", "set -e\n" + computed + "echo \"login with $DB failed\" >&2\nfalse\n", nil, "login with *** failed"},
		{"computed, not exported", computed + "declare +x DB\necho \"login with $DB failed\" >&2\nreturn 3\n", nil, "login with *** failed"},
		{"computed, control characters", "DB=$(printf '\\thunt%s\\001é' er2)\necho \"login with $DB failed\" >&2\nreturn 3\n", nil, "failed"},
		{"computed, in an array", computed + "L=(\"$DB\" x)\nunset DB\necho \"login with ${L[0]} failed\" >&2\nreturn 3\n", nil, "login with *** failed"},
		{"computed, in a map", computed + "declare -A M=([a]=\"$DB\" [\"b c\"]=x)\nunset DB\necho \"login with ${M[a]} failed\" >&2\nreturn 3\n", nil, "login with *** failed"},
		{"computed, local", "f() { local " + computed + "echo \"login with $DB failed\" >&2; exit 3; }\nf\n", nil, "login with *** failed"},
		{"read", "read -r DB <<< hunter2\necho \"login with $DB failed\" >&2\nreturn 3\n", nil, "login with *** failed"},
		{"unset again", "DB=hunter2\necho \"login with $DB failed\" >&2\nunset DB\nreturn 3\n", nil, "login with *** failed"},
		{"in quotes, unset again", "export DB=\"hunter2 x\" E='hunter2'\necho \"login with $DB$E failed\" >&2\nunset DB E\nreturn 3\n", nil, "failed"},
		{"inherited", "echo \"login with $DB_PASSWORD failed\" >&2\nreturn 3\n", base("DB_PASSWORD=hunter2"), "login with *** failed"},
		{"several lines", "DB='first line\nhunter2\n'\necho \"login with $DB failed\" >&2\nreturn 3\n", nil, "login with ***; ***"},
		{"own exit trap", "trap 'echo bye' EXIT\n" + computed + "echo \"login with $DB failed\" >&2\nexit 3\n", nil, "status 3"},
		{"exec", computed + "echo \"login with $DB failed\" >&2\nexec false\n", nil, "status 1"},
		{"killed", computed + "echo \"login with $DB failed\" >&2\nkill -9 $$\n", nil, "signal"},
		{"split by space", "TOKEN=abc hunter2 x\n", nil, "line 1: ***: command not found (put quotes"},
		{"split by semicolon", "TOKEN=abc;hunter2\n", nil, "line 1: ***: command not found (put quotes"},
		{"split by ampersand", "export TOKEN=abc&hunter2\n", nil, "line 1: ***: command not found (put quotes"},
		{"split, a quoted part before", "TOKEN='x; y' hunter2\n", nil, "***: command not found (put quotes"},
		{"split, no command", "TOKEN=abc /hunter2/x\n", nil, "line 1: ***: No such file or directory"},
		{"split, killed", "TOKEN=abc hunter2\nkill -9 $$\n", nil, "line 1: command not found (put quotes"},
		{"split, of export", "export TOKEN=abc hunter-2\nhunter-2\n", nil, "`***': not a valid identifier"},
		{"split over lines", "KEY=-----BEGIN PRIVATE KEY-----\nhunter2\nhunter2\n", nil, "line 1: ***: command not found (put quotes"},
		{"expanded", "export TOKEN=hunter2; $TOKEN\n", nil, "line 1: ***: command not found"},
		{"command", computed + "$DB x\nkill -9 $$\n", nil, "line 2: command not found"},
		{"command, values known", computed + "$DB x\n", nil, "line 2: ***: command not found"},
		{"builtin is shadowed", computed + "builtin() { :; }\necho \"login with $DB failed\" >&2\nreturn 3\n", nil, "env_file"},
		{"syntax", "A=1\nTOKEN=hunter2 (\n", nil, "line 2: syntax error near unexpected token `('"},
		{"syntax, another language", "A=1\nTOKEN=$(hunter2 (\n", base("LANGUAGE=de", "LC_ALL=C.UTF-8"), "syntax error"},
		{"syntax, token", "case x hunter2\n", nil, "line 1: syntax error near unexpected token `***'"},
		{"syntax, after output", computed + "echo \"login with $DB failed\" >&2\nfi\n", nil, "line 3: syntax error near unexpected token `fi'"},
		{"syntax, open quote", "TOKEN=\"hunter2\n", nil, "line 1: unexpected EOF while looking for matching `\"'"},
		{"cut in the middle", "DB=hunter2hunter2\nfor i in {1..1000}; do printf %s \"$DB\" >&2; done\nreturn 3\n", nil, "******"},
		{"the path is not a value", "DB=hunter2 DIR=${BASH_SOURCE%/*}\nno_such_command_x\n", nil, "command not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.base == nil {
				tt.base = base()
			}
			path := write(t, "mad.env", tt.text)
			_, err := envfile.Load(t.Context(), envfile.Options{Path: path, Base: tt.base})
			if exitcode.Of(err) != exitcode.Invalid {
				t.Fatalf("error %v has code %v, want %v", err, exitcode.Of(err), exitcode.Invalid)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q does not say %q", err, tt.want)
			}
			for _, part := range []string{"hunt", "unter", "ter2"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("%q gives %q away", err, part)
				}
			}
			if strings.Count(err.Error(), path) == 0 {
				t.Errorf("%q does not name the file", err)
			}
		})
	}
}

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
		{"split, killed", "TOKEN=abc hunter2\nkill -9 $$\n", nil, "line 1: ***: command not found (put quotes"},
		{"split, of export", "export TOKEN=abc hunter-2\nhunter-2\n", nil, "line 1: export: ***: not a valid identifier"},
		{"split over lines", "KEY=-----BEGIN PRIVATE KEY-----\nhunter2\nhunter2\n", nil, "line 1: ***: command not found (put quotes"},
		{"expanded", "export TOKEN=hunter2; $TOKEN\n", nil, "line 1: ***: command not found"},
		{"command", computed + "$DB x\nkill -9 $$\n", nil, "line 2: ***: command not found"},
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

// A line of a value that never became one is a word of a complaint.
func TestComplaintsShowNoWordOfTheFile(t *testing.T) {
	long := "'" + strings.Repeat("hunter2\n", 1000)
	for text, want := range map[string]string{
		"cd " + long + "'\n":                                             "env_file",
		"[ " + long + "' -eq 1 ]\n":                                      "env_file",
		long + "' x\n":                                                   "env_file",
		long + strings.Repeat("hunter2", 400) + "' x\n":                  "env_file",
		strings.ReplaceAll(long, "\n", " ") + "' x\n":                    "env_file",
		"KEY=-----BEGIN X KEY-----\nhunter2VALUEabc+/=\n-----END-----\n": "line 2: ***: No such file or directory",
		"TOK:hunter2\n":                                                  "line 1: ***: command not found",
		"TOK: hunter2; TOK : hunter2\n":                                  "line 1: ***: command not found",
		"hunter2\n":                                                      "line 1: ***: command not found",
		"hunter2 module x\n":                                             "line 1: ***: command not found",
		"'first\nhunter2\nlast' x\n":                                     "***",
		"'first\nhunter2: command not found\nhunter2'\n":                 "***",
		"\"\nhunter2\n\"\n":                                              "env_file",
		"./hunter2\n":                                                    "line 1: ***: No such file or directory",
		"exec /hunter2\n":                                                "line 1: ***: No such file or directory",
		"exec hunter2\n":                                                 "line 1: exec: ***: not found",
		". hunter2\n":                                                    "line 1: ***: No such file or directory",
		"source /hunter2/x\n":                                            "line 1: ***: No such file or directory",
		"/tmp hunter2; $PWD/hunter2 x\n":                                 "line 1: ***: Is a directory",
		"declare -x 1A=hunter2\n":                                        "line 1: declare: ***: not a valid identifier",
		"export 'TOK hunter2'\n":                                         "line 1: export: ***: not a valid identifier",
		"export $'1TOK\\nhunter2\\n'\n":                                  "line 1: export: ***",
		"readonly 1A=hunter2\n":                                          "line 1: readonly: ***: not a valid identifier",
		"read -r hunter2.x <<< x\n":                                      "line 1: read: ***: not a valid identifier",
		"unset -v hunter2.x\n":                                           "line 1: unset: ***: not a valid identifier",
		"[ hunter2 -eq 3 ]\n":                                            "line 1: [: ***: integer expression expected",
		"[ 1 -hunter2 3 ]\n":                                             "line 1: [: ***: binary operator expected",
		"[ -hunter2 3 ]\n":                                               "line 1: [: ***: unary operator expected",
		"[[ hunter2.x -eq 3 ]]\n":                                        "line 1: [[: ***: syntax error: invalid arithmetic operator",
		"[[ x hunter2 y ]]\n":                                            "line 1: conditional binary operator expected",
		"set -u; ((hunter2 == 3))\n":                                     "line 1: ***: unbound variable",
		"cd hunter2\n":                                                   "line 1: cd: ***: No such file or directory",
		"pushd hunter2\n":                                                "line 1: pushd: ***: No such file or directory",
		"printf %d hunter2\n":                                            "line 1: printf: ***: invalid number",
		"printf %!hunter2\n":                                             "line 1: printf: ***: invalid format character",
		"((hunter2.x))\n":                                                "line 1: ((: ***: syntax error: invalid arithmetic operator",
		"((08hunter2))\n":                                                "line 1: ((: ***: value too great for base",
		"A=$((1 + hunter2 hunter2))\n":                                   "line 1: ***: syntax error in expression",
		"let hunter2+\n":                                                 "line 1: let: ***: syntax error: operand expected",
		"A=${hunter2.x}\n":                                               "line 1: ***: bad substitution",
		"A=${#hunter2-x}; false\n":                                       "line 1: ***: bad substitution",
		"cat < hunter2\n":                                                "line 1: ***: No such file or directory",
		"echo x > /hunter2/x\n":                                          "line 1: ***: No such file or directory",
		"echo x > $(echo hunter2 x)\n":                                   "line 1: ***: ambiguous redirect",
		"echo x >&hunter2/x\n":                                           "line 1: ***: No such file or directory",
		"kill -hunter2 1\n":                                              "line 1: kill: ***: invalid signal specification",
		"kill hunter2\n":                                                 "line 1: kill: ***: arguments must be process or job IDs",
		"trap x hunter2\n":                                               "line 1: trap: ***: invalid signal specification",
		"return hunter2\n":                                               "line 1: return: ***: numeric argument required",
		"exit hunter2\n":                                                 "line 1: exit: ***: numeric argument required",
		"shopt -s hunter2\n":                                             "line 1: shopt: ***: invalid shell option name",
		"set -o hunter2\n":                                               "line 1: set: ***: invalid option name",
		"set -e; set --hunter2\n":                                        "line 1: set: ***: invalid option",
		"builtin hunter2\n":                                              "line 1: builtin: ***: not a shell builtin",
		"alias hunter2\n":                                                "line 1: alias: ***: not found",
		"type hunter2\n":                                                 "line 1: type: ***: not found",
		"ulimit -n hunter2\n":                                            "line 1: ulimit: ***: invalid number",
		"umask hunter2\n":                                                "line 1: umask: ***",
		"shift hunter2\n":                                                "line 1: shift: ***: numeric argument required",
		"eval 'TOK=x (hunter2'\n":                                        "syntax error near unexpected token",
		"eval 'hunter2'\n":                                               "line 1: ***: command not found",
		"A=$(echo hunter2 | hunter2)\n":                                  "line 1: ***: command not found",
		"bash -c hunter2\n":                                              "line 1: ***: command not found",
		"bash -c 'kill -9 $$' hunter2\n":                                 "env_file",
		"cat > \"${BASH_SOURCE%/*}/x\" <<< hunter2; . \"${BASH_SOURCE%/*}/x\"\n": "/x: line 1: ***: command not found",
		"return 4 <<hunter2\nx\n":             "env_file",
		"f() { hunter2; }\nf\n":               "line 1: ***: command not found",
		"declare -A m=([a]=1); m[]=hunter2\n": "***: bad array subscript",
		"declare -A m=(hunter2); false\n":     "env_file",
		"declare -n r='hunter2 x'\n":          "line 1: declare: ***: invalid variable name for name reference",
		"A=${!hunter2}; false\n":              "invalid indirect expansion",
		"x='a hunter2'; A=${!x}\n":            "***: invalid variable name",
	} {
		for _, end := range []string{"", "return 3\n", "kill -9 $$\n"} {
			path := write(t, "mad.env", text+end)
			_, err := envfile.Load(t.Context(), envfile.Options{Path: path, Base: base()})
			if err == nil && end == "" {
				continue // it was only a warning
			}
			if exitcode.Of(err) != exitcode.Invalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", text+end, err, want)
			}
			for _, part := range []string{"hunt", "unter", "ter2", "VALUE"} {
				if err != nil && strings.Contains(err.Error(), part) {
					t.Errorf("%q: %q gives %q away", text+end, err, part)
				}
			}
		}
	}
}

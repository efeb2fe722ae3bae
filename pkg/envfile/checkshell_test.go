package envfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckShell has bash parse and source the same content: what it refuses to
// source for its syntax, and nothing else, is a fault.
func TestCheckShell(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, want := range map[string]string{
		"A=1\nB='two words'\n":                    "",
		"A=\xff\nB=caf\xe9\n":                     "",
		"declare -A m=([a b]=c)\n":                "",
		"declare -A m\nm[a b]=c\n":                "",
		"declare() { :; }\n":                      "",
		"let || true\n":                           "",
		"A=$(touch ran)\ntouch ran\n":             "",
		"shopt -s extglob\nB=1\nA=@(a|b)\n":       "",
		"A=1\n: <<EOF\nx\n":                       "accepted line 3: here-document at line 2 delimited by end-of-file (wanted `…')",
		"A=1\nB=a\x00b\n":                         "accepted line 2: the file has a NUL byte, which is left out",
		"A=@(a|b)\n":                              "line 1: syntax error near unexpected token `('",
		"A=1\nTOKEN=(a hunter2) hunter2 (\n":      "line 2: syntax error near unexpected token `('",
		"for x hunter2; do :; done\n":             "line 1: syntax error near unexpected token `…'",
		"if true; then\nA=1\n":                    "line 3: syntax error: unexpected end of file",
		"A=1\r\nif true; then\r\nB=2\r\nfi\r\n":   "line 5: syntax error: unexpected end of file",
		"A=$(if)\n":                               "line 1: syntax error near unexpected token `)'",
		"A=\"open\n":                              "line 1: unexpected EOF while looking for matching `\"'",
		"A=1\n}\n":                                "line 2: syntax error near unexpected token `}'",
		strings.Repeat("A=1 # many lines\n", 1e5): "",
	} {
		fault, err := CheckShell(t.Context(), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if fault != nil {
			got = fault.Error()
			if fault.Accepted {
				got = "accepted " + got
			}
		}
		if got = strings.ReplaceAll(got, blank, "…"); got != want {
			t.Errorf("%.60q: got %s, want %s", text, got, want)
		}
		if _, err := os.Stat("ran"); err == nil {
			t.Error("it was executed")
		}
		path := filepath.Join(t.TempDir(), "x.env")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Load(t.Context(), Options{Path: path, Base: []string{"PATH=/usr/bin:/bin"}})
		if refused := fault != nil && !fault.Accepted; refused != (err != nil) {
			t.Errorf("%.60q: parsed: %v; sourced: %v", text, fault, err)
		}
	}
}

package lint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/envfile"
)

func TestShellSyntax(t *testing.T) {
	for text, want := range map[string]string{
		"A=\xff\n":                  "",
		"declare -A m=([a b]=c)\n":  "",
		"m[a b]=c\n":                "",
		"declare() { :; }\n":        "",
		"let\n":                     "",
		"A=1\ncat <<EOF\nx\n":       "3:1 warning bash accepts this, with a warning: here-document at line 2",
		"A=1\nB=\x00\n":             "2:1 warning bash accepts this, with a warning: the file has a NUL byte",
		"A=@(a|b)\n":                "1:1 error bash refuses this: syntax error near unexpected token `('",
		"declare -A m=([a b]=c)\n}": "2:1 error bash refuses this: syntax error near unexpected token `}'",
		"é=1; }\n":                  "1:6 error bash refuses this: syntax error near unexpected token `}'",
		"A=1\nif true; then\nB=1\n": "2:1 error bash refuses this: syntax error: unexpected end of file (`if` statement must end with `fi`)",
		"A='open\n":                 "1:3 error bash refuses this: unexpected EOF while looking for matching `''",
	} {
		got := ""
		if f := shellSyntax([]byte(text)); f != nil {
			got = fmt.Sprintf("%d:%d %s %s", f.Line, f.Column, f.Severity, f.Message)
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestShellSyntaxWithoutBash: what only the other parser refuses is a warning.
func TestShellSyntaxWithoutBash(t *testing.T) {
	absent := errors.New("bash was not found")
	if f := shellFinding([]byte("A=1\n"), nil, absent); f != nil {
		t.Errorf("%+v", f)
	}
	f := shellFinding([]byte("A=1\nif"), nil, absent)
	if f == nil || f.Severity != Warning || f.Line != 2 || !strings.HasPrefix(f.Message, "the env_file cannot be checked: bash was not found, and the parser") {
		t.Errorf("%+v", f)
	}
	for _, deep := range []string{"(", "$((", "${a[", "`", "if "} {
		shellFinding([]byte(strings.Repeat(deep, maxParsed)), &envfile.SyntaxError{Line: 1}, nil)
		shellFinding([]byte(strings.Repeat(deep, maxParsed/len(deep))), &envfile.SyntaxError{Line: 1}, nil)
	}
}

// TestEnvFileShowsNoValue: the line that is wrong may hold a secret.
func TestEnvFileShowsNoValue(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.env"), []byte("TOKEN=hunter2 (\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"shell", "dotenv"} {
		manifest := fmt.Sprintf(`{"built_images": {}, "built_models": {}, "deployment_config": {"env_file": "x.env", "env_file_format": %q}}`, format)
		r := Bytes(filepath.Join(dir, "build_manifest.json"), []byte(manifest), Options{})
		var out bytes.Buffer
		if err := Write(&out, "text", []*Result{r}, WriteOptions{Source: true}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "hunter2") || format == "shell" && !strings.Contains(out.String(), "x.env:1:15: error: ENV_FILE_SYNTAX") {
			t.Errorf("%s", &out)
		}
	}
}

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A terminal is never asked anything: one that does not answer would hold up
// every command.
func TestTerminalIsNotAsked(t *testing.T) {
	script, err := exec.LookPath("script") // of util-linux
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	bin := filepath.Join(t.TempDir(), "assay")
	if out, err := exec.Command("go", "build", "-o", bin, "assay/cmd/assay").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, env := range []string{"NO_COLOR=", "NO_COLOR=1"} {
		cmd := exec.Command(script, "-qec", bin+" version; "+bin+" discover --root "+t.TempDir(), "/dev/null")
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", env)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text := string(out)
		if strings.Contains(text, "\x1b]") || strings.Contains(text, "\x1b[6n") {
			t.Errorf("%s: the terminal was asked: %q", env, text)
		}
		if colored := strings.Contains(text, "\x1b["); colored != (env == "NO_COLOR=") {
			t.Errorf("%s: coloured is %t: %q", env, colored, text)
		}
	}
}

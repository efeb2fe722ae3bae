package envfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckDotenv checks the same content with Load, which must say the same.
func TestCheckDotenv(t *testing.T) {
	for text, want := range map[string]string{
		"A=1\nB=\"two words\"\n":   "",
		"\ufeffA=1\n":              "",
		"A=1\r\nB=2\r\nC D\n":      "line 3: unexpected character",
		"A=1\nB=\"open secret\n":   "line 2: a quoted value is not closed",
		"A=1\n=2\n":                "NAME=value",
		"A=a\x00b\n":               "the value of A holds a NUL byte",
		"export A=1\n# remark\n\n": "",
	} {
		fault := CheckDotenv([]byte(text))
		path := filepath.Join(t.TempDir(), "x.env")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(t.Context(), Options{Path: path, Format: FormatDotenv})
		if (fault == nil) != (want == "") || (err == nil) != (fault == nil) {
			t.Errorf("%q: %v, Load says %v", text, fault, err)
			continue
		}
		if fault == nil {
			continue
		}
		if !strings.Contains(fault.Error(), want) || strings.Contains(fault.Error(), "secret") || !strings.Contains(err.Error(), fault.Message) {
			t.Errorf("%q: %v, want %q; Load says %v", text, fault, want, err)
		}
	}
}

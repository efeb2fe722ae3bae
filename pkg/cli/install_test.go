package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/exitcode"
)

func TestInstall(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte("the program"), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(dest string) (int, string) {
		var out, errs bytes.Buffer
		code := Main(IO{Out: &out, Err: &errs, Dir: dir, Binary: binary, Version: "v"}, []string{"install", dest})
		return code, out.String() + errs.String()
	}
	for _, dest := range []string{filepath.Join(dir, "new", "bin", "assay"), filepath.Join(dir, "new", "bin", "assay"), "here"} {
		code, said := run(dest)
		if !filepath.IsAbs(dest) {
			dest = filepath.Join(dir, dest)
		}
		info, err := os.Stat(dest)
		if code != 0 || said != "" || err != nil {
			t.Fatalf("%s: exit code %d, %q, %v", dest, code, said, err)
		}
		data, _ := os.ReadFile(dest)
		if string(data) != "the program" || info.Mode() != 0o755 {
			t.Errorf("%s: %q, %v", dest, data, info.Mode())
		}
		if entries, _ := os.ReadDir(filepath.Dir(dest)); filepath.Dir(dest) != dir && len(entries) != 1 {
			t.Errorf("beside it lie %v", entries)
		}
	}
	for dest, want := range map[string]exitcode.Code{dir: exitcode.Invalid, filepath.Join(binary, "x"): exitcode.Error} {
		if code, said := run(dest); code != int(want) || !strings.Contains(said, dest) && !strings.Contains(said, binary) {
			t.Errorf("%s: exit code %d, %q; want %d", dest, code, said, want)
		}
	}
}

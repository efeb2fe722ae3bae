package rank

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A long PATH is not told in full.
func TestProgramNotFound(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		candidates []string
		want       string
	}{
		"few":  {[]string{"/a/x", "/b/x", "/c/x", "/d/x"}, `program "x" not found; looked at /a/x, /b/x, /c/x, /d/x`},
		"many": {[]string{"/a/x", "/b/x", "/c/x", "/d/x", dir}, `program "x" not found; looked at /a/x, /b/x, /c/x and 2 more`},
	} {
		_, err := pick([]string{"x"}, tt.candidates)
		if err == nil {
			t.Fatalf("%s: it was found", name)
		}
		if d := cmp.Diff(tt.want, err.Error()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

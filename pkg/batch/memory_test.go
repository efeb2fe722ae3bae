package batch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastWordsAreOfTheNewestStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.out")
	for _, c := range []struct {
		text     string
		restarts int
		want     string
	}{
		{"", 0, " (nothing is in " + path + ")"},
		{"a\nb\nc\nd\n", 0, ": b / c / d"},
		{"assay: start 0 of 7 on n1\nsrun: n1: exited 143\nassay: start 1 of 7 on n2\nno such file\n", 1, ": no such file"},
		{"assay: start 0 of 7 on n1\nsrun: n1: exited 143\nassay: start 1 of 7 on n2\n", 1, " (nothing is in " + path + ")"},
		{"a\n", 1, " (what this start and the earlier ones wrote is in " + path + ")"},
		{"assay: start 0 of 7 on n1\nsrun: n1: exited 143\n", 1, " (what this start and the earlier ones wrote is in " + path + ")"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastWords(path, c.restarts); got != c.want {
			t.Errorf("%q: %q, want %q", strings.ReplaceAll(c.text, "\n", " / "), got, c.want)
		}
	}
}

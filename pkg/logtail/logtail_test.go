package logtail

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLast(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 2000) // more than is looked at
	for _, c := range []struct {
		name, content string
		n             int
		want          []string
		more          bool
	}{
		{"empty", "", 3, nil, false},
		{"fewer", "a\nb\n", 3, []string{"a", "b"}, false},
		{"exactly", "a\nb\nc\n", 3, []string{"a", "b", "c"}, false},
		{"more", "a\nb\nc\nd\n", 3, []string{"b", "c", "d"}, true},
		{"no newline at the end", "a\nb", 1, []string{"b"}, true},
		{"CR LF", "a\r\nb\r\n", 2, []string{"a", "b"}, false},
		{"blank lines inside stay", "a\n\nb\n\n\n", 3, []string{"a", "", "b"}, false},
		{"none wanted", "a\n", 0, nil, true},
		{"long file", long, 1, []string{strings.Repeat("x", 99)}, true},
		{"one endless line", strings.Repeat("y", 200_000), 2, []string{strings.Repeat("y", window)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, more := Last(path, c.n)
			if diff := cmp.Diff(c.want, got); diff != "" || more != c.more {
				t.Errorf("more is %t, want %t\n%s", more, c.more, diff)
			}
		})
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, more := Last(pipe, 3); got != nil || more {
		t.Errorf("a pipe gave %q", got)
	}
	if got, more := Last(filepath.Join(t.TempDir(), "none"), 3); got != nil || more {
		t.Errorf("a missing file gave %q", got)
	}
}

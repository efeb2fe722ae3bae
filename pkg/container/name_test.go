package container_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"assay/pkg/container"
)

// TestNames are what an engine takes, and different for different ranks.
func TestNames(t *testing.T) {
	fit := regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)
	type rank struct {
		nonce, job    string
		attempt, rank int
	}
	draw := rapid.Custom(func(t *rapid.T) rank {
		return rank{
			rapid.StringMatching("[0-9a-f]{12}").Draw(t, "nonce"), rapid.OneOf(rapid.String(), rapid.StringMatching("[a/:-]{1,3}")).Draw(t, "job"),
			rapid.IntRange(1, 3).Draw(t, "attempt"), rapid.IntRange(0, 3).Draw(t, "rank"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		name := container.Name(a.nonce, a.job, a.attempt, a.rank)
		if !fit.MatchString(name) || len(name) > 128 {
			t.Fatalf("%+v is called %q", a, name)
		}
		if a != b && name == container.Name(b.nonce, b.job, b.attempt, b.rank) {
			t.Fatalf("%+v and %+v are both called %q", a, b, name)
		}
	})
}

// TestWrapperID is read as it was written.
func TestWrapperID(t *testing.T) {
	pid, start, boot, ok := container.ParseWrapperID(container.WrapperID(12, 3456, "a-b"))
	if pid != 12 || start != 3456 || boot != "a-b" || !ok {
		t.Errorf("%d %d %q %v", pid, start, boot, ok)
	}
	for _, text := range []string{"", "1", "1/2", "x/2/b", "1/y/b"} {
		if _, _, _, ok := container.ParseWrapperID(text); ok {
			t.Errorf("%q names a process", text)
		}
	}
}

package perfcsv

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hasRun says whether the file has a row of the run at or after the byte from.
func hasRun(t *testing.T, path, runID string, from int64) bool {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found := false
	if err := eachAfter(f, from, func(r Row) bool {
		found = r.RunID == runID
		return !found
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEachAfter(t *testing.T) {
	path := perfPath(t)
	mustAppend(t, path, samples("a", 2)...)
	between, err := Size(path)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, path, samples("b", 2)...)
	for _, c := range []struct {
		run  string
		from int64
		want bool
	}{
		{"a", 0, true},
		{"b", 0, true},
		{"a", between, false},
		{"b", between, true},
		{"c", 0, false},
		{"a", between + 5, true}, // no start of a line: the file is another one
		{"a", 1 << 40, true},     // beyond the end: likewise
	} {
		if got := hasRun(t, path, c.run, c.from); got != c.want {
			t.Errorf("%s, from %d: %v, want %v", c.run, c.from, got, c.want)
		}
	}
}

// TestAppendMissing cuts an append at every byte and lets its writer try again.
func TestAppendMissing(t *testing.T) {
	rows := samples("a", 3)
	text, err := encode(rows)
	if err != nil {
		t.Fatal(err)
	}
	rows[2] = rows[1] // equal rows count as often as they occur
	for cut := 0; cut <= len(text); cut += 7 {
		path := perfPath(t)
		mustAppend(t, path, samples("before", 1)...)
		from, err := Size(path)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, path, rows...)
		if err := os.Truncate(path, from+int64(cut)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := AppendMissing(path, rows, from); err != nil {
				t.Fatal(err)
			}
		}
		want := append(samples("before", 1), rows...)
		if diff := cmp.Diff(want, mustRead(t, path)); diff != "" {
			t.Fatalf("cut after %d bytes (-want +got):\n%s", cut, diff)
		}
	}
}

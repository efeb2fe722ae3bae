package probe

import (
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"assay/pkg/exitcode"
)

func hostRoot() fs.FS { return os.DirFS("/") }

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "4096": 4096, "1KiB": 1024, "64MiB": 64 << 20, "64 mib": 64 << 20, "1.5GiB": 3 << 29,
		"1kB": 1000, "2MB": 2e6, "3GB": 3e9, "12B": 12, " 7 ": 7,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q gives %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5", "MiB", "1M", "1,000", "NaN", "Inf", "1e30", "0x10KiB", "1KiB2"} {
		if got, err := ParseSize(text); exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%q gives %d, %v; it must be refused", text, got, err)
		}
	}
}

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "3": {3}, "0-2,8": {0, 1, 2, 8}, "8, 0-1,1": {0, 1, 8},
	} {
		got, err := ParseCPUs(text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q gives %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"a", "1-", "-1", "3-1", "0-99999", "1,,2", "1.5"} {
		if got, err := ParseCPUs(text); exitcode.Of(err) != exitcode.Invalid {
			t.Errorf("%q gives %v, %v; it must be refused", text, got, err)
		}
	}
}

func TestCPUListsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.IntRange(0, cpuLimit-1), 1, 40, rapid.ID).Draw(t, "cpus")
		text := formatCPUs(mustParse(t, want))
		got, err := ParseCPUs(text)
		if err != nil || !cmp.Equal(got, mustParse(t, want)) {
			t.Fatalf("%v became %q and then %v, %v", want, text, got, err)
		}
	})
}

// mustParse sorts a list by way of the parser.
func mustParse(t *rapid.T, cpus []int) []int {
	sorted, err := chooseCPUs(cpus, cpus)
	if err != nil {
		t.Fatal(err)
	}
	return sorted
}

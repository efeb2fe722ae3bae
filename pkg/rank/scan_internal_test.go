package rank

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/pkg/metric"
	"assay/pkg/plan"
	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// A line that is too long is told by its beginning, in the order of the lines and
// whatever the chunks; no more than that is held of it.
func TestScannerTellsLongLines(t *testing.T) {
	long := func(head string) string { return head + strings.Repeat("x", maxLine+1-len(head)) }
	text := strings.Join([]string{"a=1", long("a=2"), "noise", "a=3", long("b="), strings.Repeat("x", maxLine-2) + "=1", long("c=4")}, "\n")
	want := []string{"out:1 a=1", "out:2 long a=2", "out:4 a=3", "out:5 long b=x", "out:6 xxx", "out:7 long c=4"}
	for _, size := range []int{1 << 20, maxLine, maxLine - 1, 4096, 299, 7} {
		var got []string
		s := newScanner("out", []string{"="}, func(line []byte, place string) { got = append(got, place+" "+string(line[:3])) })
		s.long = func(head []byte, place string) {
			if len(head) != maxHead {
				t.Errorf("chunks of %d: %d bytes of %s", size, len(head), place)
			}
			got = append(got, place+" long "+string(head[:3]))
		}
		for rest := []byte(text); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			s.feed(slices.Clone(rest[:min(size, len(rest))]))
			if s.skip && len(s.carry) != maxHead {
				t.Fatalf("chunks of %d: %d bytes are held", size, len(s.carry))
			}
		}
		s.end()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("chunks of %d (-want +got):\n%s", size, d)
		}
	}
}

// Under the acceptance contract what such a line begins to say takes the place of what
// was said before, and it is the last that was said where it is no reading.
func TestLongLineOfARunner(t *testing.T) {
	r := newReader(plan.Job{Expect: verdict.Expectation{Contract: verdict.ContractAcceptance}})
	s := r.scanner(rundir.StdoutFile)
	for _, line := range []string{"count=1\n", "count=2", strings.Repeat(" ", maxLine), "\n", "why: ", strings.Repeat("y", 2*maxLine), "\n"} {
		s.feed([]byte(line))
	}
	s.end()
	readings, problems := r.collector.Result()
	if len(readings) != 0 || len(problems) != 1 || problems[0].Code != metric.CodeNotANumber || problems[0].Name != "count" ||
		problems[0].Message != `stdout:2: "count=2" is no reading: its line is longer than 64 KiB` {
		t.Errorf("%+v %+v", readings, problems)
	}
	if _, said := r.words(); !strings.HasPrefix(said, "why: yyy") {
		t.Errorf("said %q", said)
	}
}

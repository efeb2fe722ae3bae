package exitcode

import (
	"errors"
	"fmt"
	"testing"
)

// The numbers are a stable interface: a change here breaks CI jobs.
func TestNumbersAreStable(t *testing.T) {
	want := map[string]int{
		"PASS": 0, "INTERNAL": 1, "BUILD_FAILURE": 2, "FAIL": 3, "INVALID": 4, "NO_METRIC": 5, "ERROR": 6, "SKIP": 7, "PENDING": 8,
		"INTERRUPTED": 130, "TERMINATED": 143,
	}
	last := -1
	for _, r := range Table() {
		if want[r.Name] != int(r.Code) {
			t.Errorf("%s is %d, want %d", r.Name, int(r.Code), want[r.Name])
		}
		if int(r.Code) <= last {
			t.Errorf("%s is out of order", r.Name)
		}
		last = int(r.Code)
		delete(want, r.Name)
	}
	if len(want) > 0 {
		t.Errorf("not in the table: %v", want)
	}
}

func TestOf(t *testing.T) {
	base := errors.New("x")
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, Pass},
		{base, Internal},
		{With(Invalid, base), Invalid},
		{With(Invalid, nil), Pass},
		{fmt.Errorf("around: %w", With(Error, base)), Error},
		{With(Fail, With(Invalid, base)), Fail}, // the outermost wins
		{errors.Join(base, With(NoMetric, base)), NoMetric},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("Of(%v) is %s, want %s", c.err, got, c.want)
		}
	}
	if !errors.Is(With(Invalid, base), base) {
		t.Error("the cause cannot be found")
	}
}

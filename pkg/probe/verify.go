package probe

import (
	"math"
	"sync"

	"assay/pkg/exitcode"
)

// triadScalar is q, as STREAM has it.
const triadScalar = 3.0

// triadStart gives the values of a, b and c before the first pass.
func triadStart() [3]float64 { return [3]float64{1, 2, 0} }

// triadTolerance bounds the mean error of an array relative to its value, as
// STREAM does for float64.
const triadTolerance = 1e-13

// fill sets every element.
func fill(x []float64, v float64) {
	for i := range x {
		x[i] = v
	}
}

// expectTriad replays the passes on one element of each array.
func expectTriad(ntimes int) [3]float64 {
	x := triadStart()
	for k := range ntimes {
		x[k%3] = x[(k+1)%3] + triadScalar*x[(k+2)%3]
	}
	return x
}

// verifyTriad compares every element with what the passes must give, the way
// STREAM does: by the mean of the absolute errors.
func verifyTriad(crew *team, a *arrays, ntimes int) error {
	want := expectTriad(ntimes)
	for i, x := range a.x {
		var mu sync.Mutex
		sum, bad := 0.0, -1
		crew.each(func(lo, hi int) {
			partial, first := deviation(x[lo:hi], want[i])
			mu.Lock()
			defer mu.Unlock()
			sum += partial
			if first >= 0 && (bad < 0 || lo+first < bad) {
				bad = lo + first
			}
		})
		mean := sum / float64(len(x))
		if !(mean <= triadTolerance*math.Abs(want[i])) || bad >= 0 { // written so that NaN fails
			return exitcode.Errorf(exitcode.Fail,
				"triad does not verify: array %c is off by %.3g on average, first at element %d, which is %g and must be %g: memory or CPU computes wrong",
				'a'+rune(i), mean, max(bad, 0), x[max(bad, 0)], want[i])
		}
	}
	return nil
}

// deviation sums the absolute errors and finds the first element whose own error
// is above the tolerance, or -1.
func deviation(x []float64, want float64) (sum float64, first int) {
	first = -1
	limit := triadTolerance * math.Abs(want)
	for i, v := range x {
		d := math.Abs(v - want)
		sum += d
		if first < 0 && !(d <= limit) {
			first = i
		}
	}
	return sum, first
}

package pairwise

import (
	"cmp"
	"math"
	"slices"
)

// median is the middle of values, or the mean of the two in the middle; NaN of none. A
// mean with a failure is a failure.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	switch n := len(s); {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	default:
		return s[n/2-1]/2 + s[n/2]/2
	}
}

// upperMedian is the better one of the two in the middle.
func upperMedian(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[len(s)/2]
}

// deviation is the median of how far values are from their median.
func deviation(values []float64) float64 {
	mid := median(values)
	far := make([]float64, len(values))
	for i, v := range values {
		far[i] = math.Abs(minus(v, mid))
	}
	if d := median(far); !math.IsNaN(d) {
		return d
	}
	return 0
}

// minus is the difference, which of two failures is none.
func minus(a, b float64) float64 {
	if a == b {
		return 0
	}
	return a - b
}

// ratio is NaN where there is none.
func ratio(value, reference float64) float64 {
	if r := value / reference; !math.IsInf(r, 0) {
		return r
	}
	return math.NaN()
}

// worstFirst orders goodness; what is not known comes last.
func worstFirst(x, y float64) int {
	switch nx, ny := math.IsNaN(x), math.IsNaN(y); {
	case nx && ny:
		return 0
	case nx:
		return 1
	case ny:
		return -1
	}
	return cmp.Compare(x, y)
}

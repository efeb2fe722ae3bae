package pairwise

import (
	"math"
	"slices"
)

// The bounds of what counts as worse: a share of the reference, and a number of robust
// standard deviations, see deviations.
const (
	worseShare = 0.10
	// grossShare is for what has fewer than enoughLinks links. They do not tell a node
	// from a cable, nor either from chance, when they differ by less.
	grossShare     = 0.25
	enoughLinks    = 3
	deviationOfMAD = 1.4826 // the standard deviation of normal noise is so many MADs
	// deviationOfMedian is the standard deviation of the median of n values with normal
	// noise, in those of one value, times the root of n.
	deviationOfMedian = 1.2533
	// closerIsLess is how much the distance from the closer one of two has to be enlarged
	// to be like that from one.
	closerIsLess = 1.4
	// falseAlarms is how often normal noise alone may make any of the links stand out.
	falseAlarms = 0.01
	// smallSample is by how much the bound is wider, over the number of links, since of
	// few links the deviation is known badly itself, and is often taken to be too small.
	smallSample = 5
)

// deviations is by how many standard deviations one of so many links has to be worse:
// the more there are, the further the worst of them is off by chance.
func deviations(links int) float64 {
	return math.Sqrt2 * math.Erfinv(1-2*falseAlarms/float64(max(links, 1)))
}

// worse says whether a value is worse than a reference by more than noise, and by more
// than the fewest links that either rests on can tell.
func (a *analyser) worse(value, reference, spread float64, fewest int) bool {
	if math.IsInf(reference, -1) {
		return false
	}
	share, times := worseShare, deviationOfMAD*deviations(a.known)
	if fewest < enoughLinks {
		share = grossShare
	} else {
		times *= 1 + smallSample/float64(a.known)
	}
	return reference-value > max(share*math.Abs(reference), times*spread)
}

// scoreNoise is how far the score of a node is off by chance.
func (a *analyser) scoreNoise(node string) float64 {
	return a.noise * deviationOfMedian / math.Sqrt(float64(len(a.ordered[node])))
}

// measureNoise is how far links are off by chance, as a median deviation: the smallest one
// of how far they are from each other, from the worse of what their nodes do elsewhere,
// and from the one of these that is closer. Faults among few links spoil some of the
// three, and seldom all. Failures have no value, and are worse than any noise.
func (a *analyser) measureNoise() float64 {
	var values, fromWorse, fromCloser []float64
	for i, g := range a.good {
		worse, closer := a.elsewhere(i)
		if finite(g) && finite(g-worse) && finite(g-closer) {
			values, fromWorse, fromCloser = append(values, g), append(fromWorse, g-worse), append(fromCloser, g-closer)
		}
	}
	return min(deviation(values), deviation(fromWorse), closerIsLess*deviation(fromCloser))
}

// elsewhere is what the nodes of a link score without it, the worse one and the one that
// is closer to it: a score that the link has a part in would be too close. NaN when there
// is no other link.
func (a *analyser) elsewhere(link int) (worse, closer float64) {
	l, g := a.links[link], a.good[link]
	x, y := upperMedianWithout(a.ordered[l.A], g), upperMedianWithout(a.ordered[l.B], g)
	if math.IsNaN(x) {
		x = y
	}
	if math.IsNaN(y) {
		y = x
	}
	if math.Abs(minus(g, x)) < math.Abs(minus(g, y)) {
		return min(x, y), x
	}
	return min(x, y), y
}

// upperMedianWithout is the upper median of ordered values but one; NaN of no others.
func upperMedianWithout(ordered []float64, value float64) float64 {
	if len(ordered) < 2 {
		return math.NaN()
	}
	mid := (len(ordered) - 1) / 2
	if left, _ := slices.BinarySearch(ordered, value); left <= mid {
		mid++
	}
	return ordered[mid]
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

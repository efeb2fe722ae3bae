package probe

import (
	"context"
	"fmt"
	"io"
	"time"

	"assay/pkg/exitcode"
)

// float is a type the ranks can sum.
type float interface{ float32 | float64 }

// runSweep measures every size, in the data type of the sweep, and ends the group.
func runSweep(ctx context.Context, g *group, w io.Writer) error {
	if g.sweep.DataType == "float64" {
		return sweepOf[float64](ctx, g, w)
	}
	return sweepOf[float32](ctx, g, w)
}

// sweepOf is runSweep for one data type.
func sweepOf[T float](ctx context.Context, g *group, w io.Writer) error {
	counts := g.sweep.Counts
	r := newRing(g, make([]T, counts[len(counts)-1]))
	defer r.stop()
	return g.finish(ctx, measureSweep(ctx, g, r, w))
}

// measureSweep measures every size; rank 0 reports.
func measureSweep[T float](ctx context.Context, g *group, r *ring[T], w io.Writer) error {
	report := func(text string) error {
		if g.opt.Rank != 0 {
			return nil
		}
		if _, err := io.WriteString(w, text); err != nil {
			return fmt.Errorf("the report cannot be written: %w", err)
		}
		return nil
	}
	if err := report(describeSweep(g.sweep, g.size)); err != nil {
		return err
	}
	var results []sizeResult
	for _, count := range g.sweep.Counts {
		seconds, err := timeSize(ctx, g, r, count)
		if err != nil {
			return err
		}
		if seconds, err = g.slowest(ctx, seconds); err != nil {
			return err
		}
		result := sizeResult{bytes: count * elementBytes(g.sweep.DataType), seconds: seconds}
		if err := report(result.row(count, g.size)); err != nil {
			return err
		}
		results = append(results, result)
	}
	return report(summarise(results, g.sweep, g.size))
}

// timeSize runs the operations of one size and gives the mean time of the timed
// ones in seconds. Each operation starts from fresh values behind a barrier, and
// is verified; only the operation itself is timed.
func timeSize[T float](ctx context.Context, g *group, r *ring[T], count int64) (float64, error) {
	data := r.data[:count]
	var total time.Duration
	for k := range g.sweep.WarmUp + g.sweep.Iterations {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		fillPattern(data, g.opt.Rank, k)
		if err := r.barrier(); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := r.allReduce(data); err != nil {
			return 0, err
		}
		if k >= g.sweep.WarmUp {
			total += time.Since(began)
		}
		if g.opt.tamper != nil {
			g.opt.tamper(k, bytesOf(data))
		}
		if err := checkPattern(data, g.opt.Rank, g.size, k); err != nil {
			return 0, err
		}
	}
	// A clock that does not tick within an operation must not give an infinite rate.
	return max(total, time.Nanosecond).Seconds() / float64(g.sweep.Iterations), nil
}

// patternPeriod is how many elements it takes the values to repeat. It is a prime,
// so that a chunk which lands in the wrong place does not fit by chance.
const patternPeriod = 251

// patternValue is what a rank contributes to an element of an operation: a whole
// number from 1 to patternPeriod. Sums of up to 2^16 of them are exact in float32.
func patternValue(rank, element, iteration int) int {
	return (element+rank*37+iteration*101)%patternPeriod + 1
}

// fillPattern sets the contribution of a rank.
func fillPattern[T float](data []T, rank, iteration int) {
	var period [patternPeriod]T
	for i := range period {
		period[i] = T(patternValue(rank, i, iteration))
	}
	n := copy(data, period[:])
	for n < len(data) {
		n += copy(data[n:], data[:n]) // n stays a multiple of the period until the end
	}
}

// checkPattern verifies the sum of all contributions, exactly.
func checkPattern[T float](data []T, rank, ranks, iteration int) error {
	var want [patternPeriod]T
	for i := range want {
		sum := 0
		for r := range ranks {
			sum += patternValue(r, i, iteration)
		}
		want[i] = T(sum)
	}
	for base := 0; base < len(data); base += patternPeriod {
		for i, v := range data[base:min(base+patternPeriod, len(data))] {
			if v != want[i] {
				return exitcode.With(exitcode.Fail, &mismatchError{rank, base + i, len(data), float64(v), float64(want[i])})
			}
		}
	}
	return nil
}

// mismatchError says that a rank holds a wrong sum.
type mismatchError struct {
	rank, index, count int
	got, want          float64
}

func (e *mismatchError) Error() string {
	return fmt.Sprintf("rank %d: element %d of %d is %g and must be %g: data was damaged on the way or in memory",
		e.rank, e.index, e.count, e.got, e.want)
}

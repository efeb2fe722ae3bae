package probe

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"assay/pkg/exitcode"
)

// The names of the metrics that rank 0 prints.
const (
	MetricAllReduceAlg     = "allreduceAlgGBs"    // algorithm bandwidth at the largest size, more is better
	MetricAllReduceBus     = "allreduceBusGBs"    // bus bandwidth at the largest size, more is better; two ranks or more
	MetricAllReduceLatency = "allreduceLatencyUs" // time at the smallest size, less is better
)

// Defaults of AllReduceOptions.
const (
	DefaultMasterAddr     = "127.0.0.1"
	DefaultMasterPort     = 29500 // what torchrun and others use
	DefaultMinBytes       = 1 << 10
	DefaultMaxBytes       = 64 << 20
	DefaultFactor         = 4
	DefaultIterations     = 20
	DefaultWarmUp         = 5
	DefaultChunkBytes     = 128 << 10
	DefaultConnectTimeout = 30 * time.Second
	DefaultStallTimeout   = 30 * time.Second

	maxWorldSize  = 1 << 16
	maxIterations = 1 << 20
	largestBytes  = 64 << 30
)

// AllReduceOptions say where the ranks meet and what they measure. The zero value
// is one rank with the default sweep. What is measured is decided by rank 0 alone.
type AllReduceOptions struct {
	MasterAddr string // host on which rank 0 listens; empty: DefaultMasterAddr
	MasterPort int    // its port; 0: DefaultMasterPort
	Rank       int    // 0 to WorldSize-1
	WorldSize  int    // number of ranks; 0: 1
	// Token tells this run from another one that meets at the same port, such as
	// one that was left behind. Ranks with another token are refused.
	Token string

	MinBytes   int64  // smallest message; 0: DefaultMinBytes
	MaxBytes   int64  // largest message; 0: DefaultMaxBytes, or MinBytes when that is larger
	Factor     int    // from one size to the next, at least 2; 0: DefaultFactor
	DataType   string // "float32" or "float64"; empty: float32
	Iterations int    // timed operations a size; 0: DefaultIterations
	WarmUp     int    // operations before those; 0: DefaultWarmUp, negative: none
	ChunkBytes int    // how much is sent before the next rank may go on; 0: DefaultChunkBytes

	ConnectTimeout time.Duration // for all ranks to meet; 0: DefaultConnectTimeout
	StallTimeout   time.Duration // for the next bytes of a peer to arrive; 0: DefaultStallTimeout

	// tamper lets a test damage the result of an operation before it is verified.
	tamper func(iteration int, data []byte)
	// listening lets a test learn the address of rank 0.
	listening func(address string)
}

// AllReduce is one rank of a ring all-reduce over TCP: a reduce-scatter followed
// by an all-gather, both in chunks. The ranks meet at MasterAddr:MasterPort, where
// rank 0 listens; the others try until ConnectTimeout. Then each connects to its
// right neighbour.
//
// For each size every operation is verified by every rank, exactly: the values are
// small integers, whose sum has no rounding. The time of a size is the mean over
// its iterations, and the maximum of that over the ranks. Rank 0 writes a table
// and one line a metric to w, the others write nothing. The formulas are those of
// nccl-tests (doc/PERFORMANCE.md): algorithm bandwidth = size / time, bus
// bandwidth = algorithm bandwidth x 2(n-1)/n.
//
// Invalid options are an error of kind Invalid, a wrong result one of kind Fail
// that names rank and element, and ranks that cannot meet, die or stall one of
// kind Error. When one rank fails all others end with its reason. The end of ctx
// ends the operation at once.
func AllReduce(ctx context.Context, opt AllReduceOptions, w io.Writer) error {
	opt, err := opt.withDefaults()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if opt.WorldSize == 1 {
		return runSweep(ctx, &group{opt: opt, sweep: opt.sweep(), size: 1}, w)
	}
	g, err := meet(ctx, cancel, opt)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { closeAll(g.left, g.right) })()
	return runSweep(ctx, g, w)
}

// withDefaults fills in defaults and checks the rest.
func (o AllReduceOptions) withDefaults() (AllReduceOptions, error) {
	o.MasterAddr = orDefault(o.MasterAddr, DefaultMasterAddr)
	o.MasterPort = orDefault(o.MasterPort, DefaultMasterPort)
	o.WorldSize = orDefault(o.WorldSize, 1)
	o.MinBytes = orDefault(o.MinBytes, min(DefaultMinBytes, orDefault(o.MaxBytes, DefaultMinBytes)))
	o.MaxBytes = orDefault(o.MaxBytes, max(DefaultMaxBytes, o.MinBytes))
	o.Factor = orDefault(o.Factor, DefaultFactor)
	o.DataType = orDefault(o.DataType, "float32")
	o.Iterations = orDefault(o.Iterations, DefaultIterations)
	o.WarmUp = max(orDefault(o.WarmUp, DefaultWarmUp), 0)
	o.ChunkBytes = orDefault(o.ChunkBytes, DefaultChunkBytes)
	o.ConnectTimeout = orDefault(o.ConnectTimeout, DefaultConnectTimeout)
	o.StallTimeout = orDefault(o.StallTimeout, DefaultStallTimeout)
	for _, check := range []struct {
		ok   bool
		what string
		args []any
	}{
		{o.WorldSize > 0 && o.WorldSize <= maxWorldSize, "the world size is %d: choose 1 to %d", []any{o.WorldSize, maxWorldSize}},
		{o.Rank >= 0 && o.Rank < o.WorldSize, "the rank is %d: with a world size of %d it must be 0 to %d", []any{o.Rank, o.WorldSize, o.WorldSize - 1}},
		{o.MasterPort > 0 && o.MasterPort < 1<<16 || o.listening != nil, "the master port is %d: choose 1 to 65535", []any{o.MasterPort}},
		{o.MinBytes > 0 && o.MaxBytes >= o.MinBytes && o.MaxBytes <= largestBytes, "the sizes are %d to %d bytes: choose 1 to %d, the smaller one first", []any{o.MinBytes, o.MaxBytes, int64(largestBytes)}},
		{o.Factor >= 2, "the factor between sizes is %d: choose at least 2", []any{o.Factor}},
		{o.DataType == "float32" || o.DataType == "float64", "the data type is %q: choose float32 or float64", []any{o.DataType}},
		{o.Iterations > 0 && o.Iterations <= maxIterations && o.WarmUp <= maxIterations, "%d iterations after %d to warm up: choose 1 to %d", []any{o.Iterations, o.WarmUp, maxIterations}},
		{o.ChunkBytes >= 64 && o.ChunkBytes <= 1<<30, "the chunk size is %d bytes: choose 64 to 1 GiB", []any{o.ChunkBytes}},
		{o.ConnectTimeout > 0 && o.StallTimeout > 0, "the time limits are %s to connect and %s to stall: choose more than nothing", []any{o.ConnectTimeout, o.StallTimeout}},
	} {
		if !check.ok {
			return o, exitcode.Errorf(exitcode.Invalid, check.what, check.args...)
		}
	}
	return o, nil
}

// orDefault is v, or def when v is the zero value.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// sweep is what all ranks do, as rank 0 decides it.
type sweep struct {
	Counts     []int64 `json:"counts"` // elements of each size, ascending
	DataType   string  `json:"data_type"`
	Iterations int     `json:"iterations"`
	WarmUp     int     `json:"warm_up"`
	ChunkBytes int     `json:"chunk_bytes"`
}

// sweep lists the sizes: MinBytes, times Factor until MaxBytes, which is always
// the last. A size is rounded down to whole elements, but is never empty.
func (o AllReduceOptions) sweep() sweep {
	s := sweep{DataType: o.DataType, Iterations: o.Iterations, WarmUp: o.WarmUp, ChunkBytes: o.ChunkBytes}
	add := func(bytes int64) {
		count := max(bytes/elementBytes(o.DataType), 1)
		if n := len(s.Counts); n == 0 || s.Counts[n-1] < count {
			s.Counts = append(s.Counts, count)
		}
	}
	for bytes := o.MinBytes; bytes < o.MaxBytes; bytes *= int64(o.Factor) {
		add(bytes)
	}
	add(o.MaxBytes)
	return s
}

// elementBytes is the size of an element of a data type.
func elementBytes(dataType string) int64 {
	if dataType == "float64" {
		return 8
	}
	return 4
}

// sizeResult is what a size gave, over all ranks.
type sizeResult struct {
	bytes   int64
	seconds float64 // of one operation; the slowest rank's mean
}

// algorithmGBs is size / time in GB/s.
func (r sizeResult) algorithmGBs() float64 { return float64(r.bytes) / r.seconds / 1e9 }

// busGBs is the algorithm bandwidth times 2(n-1)/n, in GB/s: what each link had to
// carry, whatever the number of ranks.
func (r sizeResult) busGBs(ranks int) float64 {
	return r.algorithmGBs() * 2 * float64(ranks-1) / float64(ranks)
}

// describeSweep is the head of the table.
func describeSweep(s sweep, ranks int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "allreduce  sum of %s over %d rank(s), ring over TCP, chunks of %s\n", s.DataType, ranks, formatSize(int64(s.ChunkBytes)))
	fmt.Fprintf(&b, "           time: mean of %d after %d to warm up, of the slowest rank; busbw = algbw x 2(n-1)/n\n", s.Iterations, s.WarmUp)
	fmt.Fprintf(&b, "\n%12s %12s %12s %14s %14s\n", "bytes", "elements", "time us", "algbw GB/s", "busbw GB/s")
	return b.String()
}

// row is one line of the table.
func (r sizeResult) row(count int64, ranks int) string {
	return fmt.Sprintf("%12d %12d %12.1f %14.3f %14.3f\n", r.bytes, count, r.seconds*1e6, r.algorithmGBs(), r.busGBs(ranks))
}

// summarise is the end of the report: what was verified, and the metrics.
func summarise(results []sizeResult, s sweep, ranks int) string {
	var b strings.Builder
	first, last := results[0], results[len(results)-1]
	fmt.Fprintf(&b, "\nverified: every element of %d operations on every rank\n", len(results)*(s.Iterations+s.WarmUp))
	if ranks == 1 {
		fmt.Fprint(&b, "one rank: nothing crosses a link, so the time is that of a local copy and there is no bus bandwidth\n")
	}
	b.WriteByte('\n')
	if ranks > 1 {
		fmt.Fprintf(&b, "%s=%.4g\n", MetricAllReduceBus, last.busGBs(ranks))
	}
	fmt.Fprintf(&b, "%s=%.4g\n", MetricAllReduceAlg, last.algorithmGBs())
	fmt.Fprintf(&b, "%s=%.4g\n", MetricAllReduceLatency, first.seconds*1e6)
	return b.String()
}

package probe

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"assay/pkg/exitcode"
)

// The names of the metrics that Triad prints, all in GB/s, more is better.
const (
	MetricTriadOneCore     = "triadOneCoreGBs"     // the first CPU alone; the fastest one with EachCore
	MetricTriadSlowestCore = "triadSlowestCoreGBs" // with EachCore: the slowest CPU alone
	MetricTriadAllCores    = "triadAllCoresGBs"    // all CPUs at the same time
)

// Bounds and defaults of TriadOptions.
const (
	DefaultNTimes = 10  // as STREAM has it
	MinNTimes     = 2   // the first pass is not counted
	MaxNTimes     = 500 // the values grow with every pass and stay finite up to here

	cacheFactor  = 4        // STREAM: each array at least four times the last-level cache
	assumedCache = 32 << 20 // where the system does not tell its cache
	leastArray   = 16 << 20 // STREAM's own floor is 10^7 elements; small caches need less
)

// TriadOptions say what Triad measures. The zero value is a sensible default.
type TriadOptions struct {
	// ArrayBytes is the size of each of the three arrays. 0: four times the
	// last-level caches of the CPUs used, or less where memory is short, which the
	// output says.
	ArrayBytes int64
	// NTimes is the number of passes, MinNTimes to MaxNTimes. The first is not
	// counted, the best of the others is reported. 0: DefaultNTimes.
	NTimes int
	// CPUs are the CPUs to use. Empty: those this process may run on, as many as
	// the CPU quota of its cgroup allows at the same time.
	CPUs []int
	// EachCore measures every CPU alone, one after the other, not only the first.
	EachCore bool
}

// Triad measures memory bandwidth as STREAM defines its triad, a[i] = b[i] + q*c[i]
// over float64: 24 bytes an element are counted, whatever the caches transfer
// besides. First one CPU alone, then all at the same time. It writes a table and
// one line a metric to w.
//
// Invalid options are an error of kind Invalid, a result that does not verify one
// of kind Fail, trouble with memory or CPU binding one of kind Error. The end of
// ctx is noticed between two passes.
func Triad(ctx context.Context, opt TriadOptions, w io.Writer) error {
	allowed, err := allowedCPUs()
	if err != nil {
		return err
	}
	cpus, err := chooseCPUs(opt.CPUs, allowed)
	if err != nil {
		return err
	}
	plan, err := planTriad(os.DirFS("/"), opt, cpus)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, plan.describe()); err != nil {
		return fmt.Errorf("the report cannot be written: %w", err)
	}
	// Every worker needs a processor of the runtime for itself, also where a cgroup
	// quota or GOMAXPROCS gave fewer than the caller asked CPUs for.
	if procs := runtime.GOMAXPROCS(0); procs < len(cpus) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(len(cpus)))
	}
	return plan.run(ctx, w)
}

// triadPlan is what is going to be measured.
type triadPlan struct {
	elements int
	ntimes   int
	cpus     []int
	eachCore bool
	cache    int64 // last-level caches of all cpus, in bytes
	notes    []string
}

// planTriad checks the options and settles the size of the arrays. root is the
// root of the file system.
func planTriad(root fs.FS, opt TriadOptions, cpus []int) (triadPlan, error) {
	p := triadPlan{ntimes: opt.NTimes, cpus: cpus, eachCore: opt.EachCore, cache: lastLevelCache(root, cpus)}
	if p.ntimes == 0 {
		p.ntimes = DefaultNTimes
	}
	if p.ntimes < MinNTimes || p.ntimes > MaxNTimes {
		return p, exitcode.Errorf(exitcode.Invalid, "ntimes is %d: choose %d to %d", p.ntimes, MinNTimes, MaxNTimes)
	}
	size := opt.ArrayBytes
	if size < 0 || (size > 0 && size < int64(len(cpus))*4096) || size > 1<<50 {
		return p, exitcode.Errorf(exitcode.Invalid,
			"the array size is %d bytes: choose at least one page of 4096 bytes for each of the %d CPUs", size, len(cpus))
	}
	if p.cache == 0 {
		p.cache = assumedCache
		p.notes = append(p.notes, "the system does not tell its caches: "+formatSize(assumedCache)+" is assumed")
	}
	available := availableMemory(root)
	if size == 0 {
		size = max(cacheFactor*p.cache, leastArray)
		// A quarter is left to everything else on the machine.
		if limit := available / 4 * 3 / 3; available > 0 && size > limit {
			size = max(limit, int64(len(cpus))*4096)
			p.notes = append(p.notes, "memory is short: "+formatSize(available)+" are available")
		}
	} else if available > 0 && 3*size > available {
		return p, exitcode.Errorf(exitcode.Error, "three arrays of %s do not fit into the %s of memory that are available: choose a smaller size",
			formatSize(size), formatSize(available))
	}
	p.elements = int(size / wordBytes)
	if size < cacheFactor*p.cache {
		p.notes = append(p.notes, fmt.Sprintf("WARNING: the arrays are smaller than %d times the cache, so caches may serve part of the traffic and the figures may be too high", cacheFactor))
	}
	return p, nil
}

// describe says what is measured, before it is.
func (p triadPlan) describe() string {
	var b strings.Builder
	bytes := int64(p.elements) * wordBytes
	fmt.Fprintf(&b, "triad   a[i] = b[i] + q*c[i], float64, 24 bytes an element; best of %d passes after the first\n", p.ntimes-1)
	fmt.Fprintf(&b, "arrays  3 of %d elements, %s each, %.1f times the %s of last-level cache\n",
		p.elements, formatSize(bytes), float64(bytes)/float64(p.cache), formatSize(p.cache))
	for _, note := range p.notes {
		fmt.Fprintf(&b, "note    %s\n", note)
	}
	fmt.Fprintf(&b, "\n%-16s %10s %12s %12s %12s\n", "CPUs", "GB/s", "best s", "mean s", "worst s")
	return b.String()
}

// run measures and reports.
func (p triadPlan) run(ctx context.Context, w io.Writer) error {
	alone := p.cpus[:1]
	if p.eachCore {
		alone = p.cpus
	}
	measure := func(cpus []int) (float64, error) {
		t, err := timeTriad(ctx, cpus, p.elements, p.ntimes)
		if err != nil {
			return 0, err
		}
		_, err = fmt.Fprintf(w, "%-16s %10.2f %12.6f %12.6f %12.6f\n", formatCPUs(cpus), t.rate(), t.best, t.mean, t.worst)
		return t.rate(), err
	}
	var fastest, slowest float64
	for _, cpu := range alone {
		rate, err := measure([]int{cpu})
		if err != nil {
			return err
		}
		fastest = max(fastest, rate)
		if slowest == 0 || rate < slowest {
			slowest = rate
		}
	}
	all := fastest
	if len(p.cpus) > 1 {
		var err error
		if all, err = measure(p.cpus); err != nil {
			return err
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nverified: every element is what %d passes must give\n\n", p.ntimes)
	fmt.Fprintf(&b, "%s=%.2f\n", MetricTriadAllCores, all)
	fmt.Fprintf(&b, "%s=%.2f\n", MetricTriadOneCore, fastest)
	if p.eachCore {
		fmt.Fprintf(&b, "%s=%.2f\n", MetricTriadSlowestCore, slowest)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// triadTimes are the times of the counted passes in seconds.
type triadTimes struct {
	bytes             float64 // counted a pass
	best, mean, worst float64
}

// rate is the best rate in GB/s.
func (t triadTimes) rate() float64 { return t.bytes / t.best / 1e9 }

// timeTriad runs the passes on the CPUs and verifies the result.
//
// The arrays change places from pass to pass, so each pass works on what the two
// before it wrote, and one that was skipped or went wrong shows in the end.
func timeTriad(ctx context.Context, cpus []int, n, ntimes int) (t triadTimes, err error) {
	a, err := newArrays(n)
	if err != nil {
		return t, err
	}
	crew, err := newTeam(cpus, n)
	if err != nil {
		_ = a.free()
		return t, err
	}
	defer func() {
		crew.close()
		if freeErr := a.free(); err == nil && freeErr != nil {
			err = exitcode.Errorf(exitcode.Error, "the arrays cannot be released: %w", freeErr)
		}
	}()
	crew.each(func(lo, hi int) {
		for i, start := range triadStart() {
			fill(a.x[i][lo:hi], start)
		}
	})
	t = triadTimes{bytes: 3 * wordBytes * float64(n)}
	for k := range ntimes {
		if ctx.Err() != nil {
			return t, context.Cause(ctx)
		}
		dst, b, c := a.x[k%3], a.x[(k+1)%3], a.x[(k+2)%3]
		began := time.Now()
		crew.each(func(lo, hi int) { triad(dst[lo:hi], b[lo:hi], c[lo:hi], triadScalar) })
		t.count(k, time.Since(began).Seconds(), ntimes)
	}
	return t, verifyTriad(crew, a, ntimes)
}

// count takes the time of pass k into account; the first does not count.
func (t *triadTimes) count(k int, seconds float64, ntimes int) {
	if k == 0 {
		return
	}
	if k == 1 || seconds < t.best {
		t.best = seconds
	}
	t.worst = max(t.worst, seconds)
	t.mean += seconds / float64(ntimes-1)
}

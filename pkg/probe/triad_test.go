package probe

import (
	"context"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"assay/pkg/exitcode"
)

func TestTriadMeasuresAndVerifies(t *testing.T) {
	var out strings.Builder
	opt := TriadOptions{ArrayBytes: 1 << 20, NTimes: 3, EachCore: true}
	if err := Triad(t.Context(), opt, &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{MetricTriadOneCore, MetricTriadSlowestCore, MetricTriadAllCores} {
		if v := metricIn(t, out.String(), name); v <= 0 {
			t.Errorf("%s is %g", name, v)
		}
	}
	if !strings.Contains(out.String(), "WARNING: the arrays are smaller than 4 times the cache") &&
		lastLevelCache(hostRoot(), []int{0}) > 256<<10 {
		t.Errorf("arrays that fit into the cache are not remarked upon:\n%s", out.String())
	}
}

func TestTriadKernel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "n")
		q := rapid.Float64Range(-10, 10).Draw(t, "q")
		a, b, c := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
		for i := range b {
			b[i], c[i] = float64(i), float64(i*i)
		}
		a[n] = -1
		triad(a[:n], b[:n], c[:n], q)
		for i := range n {
			if want := b[i] + q*c[i]; math.Abs(a[i]-want) > 1e-9 {
				t.Fatalf("a[%d] = %g, want %g", i, a[i], want)
			}
		}
		if a[n] != -1 {
			t.Fatal("wrote past the end")
		}
	})
}

func TestTriadVerificationFindsOneWrongElement(t *testing.T) {
	const n, ntimes = 4096, 5
	a, err := newArrays(n)
	if err != nil {
		t.Fatal(err)
	}
	defer a.free() // the test is over
	allowed, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	crew, err := newTeam(allowed[:1], n)
	if err != nil {
		t.Fatal(err)
	}
	defer crew.close()
	want := expectTriad(ntimes)
	for i := range a.x {
		fill(a.x[i], want[i])
	}
	if err := verifyTriad(crew, a, ntimes); err != nil {
		t.Fatalf("right arrays are refused: %v", err)
	}
	for name, wrong := range map[string]float64{"bit": math.Nextafter(want[1], 0) * (1 + 1e-9), "NaN": math.NaN(), "zero": 0} {
		a.x[1][1234] = wrong
		err := verifyTriad(crew, a, ntimes)
		if exitcode.Of(err) != exitcode.Fail || !strings.Contains(err.Error(), "array b") || !strings.Contains(err.Error(), "element 1234") {
			t.Errorf("%s: %v", name, err)
		}
		a.x[1][1234] = want[1]
	}
}

func TestTriadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Triad(ctx, TriadOptions{ArrayBytes: 1 << 20}, &strings.Builder{})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestTriadRefusesBadOptions(t *testing.T) {
	for _, tc := range []struct {
		name string
		opt  TriadOptions
		want string
		code exitcode.Code
	}{
		{"one pass", TriadOptions{NTimes: 1}, "ntimes is 1", exitcode.Invalid},
		{"too many passes", TriadOptions{NTimes: 501}, "ntimes is 501", exitcode.Invalid},
		{"negative size", TriadOptions{ArrayBytes: -1}, "array size", exitcode.Invalid},
		{"tiny size", TriadOptions{ArrayBytes: 8}, "array size", exitcode.Invalid},
		{"no such CPU", TriadOptions{CPUs: []int{1023}}, "CPU 1023 is not among", exitcode.Invalid},
		{"more than there is", TriadOptions{ArrayBytes: 1 << 49}, "do not fit", exitcode.Error},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Triad(t.Context(), tc.opt, &strings.Builder{})
			if exitcode.Of(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v (%v), want %q (%v)", err, exitcode.Of(err), tc.want, tc.code)
			}
		})
	}
}

func TestLongestTriadStaysFinite(t *testing.T) {
	for i, v := range expectTriad(MaxNTimes) {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			t.Errorf("array %d ends as %g", i, v)
		}
	}
}

func TestPlanSizesTheArrays(t *testing.T) {
	cache := func(cpu, level, kind, size, shared string) fstest.MapFS {
		dir := "sys/devices/system/cpu/cpu" + cpu + "/cache/index" + level + "/"
		return fstest.MapFS{
			dir + "level":           {Data: []byte(level + "\n")},
			dir + "type":            {Data: []byte(kind + "\n")},
			dir + "size":            {Data: []byte(size + "\n")},
			dir + "shared_cpu_list": {Data: []byte(shared + "\n")},
		}
	}
	memory := func(kib string) fstest.MapFS {
		return fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 999 kB\nMemAvailable:   " + kib + " kB\n")}}
	}
	twoSockets := merge(cache("0", "3", "Unified", "32768K", "0"), cache("0", "2", "Unified", "1024K", "0"), cache("1", "3", "Unified", "32768K", "1"))
	limited := fstest.MapFS{
		"proc/self/cgroup":                       {Data: []byte("0::/job/step\n")},
		"sys/fs/cgroup/job/memory.max":           {Data: []byte("134217728\n")},
		"sys/fs/cgroup/job/memory.current":       {Data: []byte("33554432\n")},
		"sys/fs/cgroup/job/step/memory.max":      {Data: []byte("max\n")},
		"sys/fs/cgroup/job/step/memory.current":  {Data: []byte("1\n")},
		"sys/fs/cgroup/job/step/memory.whatever": {Data: []byte("1\n")},
	}
	limitedV1 := fstest.MapFS{
		"proc/self/cgroup": {Data: []byte("5:cpu,cpuacct:/x\n4:memory:/slurm/job\n")},
		"sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes": {Data: []byte("134217728\n")},
		"sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes": {Data: []byte("33554432\n")},
	}
	for _, tc := range []struct {
		name     string
		root     fstest.MapFS
		cpus     []int
		elements int
		notes    string
	}{
		{"one cache", merge(twoSockets, memory("16777216")), []int{0}, 128 << 20 / 8, ""},
		{"caches add up", merge(twoSockets, memory("16777216")), []int{0, 1}, 256 << 20 / 8, ""},
		{"a shared cache counts once", merge(cache("0", "3", "Unified", "32768K", "0-1"), cache("1", "3", "Unified", "32768K", "0-1")), []int{0, 1}, 128 << 20 / 8, ""},
		{"instructions are no data", merge(cache("0", "2", "Unified", "8192K", "0"), cache("0", "3", "Instruction", "65536K", "0")), []int{0}, 32 << 20 / 8, ""},
		{"a small cache has a floor", cache("0", "1", "Data", "32K", "0"), []int{0}, 16 << 20 / 8, ""},
		{"no cache known", fstest.MapFS{}, []int{0}, 128 << 20 / 8, "32 MiB is assumed"},
		{"little memory", merge(twoSockets, memory("98304")), []int{0}, 24 << 20 / 8, "memory is short: 96 MiB"},
		{"a limited cgroup above", merge(twoSockets, memory("16777216"), limited), []int{0}, 24 << 20 / 8, "memory is short: 96 MiB"},
		{"a limited cgroup of version 1", merge(twoSockets, memory("16777216"), limitedV1), []int{0}, 24 << 20 / 8, "memory is short: 96 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := planTriad(tc.root, TriadOptions{}, tc.cpus)
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(p.notes, "\n"); p.elements != tc.elements || !strings.Contains(notes, tc.notes) {
				t.Errorf("%d elements, want %d; notes %q, want %q", p.elements, tc.elements, notes, tc.notes)
			}
		})
	}
}

func TestSharesCoverAllElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(1, 300).Draw(t, "parts")
		n := rapid.IntRange(parts*512, 1<<30).Draw(t, "n")
		if share(n, 0, parts) != 0 || share(n, parts, parts) != n {
			t.Fatal("the shares do not cover all")
		}
		for i := range parts {
			if share(n, i, parts) >= share(n, i+1, parts) {
				t.Fatalf("share %d of %d is empty", i, parts)
			}
		}
	})
}

// metricIn is the value of a metric line of a report.
func metricIn(t *testing.T, report, name string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `=(\S+)$`).FindStringSubmatch(report)
	if m == nil {
		t.Fatalf("no %s in\n%s", name, report)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func merge(parts ...fstest.MapFS) fstest.MapFS {
	all := fstest.MapFS{}
	for _, part := range parts {
		for name, file := range part {
			all[name] = file
		}
	}
	return all
}

func BenchmarkTriadKernel(b *testing.B) {
	const n = 1 << 20
	x, y, z := make([]float64, n), make([]float64, n), make([]float64, n)
	b.SetBytes(3 * 8 * n)
	for b.Loop() {
		triad(x, y, z, 3)
	}
}

package probe

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"assay/pkg/exitcode"
)

// ParseSize reads a number of bytes: a plain number, or one followed by KiB, MiB
// or GiB (powers of 1024), or by kB, MB or GB (powers of 1000). Case does not
// matter. Anything else, and a size below one byte, is an error of kind Invalid.
func ParseSize(s string) (int64, error) {
	units := []struct {
		suffix string
		factor float64
	}{
		{"kib", 1 << 10},
		{"mib", 1 << 20},
		{"gib", 1 << 30},
		{"kb", 1e3},
		{"mb", 1e6},
		{"gb", 1e9},
		{"b", 1},
	}
	number, factor := strings.ToLower(strings.TrimSpace(s)), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	bytes := v * factor
	if err != nil || math.IsNaN(bytes) || bytes < 1 || bytes > 1<<60 || bytes != math.Trunc(bytes) {
		return 0, exitcode.Errorf(exitcode.Invalid,
			"%q is not a size: write whole bytes, or a number with KiB, MiB, GiB, kB, MB or GB", s)
	}
	return int64(bytes), nil
}

// formatSize writes a number of bytes the way ParseSize reads it.
func formatSize(n int64) string {
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes {
			if n%u.bytes == 0 {
				return fmt.Sprintf("%d %s", n/u.bytes, u.suffix)
			}
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.bytes), u.suffix)
		}
	}
	return fmt.Sprintf("%d B", n)
}

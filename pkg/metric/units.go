package metric

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Suffix is a registered unit suffix of metric names.
type Suffix struct {
	Suffix string // as it ends a name: "Gbps" in "busbwGbps"
	Unit   string // as reports print it
	Help   string
}

// Suffixes lists the registered unit suffixes. A metric that has a dimension
// ends its name with one of them.
func Suffixes() []Suffix {
	return []Suffix{
		{"Tbps", "Tbit/s", "terabits per second"},
		{"Gbps", "Gbit/s", "gigabits per second"},
		{"Mbps", "Mbit/s", "megabits per second"},
		{"TBs", "TB/s", "10^12 bytes per second"},
		{"GBs", "GB/s", "10^9 bytes per second"},
		{"MBs", "MB/s", "10^6 bytes per second"},
		{"KBs", "kB/s", "10^3 bytes per second"},
		{"GiBs", "GiB/s", "2^30 bytes per second"},
		{"MiBs", "MiB/s", "2^20 bytes per second"},
		{"TB", "TB", "10^12 bytes"},
		{"GB", "GB", "10^9 bytes"},
		{"MB", "MB", "10^6 bytes"},
		{"GiB", "GiB", "2^30 bytes"},
		{"MiB", "MiB", "2^20 bytes"},
		{"KiB", "KiB", "2^10 bytes"},
		{"Ns", "ns", "nanoseconds"},
		{"Us", "us", "microseconds"},
		{"Ms", "ms", "milliseconds"},
		{"S", "s", "seconds"},
		{"C", "°C", "degrees Celsius"},
		{"W", "W", "watts"},
		{"J", "J", "joules"},
		{"V", "V", "volts"},
		{"A", "A", "amperes"},
		{"Pct", "%", "percent"},
		{"Pflops", "PFLOP/s", "10^15 floating-point operations per second"},
		{"Tflops", "TFLOP/s", "10^12 floating-point operations per second"},
		{"Gflops", "GFLOP/s", "10^9 floating-point operations per second"},
		{"Mflops", "MFLOP/s", "10^6 floating-point operations per second"},
		{"Gups", "GUP/s", "10^9 updates per second"},
		{"GHz", "GHz", "10^9 per second"},
		{"MHz", "MHz", "10^6 per second"},
		{"KHz", "kHz", "10^3 per second"},
		{"Hz", "Hz", "per second"},
		{"Rpm", "rpm", "turns per minute"},
		{"Iops", "IOP/s", "input and output operations per second"},
	}
}

// UnitOf returns the unit that the suffix of a metric name stands for, and
// whether there is one. The longest suffix counts, and only where a new word of
// the name begins: "busbwGbps" has one, "GPUs" has none.
func UnitOf(name string) (unit string, dimensional bool) {
	s, ok := SuffixOf(name)
	return s.Unit, ok
}

// SuffixOf returns the registered suffix that a metric name ends with, as UnitOf
// finds it.
func SuffixOf(name string) (suffix Suffix, ok bool) {
	for _, s := range Suffixes() {
		stem, ends := strings.CutSuffix(name, s.Suffix)
		if ends && stem != "" && startsWord(stem[len(stem)-1]) && len(s.Suffix) > len(suffix.Suffix) {
			suffix, ok = s, true
		}
	}
	return suffix, ok
}

// SameUnit reports whether two spellings mean one unit: as reports print it, as
// it ends a name, or as people write it ("GBs" and "GB/s", "%" and "percent").
func SameUnit(a, b string) bool { return plainUnit(a) == plainUnit(b) }

// spelledOut replaces what people write for "/s", bits and bytes. Case tells GBps from
// Gbps and Gb/s from GB/s.
func spelledOut(unit string) string {
	if stem, ok := strings.CutSuffix(unit, "Bps"); ok {
		unit = stem + "B/s"
	}
	for _, per := range []string{"/second", "/sec"} {
		if stem, ok := strings.CutSuffix(unit, per); ok {
			unit = stem + "/s"
		}
	}
	if stem, ok := strings.CutSuffix(unit, "b/s"); ok && len(stem) == 1 && strings.Contains("KMGT", stem) {
		unit = stem + "bit/s"
	}
	for _, byteWord := range []string{"bytes", "Bytes", "byte", "Byte"} {
		unit = strings.ReplaceAll(unit, byteWord, "B")
	}
	return strings.ReplaceAll(unit, "bits", "bit")
}

// plainUnit reduces the spellings of a unit to one.
func plainUnit(unit string) string {
	plain := strings.Map(func(r rune) rune {
		switch r {
		case '/', ' ', '°':
			return -1
		case 'µ', 'μ':
			return 'u'
		}
		return unicode.ToLower(r)
	}, spelledOut(unit))
	switch plain {
	case "sec", "second", "seconds":
		return "s"
	case "msec", "millisecond", "milliseconds":
		return "ms"
	case "usec", "microsecond", "microseconds":
		return "us"
	case "nsec", "nanosecond", "nanoseconds":
		return "ns"
	case "watt", "watts":
		return "w"
	case "percent":
		return "%"
	}
	for _, s := range Suffixes() {
		if strings.EqualFold(plain, s.Suffix) {
			return strings.NewReplacer("/", "", "°", "").Replace(strings.ToLower(s.Unit))
		}
	}
	return plain
}

// isUnitWord reports whether a word is a unit and hardly a name: one of the
// registered units however it is spelled, or the rate of something, such as
// tokens/s. A single letter has to be spelled as the unit is.
func isUnitWord(word string) bool {
	if !isUnit(word) {
		return false
	}
	for _, rate := range []string{"/s", "/sec", "/second"} {
		if strings.HasSuffix(word, rate) {
			return true
		}
	}
	return slices.ContainsFunc(Suffixes(), func(s Suffix) bool {
		return word == s.Unit || word == s.Suffix || len(word) > 1 && SameUnit(word, s.Unit)
	})
}

// startsWord reports whether a capital after c begins a new word.
func startsWord(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) }

// ValidName says what is wrong with a metric name that a card declares. Names
// that come from `performance:` lines and results CSVs are free.
func ValidName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a metric needs a name")
	case len(name) > maxName:
		return fmt.Errorf("metric name %q is longer than %d bytes", clip(name), maxName)
	case name[0] < 'a' || name[0] > 'z':
		return fmt.Errorf("metric name %q is not lowerCamelCase: it begins with %q", clip(name), name[:1])
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return fmt.Errorf("metric name %q is not lowerCamelCase: it holds %q", clip(name), r)
		}
	}
	return nil
}

// Camel makes a name lowerCamelCase, as far as that can be done by leaving out what
// stands between its words: "eccErrors" of "ecc_errors". The result may still be no
// valid name.
func Camel(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
	for i, w := range words {
		if i == 0 {
			words[i] = strings.ToLower(w[:1]) + w[1:]
		} else {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

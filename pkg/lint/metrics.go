package lint

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"assay/pkg/document"
)

// declared are the metrics of a card: their units by name.
type declared map[string]string

var lowerCamelCase = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// metrics checks the declarations of a card and returns them.
func (c *checker) metrics(list document.Node) declared {
	all := declared{}
	if list.Kind() != document.KindArray {
		return all
	}
	for m := range list.Children() {
		name := m.Get("name")
		if name.Kind() != document.KindString {
			continue
		}
		unit := m.Get("unit")
		if _, twice := all[name.Text()]; twice {
			c.at(Warning, MetricDuplicate, name, fmt.Sprintf("the metric %q is declared twice", name.Text()), "remove one of them")
		}
		all[name.Text()] = ""
		if unit.Kind() == document.KindString {
			all[name.Text()] = unit.Text()
		}
		c.metricName(name)
		c.metricUnit(name.Text(), unit)
	}
	return all
}

// metricName checks the form of a name.
func (c *checker) metricName(name document.Node) {
	text := name.Text()
	if text == "" || text == "performance" || strings.HasSuffix(text, "/performance") || lowerCamelCase.MatchString(text) {
		return
	}
	c.at(Warning, MetricName, name, fmt.Sprintf("the metric name %q is not lowerCamelCase", text), "write "+fmt.Sprintf("%q", camel(text)))
}

// camel makes a name lowerCamelCase.
func camel(s string) string {
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

// metricUnit checks that the suffix of a name is the unit that is declared.
func (c *checker) metricUnit(name string, unit document.Node) {
	if unit.Kind() != document.KindString || unit.Text() == "" {
		return
	}
	suffix := unitSuffix(name)
	if suffix != "" && suffix != unit.Text() && plainUnit(suffix) != plainUnit(unit.Text()) {
		c.at(Warning, MetricUnit, unit, fmt.Sprintf("the name %q ends with the unit %s, and the unit is %q", name, suffix, unit.Text()), "")
	}
}

// unitSuffixes are the registered units of names, longest first where one ends
// with another.
func unitSuffixes() []string {
	return []string{
		"Tflops", "Gflops", "Mflops", "Gbps", "Mbps", "TBs", "GBs", "MBs", "KBs", "GiBs", "MiBs",
		"GiB", "MiB", "GB", "MB", "GHz", "MHz", "Pct", "Iops", "Us", "Ms", "Ns", "S", "C", "W", "J", "V", "A",
	}
}

// unitSuffix returns the unit a name ends with, or "". A single letter counts
// only after a small letter or a digit.
func unitSuffix(name string) string {
	for _, u := range unitSuffixes() {
		rest, ok := strings.CutSuffix(name, u)
		if !ok || rest == "" {
			continue
		}
		if last := rest[len(rest)-1]; last >= 'a' && last <= 'z' || last >= '0' && last <= '9' {
			return u
		}
	}
	return ""
}

// plainUnit makes spellings of one unit the same: GB/s and GBs, % and Pct.
func plainUnit(unit string) string {
	u := strings.Map(func(r rune) rune {
		switch r {
		case '/', ' ', '°':
			return -1
		case 'µ', 'μ':
			return 'u'
		}
		return unicode.ToLower(r)
	}, unit)
	switch u {
	case "sec", "second", "seconds":
		return "s"
	case "gbits":
		return "gbps"
	case "watt", "watts":
		return "w"
	case "%", "percent":
		return "pct"
	}
	return u
}

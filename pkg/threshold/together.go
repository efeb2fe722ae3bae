package threshold

import (
	"fmt"
	"strconv"
)

// Together are thresholds that have to be satisfied at the same time, by metric.
type Together map[string]joint

// joint is what the thresholds on one metric leave.
type joint struct {
	all Threshold        // the tightest of each bound, save not_equal
	not map[float64]bool // what it must not be
}

// Add adds a threshold, and says why no value satisfies it and those on its metric that
// were added before; it is then left out. One that is malformed by itself is, too.
func (g Together) Add(t Threshold) (why string) {
	if len(Malformed(t)) > 0 {
		return ""
	}
	j, ok := g[t.Metric]
	if !ok {
		j.not = map[float64]bool{}
	}
	all, why := j.with(t)
	if why != "" {
		return why
	}
	if t.NotEqual != nil {
		j.not[*t.NotEqual] = true
	}
	j.all = all
	g[t.Metric] = j
	return ""
}

// with is what is left when a threshold is added, or why that is nothing.
func (j joint) with(t Threshold) (all Threshold, why string) {
	all = Threshold{Metric: t.Metric, Min: j.all.Min, Max: j.all.Max, Equal: j.all.Equal}
	if t.Min != nil && (all.Min == nil || *t.Min > *all.Min) {
		all.Min = t.Min
	}
	if t.Max != nil && (all.Max == nil || *t.Max < *all.Max) {
		all.Max = t.Max
	}
	if t.Equal != nil {
		if all.Equal != nil && *all.Equal != *t.Equal {
			return all, fmt.Sprintf("equal %s and equal %s exclude each other", plain(*all.Equal), plain(*t.Equal))
		}
		all.Equal = t.Equal
	}
	one := all
	if v := only(all); v != nil && (j.not[*v] || t.NotEqual != nil && *t.NotEqual == *v) {
		one.NotEqual = v
	}
	for _, f := range Malformed(one) {
		if f.Code == CodeEmpty {
			return all, f.Message
		}
	}
	return all, ""
}

// only is the only value that bounds allow; nil when there are others.
func only(t Threshold) *float64 {
	if t.Equal == nil && t.Min != nil && t.Max != nil && *t.Min == *t.Max {
		return t.Min
	}
	return t.Equal
}

func plain(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/phrase"
	"assay/pkg/verdict"
)

// Names gives what people call each job: its name; its key where two have one name,
// or where it is a test of a suite, with its nodes where two have one key.
func Names(run Run) []string {
	names, keys := map[string]int{}, map[string]int{}
	for _, j := range run.Jobs {
		names[j.Name]++
		keys[j.Key]++
	}
	out := make([]string, len(run.Jobs))
	for i, j := range run.Jobs {
		out[i] = j.Name
		if (names[j.Name] > 1 || j.Name == "" || j.Test != "") && j.Key != "" {
			out[i] = j.Key
			if keys[j.Key] > 1 && len(j.Nodes) > 0 {
				out[i] += " " + strings.Join(j.Nodes, "–")
			}
		}
	}
	return out
}

// labels are the names of the jobs, each with what has to be known beside its verdict.
func labels(run Run) []string {
	out := Names(run)
	for i, j := range run.Jobs {
		out[i] += marks(j)
	}
	return out
}

// measurement is one value for people, e.g. "triadGBs 41.2" or "latency 3 ms".
func measurement(m Measurement) string {
	name := m.Name
	if m.Model != "" {
		name = m.Model + "/" + name
	}
	switch {
	case m.Label:
		return name + " " + strconv.Quote(m.Text)
	case m.NotApplicable || m.Value == nil:
		return name + " n/a"
	case m.Unit == "" || strings.HasSuffix(m.Name, m.Unit):
		return name + " " + number(m)
	}
	return name + " " + number(m) + " " + m.Unit
}

// number is the value as it was written, or to six digits.
func number(m Measurement) string {
	if m.Text != "" && len(m.Text) <= 12 {
		return m.Text
	}
	return strconv.FormatFloat(*m.Value, 'g', 6, 64)
}

// measurements joins the first few values; most is how many, 0 for all. Of few, words
// come last, and of the others those that the job was judged by first.
func measurements(list []Measurement, most int) string {
	var parts []string
	if most > 0 {
		list = gatedFirst(list)
	}
	for i, m := range list {
		if most > 0 && i == most {
			parts = append(parts, fmt.Sprintf("+%d more", len(list)-most))
			break
		}
		parts = append(parts, measurement(m))
	}
	return strings.Join(parts, ", ")
}

// gatedFirst puts measurements in the order in which few are shown.
func gatedFirst(list []Measurement) []Measurement {
	return slices.SortedStableFunc(slices.Values(list), func(a, b Measurement) int { return cmp.Compare(place(a), place(b)) })
}

// place is where a measurement comes among those of a job.
func place(m Measurement) int {
	switch {
	case m.Label:
		return 3
	case m.Gated:
		return 0
	case m.Declared:
		return 1
	}
	return 2
}

// elapsed is a duration in seconds for people; "" for none.
func elapsed(seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	return phrase.Seconds(seconds)
}

// nodeList is the first node and how many more there are.
func nodeList(nodes []string) string {
	switch len(nodes) {
	case 0:
		return ""
	case 1, 2:
		return strings.Join(nodes, " ")
	}
	return fmt.Sprintf("%s +%d", nodes[0], len(nodes)-1)
}

// group shortens reasons: of each code the first few, then how many more there
// are. most is how many of each are kept, 0 for all.
func group(reasons []verdict.Reason, most int) []string {
	total := map[string]int{}
	for _, r := range reasons {
		total[r.Code]++
	}
	var lines []string
	seen := map[string]int{}
	for _, r := range reasons {
		seen[r.Code]++
		if most > 0 && seen[r.Code] > most {
			continue
		}
		lines = append(lines, r.Message)
		if more := total[r.Code] - most; most > 0 && seen[r.Code] == most && more > 0 {
			lines = append(lines, fmt.Sprintf("…and %d more %s", more, r.Code))
		}
	}
	return lines
}

// tally counts the jobs by verdict, e.g. "3 jobs: 1 FAIL, 2 PASS".
func tally(run Run) string {
	count := map[verdict.Word]int{}
	for _, j := range run.Jobs {
		count[j.Verdict]++
	}
	var parts []string
	for _, w := range []verdict.Word{verdict.Fail, verdict.Error, verdict.NoMetric, verdict.Pass, verdict.Skip, verdict.Pending, verdict.Unknown} {
		if count[w] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[w], w))
		}
	}
	if len(parts) == 0 {
		return "0 jobs"
	}
	return phrase.Count(len(run.Jobs), "job") + ": " + strings.Join(parts, ", ")
}

// summing is the tally with what has to be known beside it.
func summing(run Run) string {
	return strings.Join(append([]string{tally(run)}, caveats(run)...), "; ")
}

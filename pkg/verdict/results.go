package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/metric"
	"assay/pkg/phrase"
)

// declaredResults explains a declared results file that no rank left. Usually one
// rank writes it, so a rank without it means nothing while another has it.
func (f *facts) declaredResults() {
	if f.x.MultipleResults == "" {
		return
	}
	var first *evidence.Rank
	for i := range f.ranks {
		r := &f.ranks[i]
		if r.Results == nil {
			continue
		}
		if r.Results.File != "" {
			return
		}
		if first == nil {
			first = r
		}
	}
	if slices.ContainsFunc(f.measurements, func(m metric.Measurement) bool { return m.Source == metric.SourceResults }) {
		return
	}
	file := f.x.MultipleResults
	if first == nil && (len(f.faults) > 0 || !f.began) {
		return // a rank that did not get that far is explained by itself
	}
	if first == nil {
		f.results = append(f.results, Reason{CodeResultsNotFound, file, fmt.Sprintf("multiple_results %q was not looked for by any rank", file)})
		return
	}
	f.results = append(f.results, Reason{CodeResultsNotFound, file, notFound(file, *first, f.nearby())})
}

// notFound says where a declared file was looked for and what lies beside it.
func notFound(file string, r evidence.Rank, nearby []evidence.Nearby) string {
	var b strings.Builder
	fmt.Fprintf(&b, "multiple_results %q was not found", file)
	if len(r.Results.Tried) > 0 {
		fmt.Fprintf(&b, "; %s looked at %s", rankName(r), listNames(r.Results.Tried))
	}
	fmt.Fprintf(&b, "; the workload was given the name as MAD_OUTPUT_CSV")
	if len(r.Results.Stale) > 0 {
		fmt.Fprintf(&b, "; %s holds nothing that is newer than the run and does not count", listNames(r.Results.Stale))
	}
	for _, refused := range r.Results.Refused {
		fmt.Fprintf(&b, "; %s", refused)
	}
	for _, n := range nearby {
		fmt.Fprintf(&b, "; %s", suggestion(n))
	}
	return b.String()
}

// suggestion names a file that looks like results, and where to declare it.
func suggestion(n evidence.Nearby) string {
	columns := make([]string, len(n.Columns))
	for i, c := range n.Columns {
		columns[i] = strconv.Quote(c)
	}
	return fmt.Sprintf("%q has the shape of results (columns %s): to use it, declare multiple_results: %[1]q", n.Path, listNames(columns))
}

// nearby lists the files that look like results, each once, at most three.
func (f *facts) nearby() []evidence.Nearby {
	const limit = 3
	var out []evidence.Nearby
	for _, r := range f.ranks {
		if r.Results == nil {
			continue
		}
		for _, n := range r.Results.Nearby {
			if len(out) < limit && !slices.ContainsFunc(out, func(o evidence.Nearby) bool { return o.Path == n.Path }) {
				out = append(out, n)
			}
		}
	}
	return out
}

// nothingMeasured says where values were looked for.
func (f *facts) nothingMeasured() Reason {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ended clean and nothing was measured; looked for performance: lines in stdout and stderr", phrase.Count(f.world, "rank"))
	names := f.x.keyNames()
	if len(names) > 0 {
		fmt.Fprintf(&b, ", for %s in key=value lines and metrics.json", listNames(names))
	}
	if f.x.MultipleResults != "" {
		fmt.Fprintf(&b, ", and for values in %s", f.x.MultipleResults)
	} else {
		for _, n := range f.nearby() {
			fmt.Fprintf(&b, "; %s", suggestion(n))
		}
	}
	return Reason{CodeNothingMeasured, "", b.String()}
}

// keyNames lists the declared names that a key=value line could have.
func (x Expectation) keyNames() []string {
	return slices.DeleteFunc(x.Declared(), func(name string) bool {
		return name == metric.Performance || strings.HasSuffix(name, "/"+metric.Performance)
	})
}

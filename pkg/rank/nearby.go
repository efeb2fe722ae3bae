package rank

import (
	"bufio"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay/pkg/evidence"
	"assay/pkg/regular"
	"assay/pkg/rundir"
)

const (
	maxNearby      = 10
	maxVisited     = 4096 // directory entries looked at in one place
	maxNearbyDepth = 4    // directories below that place
	maxHeader      = 64 << 10
)

// searched is a directory and how far below it files are looked for.
type searched struct {
	dir   string
	depth int
}

// nearbyDirs are the places where a misnamed results file may lie. Of the source
// directory, which may be large, only the top is looked at.
func (w *wrapper) nearbyDirs(p *prepared) []searched {
	dirs := []searched{{filepath.Join(w.dir, rundir.ResultsDir), maxNearbyDepth}, {p.work, maxNearbyDepth}}
	if w.rank == 0 && p.source != "" {
		dirs = append(dirs, searched{p.source, 0})
	}
	return dirs
}

// nearby lists the files that the workload wrote and that look like results.
func (w *wrapper) nearby(p *prepared) []evidence.Nearby {
	var out []evidence.Nearby
	seen := map[string]bool{}
	for _, in := range w.nearbyDirs(p) {
		for _, path := range csvFiles(in) {
			now, ok := stampOf(path)
			if before, was := p.results.nearby[path]; !ok || (was && before == now) {
				continue
			}
			name, err := filepath.Rel(in.dir, path)
			if err != nil || seen[name] || slices.ContainsFunc(p.results.places, func(at *place) bool { return at.path == path }) {
				continue
			}
			columns := csvHeader(path)
			if !looksLikeResults(columns) {
				continue
			}
			seen[name] = true
			if out = append(out, evidence.Nearby{Path: name, Columns: columns}); len(out) == maxNearby {
				return out
			}
		}
	}
	return out
}

// csvFiles lists the CSV files of a place, sorted: links to files count, links to
// directories are not followed.
func csvFiles(in searched) []string {
	var out []string
	left := maxVisited
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries := readEntries(dir, left)
		left -= len(entries)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case e.IsDir() && depth > 0:
				walk(path, depth-1)
			case !e.IsDir() && strings.EqualFold(filepath.Ext(e.Name()), ".csv"):
				out = append(out, path)
			}
		}
	}
	walk(in.dir, in.depth)
	slices.Sort(out)
	return out
}

// readEntries reads at most limit entries of a directory.
func readEntries(dir string, limit int) []os.DirEntry {
	f, err := os.Open(dir)
	if err != nil || limit <= 0 {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(limit)
	return entries
}

// csvHeader reads the first record of a CSV file, trimmed; nil when there is none.
func csvHeader(path string) []string {
	f, err := regular.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(io.LimitReader(f, maxHeader), 4096).ReadString('\n')
	if err != nil && line == "" {
		return nil
	}
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(line, "\ufeff")))
	r.LazyQuotes, r.TrimLeadingSpace = true, true
	columns, err := r.Read()
	if err != nil {
		return nil
	}
	for i, c := range columns {
		columns[i] = strings.ToValidUTF8(strings.TrimSpace(c), "?")
	}
	return columns
}

// looksLikeResults reports whether a header has the shape of a results CSV and is
// not that of perf.csv, the table of all runs.
func looksLikeResults(columns []string) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, name) })
	}
	if !has("performance") || (!has("metric") && !has("model")) {
		return false
	}
	for _, name := range []string{"pipeline", "docker_sha", "build_number", "relative_change"} {
		if !has(name) {
			return true
		}
	}
	return false
}

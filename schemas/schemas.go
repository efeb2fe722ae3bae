// Package schemas holds the JSON Schemas (draft 2020-12) of every file that
// crosses a boundary: cards, manifests, suites, thresholds, markers, verdicts and perf.csv.
// The Go structs of the project are tested against them.
package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

// Names returns the names of the schemas, sorted.
func Names() []string {
	found, err := fs.Glob(files, "*"+suffix)
	if err != nil { // only a malformed pattern can fail
		return nil
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = strings.TrimSuffix(f, suffix)
	}
	return names
}

// Read returns the text of a schema by its name, for example "manifest". The
// error names the schemas there are.
func Read(name string) ([]byte, error) {
	text, err := files.ReadFile(name + suffix)
	if err != nil {
		return nil, fmt.Errorf("there is no schema %q; the schemas are %s", name, strings.Join(Names(), ", "))
	}
	return text, nil
}

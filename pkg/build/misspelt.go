package build

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"assay/pkg/discover"
	"assay/pkg/document"
	"assay/pkg/spelling"
	"assay/schemas"
)

func manifestSchema() (*document.Schema, error) {
	text, err := schemas.Read("manifest")
	if err != nil {
		return nil, err
	}
	return document.Compile(text)
}

// suspect warns about a key of the top level that has a meaning elsewhere, or is
// close to one that has.
func (l *landing) suspect(key string, b blocks) {
	known := slices.Concat(b.context, b.deployment, []string{"deploy", "context", "deployment_config"})
	if strings.HasPrefix(key, "_") || slices.Contains(known, key) {
		return
	}
	near := ""
	if list := discover.Nearest(key, known, 1); len(list) > 0 {
		near = list[0]
	}
	for _, block := range []string{"slurm", "distributed", "k8s", "pbs"} {
		if slices.Contains(b.nested[block], key) {
			near = block + "." + key
			break
		}
		if meant := spelling.Nearest(key, b.nested[block]); near == "" && meant != "" {
			near = block + "." + meant
		}
	}
	if near != "" {
		l.suspects = append(l.suspects, key)
		l.warnings = append(l.warnings, fmt.Sprintf("additional context: %s has no meaning; did you mean %s?", key, near))
	}
}

// misspelt warns about keys inside the blocks that look like a misspelt one.
func (l *landing) misspelt(s *document.Schema) error {
	data, err := json.Marshal(map[string]any{"context": l.context, "deployment_config": l.deployment})
	if err != nil {
		return err
	}
	doc, _ := document.Parse("context.json", data)
	if doc == nil { // nested too deep by now: that is said of the manifest
		return nil
	}
	misses, _ := s.NearMisses(doc.Root())
	for _, m := range misses {
		if key, top := strings.CutPrefix(m.Pointer, "/context/"); !top || !slices.Contains(l.suspects, key) {
			l.warnings = append(l.warnings, fmt.Sprintf("additional context: %s: %s", m.Pointer, m.Message))
		}
	}
	return nil
}

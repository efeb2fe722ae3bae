package lint

import (
	"bytes"
	"path/filepath"
	"strings"

	"assay/pkg/document"
	"assay/pkg/spelling"
)

// Kind is what a file is.
type Kind int

// The kinds. The zero value is UnknownKind: it is found out.
const (
	UnknownKind Kind = iota
	Manifest
	Card // one card, or a list of cards
	Suite
	PerfCSV
	Thresholds // by hardware and test
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case Manifest:
		return "manifest"
	case Card:
		return "card"
	case Suite:
		return "suite"
	case PerfCSV:
		return "perf.csv"
	case Thresholds:
		return "thresholds"
	case UnknownKind:
	}
	return "unknown"
}

// detect tells what a document is by what it has.
func detect(name string, root document.Node) Kind {
	if root.Kind() == document.KindArray {
		return Card
	}
	if root.Kind() != document.KindObject {
		return UnknownKind
	}
	for _, rule := range []struct {
		kind Kind
		keys []string
	}{
		{Manifest, []string{"built_images", "built_models"}},
		{Suite, []string{"tests"}},
		{Thresholds, []string{"hardware"}},
		{Card, []string{"name", "scripts", "command", "dockerfile", "n_gpus"}},
		{Manifest, []string{"context", "deployment_config", "credentials_required"}},
	} {
		for _, k := range rule.keys {
			if root.Get(k).Exists() {
				return rule.kind
			}
		}
	}
	base := strings.ToLower(filepath.Base(name))
	switch {
	case strings.Contains(base, "manifest"):
		return Manifest
	case strings.Contains(base, "suite"):
		return Suite
	case strings.Contains(base, "thresholds"):
		return Thresholds
	case strings.HasPrefix(base, "models."):
		return Card
	}
	for c := range root.Children() {
		if spelling.Nearest(c.Key(), []string{"built_images", "built_models"}) != "" {
			return Manifest
		}
	}
	return UnknownKind
}

// looksLikePerfCSV says whether the name or the first line is a perf.csv's.
func looksLikePerfCSV(name string, data []byte) bool {
	if strings.EqualFold(filepath.Ext(name), ".csv") {
		return true
	}
	line, _, _ := bytes.Cut(data[:min(len(data), 4096)], []byte("\n"))
	return bytes.HasPrefix(bytes.TrimPrefix(line, []byte("\ufeff")), []byte("model,n_gpus,"))
}

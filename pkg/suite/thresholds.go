package suite

import (
	"path/filepath"
	"strings"

	"assay/pkg/document"
)

// Thresholds is a file of thresholds as it was read.
type Thresholds struct {
	File   string // as the suite names it
	Path   string // where it lies
	Digest string // sha256:… of its bytes
	Doc    *document.Document
}

// ThresholdsPath is where the file of thresholds lies, and where the suite names it;
// an empty path means that it names none.
func (s *Suite) ThresholdsPath() (path string, at document.Node) {
	at = s.root.Get("thresholds_file")
	if at.Kind() != document.KindString || at.Text() == "" {
		return "", at
	}
	if path = at.Text(); !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(s.File), path)
	}
	return path, at
}

// ReadThresholds reads the file of thresholds; nil when the suite names none. The
// error has code INVALID.
func (s *Suite) ReadThresholds() (*Thresholds, error) {
	path, at := s.ThresholdsPath()
	if path == "" {
		return nil, nil
	}
	doc, digest, err := read(path)
	if err != nil {
		return nil, err
	}
	return &Thresholds{File: at.Text(), Path: path, Digest: digest, Doc: doc}, nil
}

// Block is what the manifest keeps of the file.
func (t *Thresholds) Block() map[string]any {
	hardware := map[string]any{}
	for h := range members(t.Doc.Root().Get("hardware")) {
		tests := map[string]any{}
		for test := range members(h) {
			if test.Kind() == document.KindArray {
				tests[test.Key()] = test.Value()
			}
		}
		hardware[h.Key()] = tests
	}
	return map[string]any{"file": t.File, "digest": t.Digest, "hardware": hardware}
}

// members yields the members of an object that are no comments.
func members(n document.Node) func(yield func(document.Node) bool) {
	return func(yield func(document.Node) bool) {
		if n.Kind() != document.KindObject {
			return
		}
		for c := range n.Children() {
			if !strings.HasPrefix(c.Key(), "_") && !yield(c) {
				return
			}
		}
	}
}

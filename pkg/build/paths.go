package build

import (
	"path/filepath"
	"strings"

	"assay/pkg/exitcode"
)

// paths relates the models root to the directory of the manifest.
type paths struct {
	absRoot string
	root    string // the root as seen from the manifest, with slashes; "." when they are the same
}

func newPaths(root, output string) (paths, error) {
	absRoot, err := filepath.Abs(root)
	if err != nil {
		return paths{}, exitcode.Errorf(exitcode.Invalid, "the models root %s has no absolute path: %w", root, err)
	}
	absOut, err := filepath.Abs(output)
	if err != nil {
		return paths{}, exitcode.Errorf(exitcode.Invalid, "the manifest %s has no absolute path: %w", output, err)
	}
	rel, err := filepath.Rel(filepath.Dir(absOut), absRoot)
	if err != nil {
		return paths{}, exitcode.Errorf(exitcode.Invalid, "the models root %s cannot be reached from the manifest %s: %w", root, output, err)
	}
	return paths{absRoot: absRoot, root: filepath.ToSlash(rel)}, nil
}

// fromManifest turns a path relative to the root into one relative to the
// manifest. Absolute and empty paths stay.
func (p paths) fromManifest(path string) string {
	if path == "" || filepath.IsAbs(path) || p.root == "." {
		return path
	}
	return filepath.ToSlash(filepath.Join(p.root, path))
}

// relocate makes env_file relative to the manifest. It is given relative to the
// models root, like every other path.
func (l *landing) relocate(p paths) {
	file, ok := l.deployment["env_file"].(string)
	if ok && strings.TrimSpace(file) != "" {
		l.deployment["env_file"] = p.fromManifest(file)
	}
}

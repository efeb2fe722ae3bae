// Package templates holds the text of the pages and scripts that are rendered
// from data, embedded in the binary.
package templates

import (
	"embed"
	"io/fs"
)

//go:embed *.tmpl slurm/*.tmpl
var files embed.FS

// Files returns the templates by their file names.
func Files() fs.FS { return files }

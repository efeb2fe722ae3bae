// Package envfile reads an env_file: the variables that a site or a user keeps
// in a file beside the manifest. A shell file is sourced by bash, a dotenv file
// is parsed and nothing in it is executed. It also loads environment modules.
//
// Order of precedence, weakest first: the inherited environment, the modules, the
// env_file, the manifest's env_vars.
//
// Values are secrets to this package. Vars never prints one, and errors carry
// bash's own words without those of the file, source lines and traces, and what
// the file printed with *** in place of values.
package envfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"assay/pkg/exitcode"
)

// The formats of an env_file.
const (
	FormatShell  = "shell"  // sourced by bash; the default
	FormatDotenv = "dotenv" // NAME=value lines; nothing is executed
)

// DefaultTimeout bounds the sourcing of a shell file.
const DefaultTimeout = 30 * time.Second

// maxFile is the largest env_file whose text is looked at, in bytes.
const maxFile = 64 << 20

// Options says which file to read and how.
type Options struct {
	Path    string        // absolute
	Format  string        // FormatShell or FormatDotenv; empty: FormatShell
	Base    []string      // the environment the file is read in, as KEY=VALUE
	Dir     string        // working directory of bash; empty: the directory of the file
	Timeout time.Duration // for sourcing; 0: DefaultTimeout
	Grace   time.Duration // between TERM and KILL once Timeout is over; 0: one second

	// Services lets what the file started live on: the caller ends it. Else it is
	// killed, unless it left the session of bash with an environment of its own
	// (setsid env -i).
	Services bool
}

// Load reads the file and returns what it changed in Base. Every failure carries
// exitcode.Invalid and names the path; the end of ctx is returned as it is.
func Load(ctx context.Context, o Options) (Vars, error) {
	if err := checkFile(o.Path); err != nil {
		return Vars{}, err
	}
	switch o.Format {
	case "", FormatShell:
		return loadShell(ctx, o)
	case FormatDotenv:
		return loadDotenv(o)
	}
	return Vars{}, exitcode.Errorf(exitcode.Invalid,
		"env_file %s: unknown env_file_format %q; use %q or %q", o.Path, o.Format, FormatShell, FormatDotenv)
}

// checkFile refuses what can only fail or hang later.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exitcode.Errorf(exitcode.Invalid, "env_file %s: no such file", path)
	case err != nil:
		return exitcode.Errorf(exitcode.Invalid, "env_file %s: %w", path, err)
	case info.IsDir():
		return exitcode.Errorf(exitcode.Invalid, "env_file %s: is a directory", path)
	case !info.Mode().IsRegular():
		return exitcode.Errorf(exitcode.Invalid, "env_file %s: is not a regular file", path)
	}
	return nil
}

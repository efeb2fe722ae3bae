// Package cli is the command line: flags, help, output formats, and the one place
// where errors become exit codes. It is the only package that knows cobra.
package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/charmbracelet/log"
	"golang.org/x/term"

	"assay/deploy"
	"assay/deploy/k8s"
	"assay/deploy/local"
	"assay/deploy/slurm"
	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/templates"
)

// IO is everything that a command takes from the process it runs in.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      []string // KEY=VALUE
	Dir      string   // working directory
	Binary   string   // absolute path of the running binary
	Version  string
	OutTTY   bool // Out is a terminal
	ErrTTY   bool // Err is a terminal
	Width    int  // columns of the terminal; 0 when there is none
}

// System returns the streams and the environment of this process.
func System(version string) IO {
	s := IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ(), Version: version}
	s.Dir, _ = os.Getwd()         // an empty Dir leaves paths as they were given
	s.Binary, _ = os.Executable() // commands that need it say when it is missing
	s.OutTTY = term.IsTerminal(int(os.Stdout.Fd()))
	s.ErrTTY = term.IsTerminal(int(os.Stderr.Fd()))
	if s.ErrTTY {
		s.Width, _, _ = term.GetSize(int(os.Stderr.Fd()))
	}
	return s
}

// getenv returns a variable of the environment, or "".
func (s IO) getenv(name string) string { return environ.Get(s.Env, name) }

// color says whether escapes may be written to a stream that is a terminal.
func (s IO) color(tty bool) bool {
	return tty && s.getenv("NO_COLOR") == "" && s.getenv("TERM") != "dumb"
}

// app is what the commands share: the process, and the flags of the root.
type app struct {
	IO
	quiet, verbose bool
	templateDir    string
	log            *log.Logger
}

// targets lists the places where jobs can run. A new one is added here.
func (a *app) targets() []deploy.Target {
	host, _ := os.Hostname() // an annotation for people, that may be empty
	return []deploy.Target{
		local.New(local.Options{Binary: a.Binary, Env: a.Env}),
		slurm.New(slurm.Options{Binary: a.Binary, Env: a.Env, Templates: a.templates()}),
		k8s.New(k8s.Options{Env: a.Env, Host: host, Version: a.Version}),
	}
}

// templates are the embedded templates of job scripts, under those of the
// directory that the user names.
func (a *app) templates() fs.FS {
	if a.templateDir == "" {
		return templates.Files()
	}
	return overlay{os.DirFS(a.templateDir), templates.Files()}
}

// checkTemplates refuses a directory of templates that has none of ours: a typing
// mistake would run something else than what was asked for.
func (a *app) checkTemplates() error {
	if a.templateDir == "" {
		return nil
	}
	known, err := fs.Glob(templates.Files(), "*/*.tmpl")
	if err != nil {
		return err
	}
	for _, name := range known {
		if _, err := os.Stat(filepath.Join(a.templateDir, name)); err == nil {
			return nil
		}
	}
	return exitcode.Errorf(exitcode.Invalid, "--template-dir %s: it has none of the templates %s", a.templateDir, strings.Join(known, ", "))
}

// overlay is a file system over another.
type overlay [2]fs.FS

// Open opens a file of the first file system that has it.
func (o overlay) Open(name string) (fs.File, error) {
	f, err := o[0].Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o[1].Open(name)
	}
	return f, err
}

// target returns the target of a name.
func (a *app) target(name string) (deploy.Target, error) {
	var known []string
	for _, t := range a.targets() {
		if t.Name() == name {
			return t, nil
		}
		known = append(known, t.Name())
	}
	return nil, exitcode.Errorf(exitcode.Invalid, "target %q is not available in this version; available: %s", name, strings.Join(known, ", "))
}

// notice tells a person something that is no error.
func (a *app) notice(text string) { a.log.Warn(text) }

// errSilent is an error that has already been told.
var errSilent = errors.New("already reported")

// exit ends a command with a code and no message of its own.
func exit(code exitcode.Code) error {
	if code == exitcode.Pass {
		return nil
	}
	return exitcode.With(code, errSilent)
}

// watchedWriter remembers whether a write failed: not every library that prints
// says so. A pipe that nobody reads any more is no failure.
type watchedWriter struct {
	w      io.Writer
	failed bool
}

func (o *watchedWriter) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		o.failed = true
	}
	return n, err
}

// Main runs one command and returns the exit code of the process.
func Main(s IO, args []string) int {
	surviveClosedPipes()
	k8s.Quiet()
	out := &watchedWriter{w: s.Out}
	s.Out = out
	a := &app{IO: s}
	root := a.root()
	root.SetArgs(args)
	err := root.Execute()
	switch {
	case err == nil, errors.Is(err, errSilent):
	case errors.Is(err, syscall.EPIPE): // whoever read the output has seen enough
		return 128 + int(syscall.SIGPIPE)
	default:
		fmt.Fprintf(s.Err, "assay: error: %v\n", err)
	}
	if exitcode.Of(err) == exitcode.Internal && out.failed {
		return int(exitcode.Error)
	}
	if err == nil && out.failed {
		fmt.Fprintln(s.Err, "assay: error: the output could not be written")
		return int(exitcode.Error)
	}
	return int(exitcode.Of(err))
}

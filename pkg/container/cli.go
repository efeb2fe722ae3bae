// Package container finds and runs the command line of a container engine, docker
// or podman. Engines are never spoken to in another way: what a user may do with the
// command, and how it is configured, holds here as well.
package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"assay/pkg/environ"
	"assay/pkg/exitcode"
	"assay/pkg/phrase"
)

const (
	answerLimit = 20 * time.Second // for an engine to say that it is there
	endGrace    = 10 * time.Second // from SIGTERM to SIGKILL for a command that is not wanted any more
	saidLines   = 6                // of stderr that an error quotes
	saidBytes   = 8 << 10          // of stderr that are kept for that
)

// CLI is the command of a container engine. It is safe for concurrent use.
type CLI struct {
	Name string   // "docker" or "podman"
	Path string   // absolute path of the program
	Env  []string // its environment, KEY=VALUE
}

// Failure is a command that ended with another exit code than 0, or by a signal.
type Failure struct {
	Command string // name and subcommand; never the arguments, which may be private
	Exit    int    // exit code; -1 for a signal
	Said    string // the last lines of stderr, escaped; may be empty
}

func (f *Failure) Error() string {
	if f.Said == "" {
		return fmt.Sprintf("%s ended with exit code %d and said nothing", f.Command, f.Exit)
	}
	return f.Command + ": " + f.Said
}

// Find looks for an engine's command in the PATH of env and asks whether it works:
// want is docker, podman, or for the first of the two that works auto or nothing.
// The error says what was tried and what helps; it has the code INVALID for another
// want, else ERROR.
func Find(ctx context.Context, env []string, want string) (CLI, error) {
	names := []string{"docker", "podman"}
	switch want {
	case "", "auto":
	case "docker", "podman":
		names = []string{want}
	default:
		return CLI{}, exitcode.Errorf(exitcode.Invalid, "there is no container runtime %q: it is docker, podman or auto", phrase.Escape(want))
	}
	var tried []string
	for _, name := range names {
		cli, err := find(ctx, env, name)
		if err == nil {
			return cli, nil
		}
		if ctx.Err() != nil {
			return CLI{}, ctx.Err()
		}
		tried = append(tried, err.Error())
	}
	return CLI{}, exitcode.Errorf(exitcode.Error, "no container runtime works here: %s; install docker or podman, or start the daemon of docker, "+
		"and see that this user may use it", strings.Join(tried, "; "))
}

func find(ctx context.Context, env []string, name string) (CLI, error) {
	for _, dir := range filepath.SplitList(environ.Get(env, "PATH")) {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		cli := CLI{Name: name, Path: path, Env: env}
		ctx, cancel := context.WithTimeout(ctx, answerLimit)
		defer cancel()
		ask := "{{.Server.Version}}" // what the daemon says, not only the program
		if name == "podman" {
			ask = "{{.Client.Version}}"
		}
		_, err = cli.Output(ctx, "version", "--format", ask)
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%s gave no answer within %s", path, phrase.Seconds(answerLimit.Seconds()))
		}
		return cli, err
	}
	return CLI{}, fmt.Errorf("there is no %s in PATH", name)
}

// Output runs a command and returns what it printed to stdout. The error of one that
// failed is a *Failure; when ctx ended first it is that of ctx.
func (c CLI) Output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	said := tail{limit: saidBytes}
	exit, err := c.Run(ctx, nil, &out, &said, args...)
	if err == nil && exit != 0 {
		err = &Failure{Command: c.command(args), Exit: exit, Said: LastLines(said.String(), saidLines)}
	}
	return out.String(), err
}

// Run runs a command with the streams, each of which may be nil. It returns its exit
// code, -1 for a signal, and an error only when it could not be run or ctx ended
// first: then the command and everything in its process group has got SIGTERM, and
// after 10 s SIGKILL.
func (c CLI) Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, args ...string) (exit int, err error) {
	cmd := exec.CommandContext(ctx, c.Path, args...)
	cmd.Env = slices.Clone(c.Env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	// In a group of its own it does not get the interrupt of a terminal, but from here.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endGrace
	err = cmd.Run()
	if ctx.Err() != nil && err != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of the group
		}
		return -1, ctx.Err()
	}
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &ended):
		return ended.ExitCode(), nil
	}
	return -1, fmt.Errorf("%s could not be run: %w", c.command(args), err)
}

func (c CLI) command(args []string) string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return c.Name
	}
	return c.Name + " " + args[0]
}

// LastLines returns the last n lines of a text that are not blank, escaped and on
// one line.
func LastLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(text) {
		// A progress bar overwrites its line; what stands there in the end counts.
		line = strings.TrimRight(line, "\r\n")
		if line = phrase.Line(line[strings.LastIndexByte(line, '\r')+1:]); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// tail keeps the last bytes that were written to it.
type tail struct {
	limit int
	b     []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-t.limit):]...)
	if len(t.b) > 2*t.limit {
		t.b = slices.Clone(t.b[len(t.b)-t.limit:])
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }

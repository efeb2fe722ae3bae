package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"assay/deploy"
	"assay/pkg/environ"
	"assay/pkg/phrase"
)

// commandLimit is how long a command of SLURM's may take. A client that cannot
// reach its controller gives up by itself after 10 to 20 s.
const commandLimit = 30 * time.Second

// tools runs the commands of SLURM. The zero env is an empty environment.
type tools struct {
	env   []string
	limit time.Duration // of one command; 0: commandLimit
	stdin []byte        // of each command
	both  bool          // stderr is part of what a command printed
}

// failure is a command that did not do what it was asked for.
type failure struct {
	command string
	said    string // its own words, on one line
	code    int    // exit code, -1 when it was ended
	late    bool   // it ran past its time limit
	limit   time.Duration
}

func (f *failure) Error() string {
	switch {
	case f.late:
		return fmt.Sprintf("%s gave no answer within %s", f.command, phrase.Seconds(f.limit.Seconds()))
	case f.said != "":
		return f.command + ": " + f.said
	}
	return fmt.Sprintf("%s ended with exit code %d and said nothing", f.command, f.code)
}

// run runs a command and returns what it printed. The error is a *failure, or
// names a tool that is not there.
func (t tools) run(ctx context.Context, extra []string, name string, args ...string) (string, error) {
	path, err := t.find(name)
	if err != nil {
		return "", err
	}
	limit := t.limit
	if limit == 0 {
		limit = commandLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(limited, path, args...)
	cmd.Env = append(t.own(), extra...)
	// A submission must not happen after this process is gone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	// Sites put scripts in front of the commands: what these started goes with them.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(t.stdin), &out, &said
	err = cmd.Run()
	if t.both {
		out.Write(said.Bytes())
	}
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return out.String(), ctx.Err()
	}
	f := &failure{command: name, said: ownWords(name, said.String()), code: -1, limit: limit, late: limited.Err() != nil}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		f.code = exit.ExitCode()
	} else if !f.late {
		f.said = fmt.Sprintf("%s could not be run: %v", path, err)
	}
	return out.String(), f
}

// ownWords is what a command wrote to stderr, on one line and without its own name
// before each part.
func ownWords(name, text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), name+": ")
		if line = strings.TrimPrefix(line, "error: "); line != "" {
			parts = append(parts, phrase.Line(line))
		}
	}
	return strings.Join(parts, "; ")
}

// find looks for a command in the PATH of the environment.
func (t tools) find(name string) (string, error) {
	path := environ.Get(t.env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if full, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return full, nil
		}
	}
	return "", &missingTool{name, path}
}

// missingTool is a command that is not on this machine.
type missingTool struct{ name, path string }

func (e *missingTool) Error() string {
	return fmt.Sprintf("there is no %s in PATH (%s): run on a node that has the commands of SLURM, or load its module", e.name, e.path)
}

// Is says of what kind the error is.
func (e *missingTool) Is(target error) bool {
	return target == deploy.ErrUnavailable || target == deploy.ErrNoTool
}

// own is the environment of the commands: who and where one is, and how SLURM is
// found. SBATCH_* and SLURM_* would change what the commands do.
func (t tools) own() []string {
	var env []string
	for _, kv := range t.env {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "KRB5CCNAME", "SLURM_CONF", "SLURM_CONF_SERVER":
			env = append(env, kv)
		}
	}
	return env
}

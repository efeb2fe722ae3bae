package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultDynamicTimeout = 60 * time.Second
	// maxDynamicOutput bounds what a program may print, in bytes.
	maxDynamicOutput = 64 << 20
	// shownStderr is how much of a program's stderr an error shows, in bytes.
	shownStderr = 2000
)

// dynamic runs a get_models_json program and takes the list that it prints.
func (c *catalog) dynamic(ctx context.Context, o Options, s source) error {
	info, err := os.Stat(filepath.Join(c.root, filepath.FromSlash(s.file)))
	switch {
	case err != nil:
		return fmt.Errorf("%s: the program cannot be read: %w", s.file, reason(err))
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		c.warnings = append(c.warnings, s.file+" was not run: it is not executable (chmod +x, and let it print a JSON list of cards)")
		return nil
	case !o.AllowDynamic:
		c.notRun = append(c.notRun, s.file)
		c.warnings = append(c.warnings, s.file+" was not run; --allow-dynamic runs it")
		return nil
	}
	limit := o.DynamicTimeout
	if limit == 0 {
		limit = defaultDynamicTimeout
	}
	out, err := runProgram(ctx, c.root, s.file, o.Env, limit)
	if err != nil {
		return err
	}
	name := s.file + " (its output)"
	doc, err := DecodeJSON(name, out)
	if err != nil {
		return err
	}
	s.kind = listSource
	before := len(c.entries)
	if err := c.add(source{file: name, scope: s.scope, prefix: s.prefix, kind: s.kind}, doc); err != nil {
		return err
	}
	for i := range c.entries[before:] {
		e := &c.entries[before+i]
		// A line of output is no place that anyone could open later.
		e.File, e.Line, e.Column, e.position = s.file, 0, 0, nil
	}
	return nil
}

// runProgram gives the stdout of a program, run in its own directory with stdin
// closed and in its own process group, all of which ends with the time limit.
func runProgram(ctx context.Context, root, file string, env []string, limit time.Duration) ([]byte, error) {
	full, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	stdout := &limited{max: maxDynamicOutput, full: cancel}
	stderr := &tail{max: shownStderr}
	cmd := exec.CommandContext(ctx, full)
	cmd.Dir, cmd.Env = filepath.Dir(full), env
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = killGroup
	cmd.WaitDelay = time.Second // for pipes that a process outside the group holds open
	if err = cmd.Start(); err == nil {
		awaitExit(cmd.Process.Pid)
		_ = killGroup() // what it left behind; mostly there is nothing
		err = cmd.Wait()
	}
	switch {
	case stdout.over:
		return nil, fmt.Errorf("%s: it printed more than %d bytes", file, maxDynamicOutput)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: it did not end within %s and was killed%s", file, limit, stderr)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: it ended but left a process that holds its output open", file)
	case errors.Is(err, syscall.ENOEXEC):
		return nil, fmt.Errorf("%s: it cannot be run: it has no #! line", file)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: it failed (%w)%s", file, exit, stderr)
	}
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: it cannot be run: the interpreter of its #! line does not exist", file)
		}
		return nil, fmt.Errorf("%s: it cannot be run: %w", file, reason(err))
	}
	return stdout.Bytes(), nil
}

// awaitExit returns when the process has ended and leaves it unreaped, so that
// the id of its group cannot belong to anything else yet.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// limited keeps what is written up to max bytes and calls full when there is more.
type limited struct {
	bytes.Buffer
	max  int
	over bool
	full func()
}

// Write never fails, so that the writer gets no SIGPIPE before it is killed.
func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > l.max {
		l.over = true
		l.full()
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

// ReadFrom hides the one of bytes.Buffer, which knows no limit.
func (l *limited) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{l}, r)
}

// tail keeps the end of what is written.
type tail struct {
	kept []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.max; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// String is the end of a sentence.
func (t *tail) String() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\ufffd"))
	if text == "" {
		return " and wrote nothing to stderr"
	}
	return "; its stderr:\n" + text
}

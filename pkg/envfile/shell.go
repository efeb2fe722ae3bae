package envfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay/pkg/exitcode"
)

// ownPrefix begins the names of the reader's own variables in bash.
const ownPrefix = "__assay_"

// reader is the program that bash runs. $1 is the file, $2 is env. The path is an
// argument, never text of the program. Descriptor 3 takes the result, descriptor
// 4 all variables before the file and, should it fail, after it: they move out of
// the way of a file that uses them, and nothing the file prints can reach them.
// Traces of the file go nowhere. The file is sourced as a plain statement, so that
// its own `set -e` works; whatever it left switched on is switched off before the
// environment is read.
const reader = `exec {__assay_fd}>&3 {__assay_said}>&4 {BASH_XTRACEFD}>/dev/null 3>&- 4>&-
__assay_file=$1 __assay_env=$2
shift 2
declare -p >&"$__assay_said"
printf '\0' >&"$__assay_said"
trap '\builtin declare -p >&"$__assay_said"' EXIT
set -a
. "$__assay_file"
__assay_status=$?
set +aeux
trap - ERR DEBUG RETURN
[ "$__assay_status" -eq 0 ] || \builtin exit "$__assay_status"
trap - EXIT
\builtin exec "$__assay_env" -0 >&"$__assay_fd"
`

// messageLanguage is the variable that makes bash speak English, whatever the
// locale: only messages that are understood can be cleared of values.
const messageLanguage = "LANGUAGE"

// stderrLimit bounds what is kept of bash's messages, in bytes.
const stderrLimit = 4096

// cutSign is in front of messages that were longer.
const cutSign = "…"

// loadShell sources the file and compares the environment before and after.
func loadShell(ctx context.Context, o Options) (Vars, error) {
	out, err := evaluate(ctx, o)
	switch {
	case errors.Is(err, errNoBash):
		return Vars{}, exitcode.Errorf(exitcode.Invalid, "env_file %s: %w; install bash or use env_file_format %q", o.Path, err, FormatDotenv)
	case ctx.Err() != nil:
		return Vars{}, ctx.Err()
	case errors.Is(err, errTimeout):
		return Vars{}, exitcode.Errorf(exitcode.Invalid,
			"env_file %s: not done after %v, so it was ended; it must not wait for anything", o.Path, o.timeout())
	case errors.Is(err, errEnded):
		return Vars{}, exitcode.Errorf(exitcode.Invalid, "env_file %s: %w%s", o.Path, err, explain(o, out))
	case err != nil:
		return Vars{}, fmt.Errorf("env_file %s: %w", o.Path, err)
	}
	return changes(toMap(o.Base), out.after), nil
}

// explain says what bash said, without the values that its variables hold.
func explain(o Options, out outcome) string {
	return quoteBash(o.Path, out.said, newSecrets(o, out.declared))
}

// source runs bash, in a session of its own, and returns the last it wrote to
// stderr. Should ctx end, the process group gets TERM and, after the grace, KILL.
func source(ctx context.Context, o Options, files []*os.File, bash, env string) (string, error) {
	grace := o.Grace
	if grace <= 0 {
		grace = time.Second
	}
	cmd := exec.CommandContext(ctx, bash, "--noprofile", "--norc", "-c", reader, "bash", o.Path, env)
	mark := newMark()
	cmd.Env = append(withoutWithheld(o.Base), messageLanguage+"=C", mark)
	cmd.Dir = o.Dir
	if !isDir(cmd.Dir) {
		cmd.Dir = filepath.Dir(o.Path)
	}
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		return "", errors.Join(err, w.Close())
	}
	_ = w.Close()
	said := make(chan string, 1)
	go func() { said <- lastBytes(r, stderrLimit) }()

	err = cmd.Wait()
	if ctx.Err() != nil || !o.Services { // whoever ignored TERM is not waited for
		endStarted(cmd.Process.Pid, mark)
	}
	// A service of the file may hold the pipe for ever.
	_ = r.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	return <-said, err
}

// memoryFile is an anonymous file: unlike a pipe it needs no reader and no end of
// file, so a daemon that the file started cannot hold up the result.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("assay-env", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	return os.NewFile(uintptr(fd), "assay-env"), nil
}

// findTool looks for a program in the usual places first, so that a file or an
// environment that changes PATH does not matter.
func findTool(name string, env []string) (string, error) {
	dirs := append([]string{"/bin", "/usr/bin"}, filepath.SplitList(toMap(env)["PATH"])...)
	for _, dir := range dirs {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", exitcode.Errorf(exitcode.Invalid, "%s was not found", name)
}

func withoutWithheld(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !withheld(name) {
			out = append(out, kv)
		}
	}
	return out
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lastBytes reads r to its end and returns the last limit bytes, from the
// beginning of a line where there is one, after cutSign when there was more.
func lastBytes(r io.Reader, limit int) string {
	var kept []byte
	cut := false
	buf := make([]byte, limit)
	for {
		n, err := r.Read(buf)
		kept = append(kept, buf[:n]...)
		if len(kept) > limit {
			kept = append(kept[:0], kept[len(kept)-limit:]...)
			cut = true
		}
		if err != nil {
			if _, rest, found := bytes.Cut(kept, []byte("\n")); found && cut {
				kept = rest
			}
			if cut {
				return cutSign + string(kept)
			}
			return string(kept)
		}
	}
}

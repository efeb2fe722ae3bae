package envfile_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay/pkg/envfile"
)

// What the file leaves behind is ended, unless the caller wants it.
func TestServices(t *testing.T) {
	const written = "while [ ! -s \"$PID\" ]; do :; done\n"
	const setsid = "(setsid sh -c 'echo $$ > \"$PID\"; exec sleep 600' >/dev/null 2>&1 </dev/null &); " + written
	for name, text := range map[string]string{
		"background":               "sleep 600 & echo $! > \"$PID\"\n",
		"ignores TERM":             "(trap '' TERM HUP; echo $BASHPID > \"$PID\"; while :; do sleep 1; done) & " + written,
		"job control":              "set -m; sleep 600 & echo $! > \"$PID\"; set +m\n",
		"file fails":               "sleep 600 & echo $! > \"$PID\"; return 1\n",
		"own session":              setsid,
		"own session, file exits":  setsid + "exit 3\n",
		"own session, of a shell":  "(setsid bash -c '(echo $BASHPID > \"$PID\"; while :; do sleep 1; done) & wait' &); " + written,
		"own session, set -a gone": "set +a; " + setsid,
	} {
		for _, services := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "pid")
			vars, _ := envfile.Load(t.Context(), envfile.Options{Path: write(t, "mad.env", text), Base: base("PID=" + path), Services: services})
			pid := readPID(t, path)
			for i := 0; i < 500 && !services && lives(pid); i++ {
				time.Sleep(10 * time.Millisecond)
			}
			if got := lives(pid); got != services {
				t.Errorf("%s: with services %v it lives: %v", name, services, got)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
			if len(vars.Names()) > 0 || len(vars.Unset()) > 0 {
				t.Errorf("%s: variables %s, want none", name, vars)
			}
		}
	}
}

func TestTimeLimitEndsOtherSessions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pid")
	text := "setsid sh -c 'echo $$ > \"$PID\"; exec sleep 600' &\nsleep 50\n"
	_, err := envfile.Load(t.Context(), envfile.Options{
		Path: write(t, "mad.env", text), Base: base("PID=" + path), Timeout: time.Second, Grace: 100 * time.Millisecond,
	})
	if err == nil || !strings.Contains(err.Error(), "not done after 1s") {
		t.Errorf("got %v, want the time limit", err)
	}
	pid := readPID(t, path)
	for i := 0; i < 500 && lives(pid); i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if lives(pid) {
		t.Errorf("process %d of the file still runs", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func lives(pid int) bool { return syscall.Kill(pid, 0) == nil && !zombie(pid) }

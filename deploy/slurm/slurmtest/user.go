package slurmtest

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// User is somebody without privileges.
type User struct {
	Name     string
	UID, GID int
	Home     string // a directory of theirs that every node sees

	c *Cluster
}

// Nobody returns the user nobody of the system, with a home for the length of
// the test. Only root can act as another user.
func (c *Cluster) Nobody() User {
	c.t.Helper()
	if os.Geteuid() != 0 {
		c.t.Fatal("only root can act as another user: run the tests as root")
	}
	known, err := user.Lookup("nobody")
	if err != nil {
		c.t.Fatal(err)
	}
	u := User{Name: known.Username, c: c}
	if u.UID, err = strconv.Atoi(known.Uid); err != nil {
		c.t.Fatal(err)
	}
	if u.GID, err = strconv.Atoi(known.Gid); err != nil {
		c.t.Fatal(err)
	}
	u.Home = c.SharedDir()
	if err := os.Chown(u.Home, u.UID, u.GID); err != nil {
		c.t.Fatal(err)
	}
	return u
}

// SharedDir makes an empty directory for the length of the test that every user
// can reach under the same path on every node; that of testing.T is the test's own.
func (c *Cluster) SharedDir() string {
	c.t.Helper()
	base := filepath.Join(c.Dir, "shared")
	if err := os.MkdirAll(base, 0o755); err != nil {
		c.t.Fatal(err)
	}
	dir, err := os.MkdirTemp(base, "")
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Command prepares a command of this user, in their home and with their
// environment.
func (u User) Command(name string, args ...string) *exec.Cmd {
	cmd := u.c.Command(name, args...)
	cmd.Dir = u.Home
	cmd.Env = append(withoutUser(cmd.Env), "HOME="+u.Home, "USER="+u.Name, "LOGNAME="+u.Name, "PWD="+u.Home, "TMPDIR="+u.Home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}}
	return cmd
}

// Run runs a command of this user that must succeed and returns its stdout
// without the last line end.
func (u User) Run(name string, args ...string) string {
	u.c.t.Helper()
	out, err := output(u.Command(name, args...))
	if err != nil {
		u.c.t.Fatal(err)
	}
	return out
}

// Sbatch submits a script as this user and returns the id of the job.
func (u User) Sbatch(script string, args ...string) string {
	u.c.t.Helper()
	return u.c.sbatch(u.Command("sbatch", append([]string{"--parsable"}, args...)...), script)
}

func withoutUser(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		switch key, _, _ := strings.Cut(kv, "="); key {
		case "HOME", "USER", "LOGNAME", "MAIL", "PWD", "OLDPWD", "TMPDIR", "XDG_RUNTIME_DIR":
		default:
			kept = append(kept, kv)
		}
	}
	return kept
}

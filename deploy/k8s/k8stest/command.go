package k8stest

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// limit ends a command that hangs. What ctl does has limits of its own, which come
// first and say what did not come up.
const limit = 10 * time.Minute

// Try runs kubectl as an administrator and returns its stdout without the last line
// end. The error has the command and its stderr.
func (c *Cluster) Try(args ...string) (string, error) {
	return c.kubectl("", args...)
}

// Kubectl is Try for a command that must succeed.
func (c *Cluster) Kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.Try(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// Apply makes the objects of a YAML stream in a namespace.
func (c *Cluster) Apply(namespace, yaml string) {
	c.t.Helper()
	if _, err := c.kubectl(yaml, "--namespace", namespace, "apply", "--filename", "-"); err != nil {
		c.t.Fatal(err)
	}
}

// Await waits until done says so, and fails the test when that takes too long.
func (c *Cluster) Await(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(Patience); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("within %s not so: %s", Patience, what)
		}
	}
}

// kubectl is the one that was built with the cluster, because the machine's own may
// be too old or too new for it.
func (c *Cluster) kubectl(stdin string, args ...string) (string, error) {
	return c.run(stdin, filepath.Join(c.Dir, "bin", "kubectl"), args...)
}

// run goes on when the test has ended, for what is cleaned up then.
func (c *Cluster) run(stdin, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = c.Env()
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = &commandError{filepath.Base(name) + " " + strings.Join(args, " "), err, strings.TrimSpace(stderr.String())}
	}
	return strings.TrimSuffix(stdout.String(), "\n"), err
}

// commandError is the failure of a command, with what it said.
type commandError struct {
	command string
	err     error
	stderr  string
}

func (e *commandError) Error() string { return e.command + ": " + e.err.Error() + ": " + e.stderr }

func (e *commandError) Unwrap() error { return e.err }

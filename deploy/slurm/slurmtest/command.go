package slurmtest

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"time"
)

// limit ends a command of SLURM that hangs. A client waits for a controller that
// is away for up to 20 s.
const limit = time.Minute

// Command prepares a command that uses this cluster.
func (c *Cluster) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(c.t.Context()), name, args...)
	cmd.Env = c.Env()
	return cmd
}

// Try runs a command and returns its stdout without the last line end. The error
// has the command and its stderr.
func (c *Cluster) Try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = c.Env()
	return output(cmd)
}

// Run is Try for a command that must succeed.
func (c *Cluster) Run(name string, args ...string) string {
	c.t.Helper()
	out, err := c.Try(name, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// Scontrol runs scontrol, as an administrator when the tests are run by root.
func (c *Cluster) Scontrol(args ...string) string { c.t.Helper(); return c.Run("scontrol", args...) }

// Squeue runs squeue without its header.
func (c *Cluster) Squeue(args ...string) string {
	c.t.Helper()
	return c.Run("squeue", append([]string{"--noheader"}, args...)...)
}

// Sacct runs sacct with fields separated by | and without its header.
func (c *Cluster) Sacct(args ...string) string {
	c.t.Helper()
	return c.Run("sacct", append([]string{"--noheader", "--parsable2"}, args...)...)
}

// Sbatch submits a script and returns the id of the job.
func (c *Cluster) Sbatch(script string, args ...string) string {
	c.t.Helper()
	return c.sbatch(c.Command("sbatch", append([]string{"--parsable"}, args...)...), script)
}

func (c *Cluster) sbatch(cmd *exec.Cmd, script string) string {
	c.t.Helper()
	cmd.Stdin = strings.NewReader(script)
	out, err := output(cmd)
	if err != nil {
		c.t.Fatal(err)
	}
	id, _, _ := strings.Cut(out, ";") // ID[;CLUSTER]
	return id
}

// JobState returns what the controller says of a job, one word such as RUNNING;
// empty when it does not know the job, or no longer.
func (c *Cluster) JobState(id string) string {
	out, err := c.Try("squeue", "--noheader", "--states=all", "--jobs="+id, "--format=%T")
	if err != nil {
		return ""
	}
	return out
}

// NodeState returns the state of a node in lower case, with every flag that it has:
// "idle", "down+not_responding". (sinfo shows one word, and which of several it
// shows depends on the flags.)
func (c *Cluster) NodeState(node string) string {
	c.t.Helper()
	for word := range strings.FieldsSeq(c.Scontrol("show", "node", node)) {
		if state, is := strings.CutPrefix(word, "State="); is {
			return strings.ToLower(state)
		}
	}
	c.t.Fatalf("scontrol shows no state of %s", node)
	return ""
}

// Token makes a JWT with which a user may talk to slurmrestd.
func (c *Cluster) Token(user string, life time.Duration) string {
	c.t.Helper()
	out := c.Scontrol("token", "username="+user, "lifespan="+seconds(life))
	token, ok := strings.CutPrefix(out, "SLURM_JWT=")
	if !ok {
		c.t.Fatalf("scontrol token printed %q", out)
	}
	return token
}

// Await waits until done says so, and fails the test when that takes too long.
func (c *Cluster) Await(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(Patience); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("within %s not so: %s\n%s", Patience, what, c.ctlOutput("logs", "15"))
		}
	}
}

func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = &commandError{strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String())}
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

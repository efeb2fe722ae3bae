package slurmtest

import (
	"os/exec"
	"strconv"
	"time"
)

// The daemons beside the nodes.
const (
	Slurmctld  = "slurmctld"
	Slurmdbd   = "slurmdbd"
	Slurmrestd = "slurmrestd"
)

// StartDaemon starts a daemon, or the slurmd of a node, that is not running, and
// waits until it answers.
func (c *Cluster) StartDaemon(name string) { c.t.Helper(); c.ctl("start", name) }

// StopDaemon ends a daemon in good order; the jobs of a node go on without their
// slurmd. It runs again at the end of the test.
func (c *Cluster) StopDaemon(name string) { c.t.Helper(); c.away("stop", name) }

// KillDaemon ends a daemon without warning. It runs again at the end of the test.
func (c *Cluster) KillDaemon(name string) { c.t.Helper(); c.away("kill", name) }

// KillNode lets a node die: its slurmd, its slurmstepds and all that they
// started. It runs again at the end of the test.
func (c *Cluster) KillNode(name string) { c.t.Helper(); c.away("kill", name) }

func (c *Cluster) away(how, name string) {
	c.t.Helper()
	c.t.Cleanup(func() { c.ctl("start", name) })
	c.ctl(how, name)
}

func (c *Cluster) ctl(args ...string) {
	c.t.Helper()
	if out, err := c.ctlCommand(args...).CombinedOutput(); err != nil {
		c.t.Fatalf("ctl %v: %v\n%s", args, err, out)
	}
}

func (c *Cluster) ctlOutput(args ...string) string {
	out, _ := c.ctlCommand(args...).CombinedOutput()
	return string(out)
}

func (c *Cluster) ctlCommand(args ...string) *exec.Cmd {
	return exec.Command(script("ctl"), append([]string{c.Dir}, args...)...)
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

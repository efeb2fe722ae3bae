package k8stest

import "strconv"

// The daemons of the cluster.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	Containerd        = "containerd"
	CoreDNS           = "coredns"
)

// Ctl runs a command of testdata/clusters/k8s/ctl and returns its stdout.
func (c *Cluster) Ctl(args ...string) string {
	c.t.Helper()
	out, err := c.run("", script("ctl"), append([]string{c.Dir}, args...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// StartDaemon starts a daemon that is not running, and waits until it answers.
func (c *Cluster) StartDaemon(name string) { c.t.Helper(); c.Ctl("start", name) }

// StopDaemon ends a daemon in good order; containers go on. It runs again at the end
// of the test. Tests that use it are not parallel to others.
func (c *Cluster) StopDaemon(name string) { c.t.Helper(); c.away("stop", name) }

// KillDaemon ends a daemon without warning; containers go on. It runs again at the
// end of the test. Tests that use it are not parallel to others.
func (c *Cluster) KillDaemon(name string) { c.t.Helper(); c.away("kill", name) }

func (c *Cluster) away(how, name string) {
	c.t.Helper()
	c.t.Cleanup(func() { c.Ctl("start", name) })
	c.Ctl(how, name)
}

// SetGPUs has the node claim a number of nvidia.com/gpu until the end of the test,
// or until its kubelet starts again. Tests that use it are not parallel to others.
func (c *Cluster) SetGPUs(n int) {
	c.t.Helper()
	c.t.Cleanup(func() { c.Ctl("gpus", "0") })
	c.Ctl("gpus", strconv.Itoa(n))
}

// JobSet installs the JobSet controller, when it is not there, and waits until it
// answers.
func (c *Cluster) JobSet() { c.t.Helper(); c.Ctl("jobset") }

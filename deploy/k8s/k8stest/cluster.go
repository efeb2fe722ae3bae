// Package k8stest gives tests a real Kubernetes: the cluster that
// testdata/clusters/k8s/up started around them. Tests that need it carry the build
// tag k8s and are named TestK8s…; `make test-k8s` runs them. A cluster that is not
// there fails a test, and never skips it.
package k8stest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The environment variables that `up` prints.
const (
	EnvConfig = "KUBECONFIG"     // kubeconfig of an administrator
	EnvDir    = "ASSAY_TEST_K8S" // the directory of the cluster
)

// The images that the cluster has; it reaches no registry.
const (
	ImageTestbox = "localhost/testbox:1"         // busybox and bash
	ImageSay     = "localhost/say:1"             // /say, a static program, and no shell
	ImageEmpty   = "localhost/empty:1"           // no file at all
	ImageHostbox = "localhost/hostbox:1"         // wants the machine's /usr as a hostPath, and has all programs of it then
	ImageRunner  = "localhost/assay-runner:test" // /assay, the program under test
)

// Node is the name of the one node.
const Node = "node1"

// Patience is how long a test waits for what Kubernetes does in the background. A
// node without its kubelet is not ready after 50 s.
const Patience = 90 * time.Second

// Cluster is a Kubernetes of one node on this machine. Its methods fail the test
// of which it was asked.
type Cluster struct {
	Dir        string // where it lies
	Kubeconfig string // of an administrator

	t testing.TB
}

// Open returns the cluster that the environment of the test names. All tests share
// it: each works in namespaces of its own, and who stops a daemon starts it again.
func Open(t testing.TB) *Cluster {
	t.Helper()
	c, err := fromEnv(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	c.t = t
	return c
}

// In returns the cluster for a subtest, which is then the one that fails.
func (c *Cluster) In(t testing.TB) *Cluster {
	in := *c
	in.t = t
	return &in
}

// fromEnv reads what `up` exported.
func fromEnv(environ []string) (*Cluster, error) {
	value := func(key string) string {
		for _, kv := range environ {
			if v, ok := strings.CutPrefix(kv, key+"="); ok {
				return v
			}
		}
		return ""
	}
	c := &Cluster{Dir: value(EnvDir), Kubeconfig: value(EnvConfig)}
	if c.Dir == "" || c.Kubeconfig == "" {
		return nil, fmt.Errorf("this test needs a Kubernetes cluster, and %s or %s is not set: run `make test-k8s`, "+
			"or start one with eval \"$(testdata/clusters/k8s/up DIR)\"", EnvDir, EnvConfig)
	}
	return c, nil
}

// Env returns an environment for a process that is to use this cluster: that of the
// test, without anything that would lead a client to another.
func (c *Cluster) Env() []string {
	return append(withoutKubernetes(os.Environ()), EnvConfig+"="+c.Kubeconfig, EnvDir+"="+c.Dir)
}

func withoutKubernetes(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "KUBE") && !strings.HasPrefix(kv, EnvDir+"=") {
			kept = append(kept, kv)
		}
	}
	return kept
}

// script is the path of a script of testdata/clusters/k8s.
func script(name string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "testdata", "clusters", "k8s", name)
}

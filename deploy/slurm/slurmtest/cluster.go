// Package slurmtest gives tests a real SLURM: the cluster that
// testdata/clusters/slurm/up started around them, or one of their own. Tests that
// need it carry the build tag slurm and are named TestSlurm…; `make test-slurm`
// runs them. A cluster that is not there fails a test, and never skips it.
package slurmtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The environment variables that `up` prints.
const (
	EnvConf = "SLURM_CONF"       // slurm.conf of the cluster
	EnvREST = "SLURM_REST"       // URL of slurmrestd
	EnvDir  = "ASSAY_TEST_SLURM" // the directory of the cluster
)

// Patience is how long a test waits for what SLURM does in the background. A
// node that died is down after about 25 s.
const Patience = 90 * time.Second

// Cluster is a SLURM on this machine with four nodes, node1 to node4, unless its
// options say otherwise. Its methods fail the test of which it was asked.
type Cluster struct {
	Dir  string // where it lies
	Conf string // its slurm.conf
	REST string // URL of its slurmrestd, without a path

	t testing.TB
}

// Open returns the cluster that the environment of the test names. All tests
// share it: who stops a daemon starts it again.
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

// Start starts a cluster for one test and ends it with the test. The options are
// those of `up`, such as CGROUP=1 and ACCOUNTING=none.
func Start(t testing.TB, options map[string]string) *Cluster {
	t.Helper()
	c := &Cluster{Dir: newDir(t), t: t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the daemons' logs end so:\n%s", c.ctlOutput("logs", "15"))
		}
		if out, err := exec.Command(script("down"), c.Dir, "--purge").CombinedOutput(); err != nil {
			t.Errorf("down %s: %v\n%s", c.Dir, err, out)
		}
	})
	up := exec.Command(script("up"), c.Dir)
	up.Env = append(withoutSlurm(os.Environ()), unset...)
	for k, v := range options {
		up.Env = append(up.Env, k+"="+v)
	}
	var stderr bytes.Buffer
	up.Stderr = &stderr
	out, err := up.Output()
	if err != nil {
		t.Fatalf("up %s: %v\n%s", c.Dir, err, &stderr)
	}
	started, err := fromEnv(strings.Split(strings.ReplaceAll(string(out), "export ", ""), "\n"))
	if err != nil {
		t.Fatalf("up %s printed %q: %v", c.Dir, out, err)
	}
	c.Conf, c.REST = started.Conf, started.REST
	return c
}

// unset are the options of `up`; those of the shared cluster are not inherited.
var unset = []string{"NODES=", "CPUS=", "MEM=", "PORT=", "CGROUP=", "ACCOUNTING=", "GPUS=", "CONF="}

// newDir makes a directory with a short path, because sockets lie in it. Below
// the shared cluster, where there is one, its end ends this one too.
func newDir(t testing.TB) string {
	t.Helper()
	base := os.TempDir()
	if shared := os.Getenv(EnvDir); shared != "" {
		base = filepath.Join(shared, "more")
		if err := os.MkdirAll(base, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp(base, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir
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
	c := &Cluster{Dir: value(EnvDir), Conf: value(EnvConf), REST: value(EnvREST)}
	if c.Dir == "" || c.Conf == "" || c.REST == "" {
		return nil, fmt.Errorf("this test needs a SLURM cluster, and %s, %s or %s is not set: run `make test-slurm`, "+
			"or start one with eval \"$(testdata/clusters/slurm/up DIR)\"", EnvDir, EnvConf, EnvREST)
	}
	return c, nil
}

// Env returns an environment for a process that is to use this cluster: that of
// the test, without anything of another cluster or of an allocation.
func (c *Cluster) Env() []string {
	return append(withoutSlurm(os.Environ()), EnvConf+"="+c.Conf, EnvREST+"="+c.REST, EnvDir+"="+c.Dir)
}

func withoutSlurm(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "SLURM") && !strings.HasPrefix(kv, "SBATCH_") && !strings.HasPrefix(kv, "SQUEUE_") &&
			!strings.HasPrefix(kv, "SACCT_") && !strings.HasPrefix(kv, EnvDir+"=") {
			kept = append(kept, kv)
		}
	}
	return kept
}

// script is the path of a script of testdata/clusters/slurm.
func script(name string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "testdata", "clusters", "slurm", name)
}

package k8stest

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Namespace makes a namespace for the length of the test, in which pods can start at
// once. When the test fails, its log has what was in it.
func (c *Cluster) Namespace() string {
	c.t.Helper()
	name := newName(c.t.Name())
	c.Kubectl("create", "namespace", name)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.describe(name)
		}
		c.remove(name)
	})
	// Pods are refused before their service account is there.
	c.Kubectl("--namespace", name, "wait", "--for=create", "serviceaccount/default", "--timeout=60s")
	return name
}

// remove begins to delete a namespace. Its pods get one second rather than their
// grace period, because the tests after this one need what they hold.
func (c *Cluster) remove(namespace string) {
	for _, args := range [][]string{
		{"delete", "namespace", namespace, "--wait=false", "--ignore-not-found"},
		{"--namespace", namespace, "delete", "pods", "--all", "--wait=false", "--grace-period=1"},
	} {
		if _, err := c.Try(args...); err != nil {
			c.t.Error(err)
		}
	}
}

func (c *Cluster) describe(namespace string) {
	for _, args := range [][]string{
		{"get", "jobs,pods,events", "--output", "wide"},
		{"get", "pods", "--output", "jsonpath={range .items[*]}{.metadata.name}: {.status}{\"\\n\"}{end}"},
	} {
		out, err := c.Try(append([]string{"--namespace", namespace}, args...)...)
		if err != nil {
			out = err.Error()
		}
		c.t.Logf("kubectl %s\n%s", strings.Join(args[:2], " "), out)
	}
}

// ServiceAccountConfig writes a kubeconfig of a service account, whose context has
// its namespace, and returns the path. The token in it lasts as long as said, at
// least 10 s; one of less than ten minutes may last up to 10 s longer.
func (c *Cluster) ServiceAccountConfig(namespace, account string, life time.Duration) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	config := c.Ctl("kubeconfig", namespace, account, seconds(life))
	if err := os.WriteFile(path, []byte(config+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// Token returns a token of a service account, that lasts as ServiceAccountConfig says.
func (c *Cluster) Token(namespace, account string, life time.Duration) string {
	c.t.Helper()
	return c.Ctl("token", namespace, account, seconds(life))
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// newName makes a name of a namespace that tells the test, and is new.
func newName(test string) string {
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(test, "TestK8s")), "-")
	var id [3]byte
	_, _ = rand.Read(id[:]) // it never fails
	return strings.TrimRight("t-"+strings.Trim(name[:min(len(name), 40)], "-"), "-") + "-" + hex.EncodeToString(id[:])
}

//go:build k8s

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"assay/deploy/k8s/k8stest"
	"assay/pkg/exitcode"
	"assay/pkg/verdict"
)

func TestK8sCancel(t *testing.T) {
	t.Parallel()
	t.Run("while it runs", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.manifest(nil, 2, workload{name: "t", script: arrive})
		r := s.startRun()
		s.awaitArrived("t", 2)
		r.interrupt(syscall.SIGINT)
		r.wait().exits(exitcode.Interrupted).reason("CANCELLED", "SIGINT")
		s.gone()
		again := s.assay("collect", "r", "--json").want(verdict.Error)
		again.reason("CANCELLED", "SIGINT")
	})
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(map[string]any{"node_selector": map[string]any{"assay/nowhere": "yes"}}, 2, workload{name: "t", script: figure})
		r := s.startRun()
		s.eventually("the job to wait", func() bool { return s.jobObject() != "" })
		r.interrupt(syscall.SIGTERM)
		r.wait().exits(exitcode.Terminated).reason("CANCELLED", "SIGTERM")
		s.gone()
	})
	t.Run("by another process, twice", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.manifest(nil, 2, workload{name: "t", script: arrive})
		r := s.startRun()
		s.awaitArrived("t", 2)
		s.assay("cancel", "r").exits(exitcode.Pass)
		s.assay("cancel", "r").exits(exitcode.Pass)
		r.wait().want(verdict.Error).reason("CANCELLED")
		s.assay("cancel", "r").exits(exitcode.Pass)
		s.gone()
	})
	t.Run("after the figure", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.gated()
		s.manifest(nil, 2, workload{name: "t", script: figure + "; " + arrive})
		r := s.startRun()
		s.awaitArrived("t", 2)
		r.interrupt(syscall.SIGINT)
		r.wait().exits(exitcode.Interrupted)
		// What was measured is measured, and everything else is a warning.
		res := s.assay("collect", "r", "--json").want(verdict.Pass)
		res.warning("CANCELLED")
		s.gone()
	})
	t.Run("after the end", func(t *testing.T) {
		t.Parallel()
		s := newK8sSite(t)
		s.manifest(nil, 2, workload{name: "t", script: figure})
		first := s.runJSON().want(verdict.Pass).clean()
		s.assay("cancel", "r").exits(exitcode.Pass)
		if again := s.assay("collect", "r", "--json"); again.stdout != first.stdout {
			t.Errorf("after the cancel it is\n%s\nnot\n%s", again.stdout, first.stdout)
		}
	})
}

// A job whose run directory is gone is found by gc and ended.
func TestK8sLostRunDirectory(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.env["KUBECONFIG"] = s.configIn(s.namespace)
	s.gated()
	s.manifest(nil, 2, workload{name: "t", script: arrive})
	r := s.startRun()
	s.awaitArrived("t", 2)
	r.kill()
	if err := os.RemoveAll(filepath.Join(s.dir, "runs")); err != nil {
		t.Fatal(err)
	}
	if r := s.assay("gc"); !strings.Contains(r.stdout, s.jobObject()) {
		t.Errorf("gc does not name the job: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if s.jobObject() == "" {
		t.Error("gc ended a job that it was not told to end")
	}
	s.assay("gc", "--cancel").exits(exitcode.Pass)
	s.gone()
}

// configIn writes an administrator's kubeconfig whose context has a namespace.
func (s *k8sSite) configIn(namespace string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "kubeconfig")
	data, err := os.ReadFile(s.Kubeconfig)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(s.Dir, "bin", "kubectl"), "--kubeconfig", path, "config", "set-context", "--current", "--namespace", namespace)
	cmd.Env = []string{k8stest.EnvConfig + "=" + path}
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return path
}

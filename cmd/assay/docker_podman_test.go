//go:build docker

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"assay/pkg/verdict"
)

// usePodman makes the site's containers podman's, which keeps them below a directory
// of the site, and pulls from the registry of the tests.
func (s *dockerSite) usePodman() {
	s.t.Helper()
	if _, err := exec.LookPath("podman"); err != nil {
		s.t.Fatal("there is no podman: install the packages of testdata/clusters/docker/packages")
	}
	dir := s.t.TempDir()
	registry, _, _ := strings.Cut(s.image, "/")
	for name, text := range map[string]string{
		"storage.conf":    fmt.Sprintf("[storage]\ndriver = \"vfs\"\nrunroot = %q\ngraphroot = %q\n", dir+"/run", dir+"/root"),
		"registries.conf": fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", registry),
		// crun refuses a mixture of cgroups, and no journal is asked for.
		"containers.conf": "[engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n[containers]\nlog_driver = \"k8s-file\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	s.env["CONTAINERS_STORAGE_CONF"] = dir + "/storage.conf"
	s.env["CONTAINERS_REGISTRIES_CONF"] = dir + "/registries.conf"
	s.env["CONTAINERS_CONF"] = dir + "/containers.conf"
	s.t.Cleanup(func() {
		if left := s.tool("podman", "ps", "--all", "--quiet"); left != "" {
			s.t.Errorf("podman has containers left: %s", left)
			s.tool("podman", "rm", "--force", "--all")
		}
		s.tool("podman", "rmi", "--all", "--force")
	})
}

// TestDockerRunPodman runs ranks with podman: what passes, what fails, what is
// cancelled, and what its wrapper leaves.
func TestDockerRunPodman(t *testing.T) {
	s := newDockerSite(t)
	s.usePodman()
	// It asks for higher limits than a machine may allow.
	limits := map[string]any{"additional_docker_run_options": "--ulimit nofile=1024:1024 --ulimit nproc=4096:4096"}
	podman := deployment{"container_runtime": "podman", "env_file": "env.sh"}
	s.write("env.sh", "export A='s3cret\nx' B='  y  ' C='\"z\"' D=$'\\xff'\n", 0o600)
	s.box(podman, workload{"m", `printf '%s|%s|%s|%s' "$A" "$B" "$C" "$D" > "$ASSAY_RESULTS_DIR/environ"
[ "$RANK" != 0 ] || echo "performance: 2 x"`, map[string]any{"additional_docker_run_options": "--ulimit nofile=1024:1024 --ulimit nproc=4096:4096", "distributed": twoRanks()["distributed"]}})
	s.runJSON().want(verdict.Pass)
	if got, err := os.ReadFile(s.rankFile("m", 1, "results/environ")); err != nil || string(got) != "s3cret\nx|  y  |\"z\"|\xff" {
		t.Errorf("the environment arrived as %q (%v)", got, err)
	}
	s.noSecrets()
	s.again()

	s.box(podman, workload{"m", "exit 3", limits})
	s.runJSON().want(verdict.Fail).reason("RANK_EXIT", "exited 3")
	s.again()

	s.box(podman, workload{"m", "exec tail /dev/zero", map[string]any{"additional_docker_run_options": "--ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --memory 64m --memory-swap 64m"}})
	s.runJSON().want(verdict.Fail).reason("RANK_SIGNAL", "SIGKILL", "the container ran out of memory (limit 64 MiB)")
	s.again()

	s.box(podman, workload{"m", s.untilGo(""), limits})
	r := s.startRun()
	s.awaitFile("m", 0, "results/there")
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	r.wait().reason("CANCELLED", "SIGINT")
	s.again()

	r = s.startRun()
	s.awaitFile("m", 0, "results/there")
	killWrapper(t, s.attempt("m", 1))
	s.goOn()
	r.wait().want(verdict.NoMetric)
	if res := s.assay("gc", "--cancel"); !strings.Contains(res.stdout, "has been removed") {
		t.Errorf("gc --cancel says %s%s", res.stdout, res.stderr)
	}
}

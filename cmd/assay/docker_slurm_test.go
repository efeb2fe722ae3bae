//go:build docker

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/rundir"
	"assay/pkg/verdict"
)

// TestDockerSlurm runs ranks in containers on the four nodes of a SLURM.
func TestDockerSlurm(t *testing.T) {
	s := newDockerSite(t)
	s.startSlurm()
	on := func(more deployment) deployment {
		d := deployment{"target": "slurm", "slurm": map[string]any{"partition": "main", "nodes": 4, "time": "5"}}
		for k, v := range more {
			d[k] = v
		}
		return d
	}
	s.write("env.sh", "export SECRET='s3cret\nx'\n", 0o600)
	s.box(on(deployment{"env_file": "env.sh"}), workload{"m", `echo "node=$SLURMD_NODENAME rank=$RANK of=$WORLD_SIZE token=${SLURM_JWT-none}"
[ "$SECRET" = "s3cret
x" ] || exit 9
[ "$RANK" != 0 ] || echo "performance: 4 x"`, nil})
	s.runJSON().want(verdict.Pass)
	nodes := map[string]bool{}
	for rank := range 4 {
		out, err := os.ReadFile(s.rankFile("m", rank, rundir.StdoutFile))
		if err != nil || !strings.Contains(string(out), "of=4 token=none") {
			t.Errorf("rank %d wrote %q (%v)", rank, out, err)
		}
		node, _, _ := strings.Cut(string(out), " ")
		nodes[node] = true
	}
	if len(nodes) != 4 {
		t.Errorf("the ranks ran on %v", nodes)
	}
	s.again()

	s.box(on(nil), workload{"m", `[ "$RANK" != 2 ] || exit 3`, nil})
	s.runJSON().want(verdict.Fail).reason("RANK_EXIT", "rank 2", "exited 3")
	s.again()

	s.box(on(deployment{"built_images": map[string]any{"docker_image": "127.0.0.1:1/nothing", "docker_sha": nil}}), workload{"m", "true", nil})
	s.runJSON().want(verdict.Error).reason("IMAGE", "on node", "could not be pulled")
	s.again()

	s.box(on(nil), workload{"m", s.untilGo(""), nil})
	r := s.startRun()
	for rank := range 4 {
		s.awaitFile("m", rank, "results/there")
	}
	if res := s.assay("cancel", "r"); res.code != 0 {
		t.Fatalf("cancel: %s", res.stderr)
	}
	r.wait().reason("CANCELLED", "assay cancel")
	s.eventually("the end of the containers", func() bool { return len(s.containers()) == 0 })

	found := s.assay("check", "-m", "m.json", "--on-node", "--json")
	if !strings.Contains(found.stdout, "has what runs containers (docker)") {
		t.Errorf("check says %s%s", found.stdout, found.stderr)
	}
}

// again takes the run "r" away.
func (s *dockerSite) again() {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.dir, "runs", "r")); err != nil {
		s.t.Fatal(err)
	}
}

// startSlurm starts a SLURM for the site alone.
func (s *dockerSite) startSlurm() {
	s.t.Helper()
	scripts := filepath.Join("..", "..", "testdata", "clusters", "slurm")
	dir, err := os.MkdirTemp("", "assay-slurm-")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if out, err := exec.Command(filepath.Join(scripts, "down"), dir, "--purge").CombinedOutput(); err != nil {
			s.t.Errorf("the cluster in %s: %v: %s", dir, err, out)
		}
	})
	up := exec.Command(filepath.Join(scripts, "up"), dir)
	up.Stderr = os.Stderr
	out, err := up.Output()
	if err != nil {
		s.t.Fatalf("the cluster in %s could not be started: %v", dir, err)
	}
	for line := range strings.Lines(string(out)) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "="); ok {
			s.env[name] = value
		}
	}
	if s.env["SLURM_CONF"] == "" {
		s.t.Fatalf("the cluster says %s", out)
	}
}

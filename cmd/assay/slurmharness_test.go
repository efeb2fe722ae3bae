//go:build slurm

package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"assay/deploy/slurm/slurmtest"
	"assay/pkg/evidence"
	"assay/pkg/rundir"
)

// staticAssay builds the static binary of this tree once for all tests: a node
// runs it as it is. It returns its path, in the directory of the cluster that the
// tests share and end with.
var staticAssay = sync.OnceValues(func() (string, error) {
	shared := os.Getenv(slurmtest.EnvDir)
	if shared == "" {
		return "", errors.New("there is no cluster: " + slurmtest.EnvDir + " is not set; run the tests under testdata/clusters/slurm/with")
	}
	dir, err := os.MkdirTemp(shared, "assay-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it too
		return "", err
	}
	bin := filepath.Join(dir, "assay")
	cmd := exec.Command("go", "build", "-o", bin, "assay/cmd/assay")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return bin, nil
})

// newSite makes a site whose assay talks to the cluster that env names, as
// KEY=VALUE lines such as "SLURM_CONF=…", which win over the environment of the
// tests. Without SLURM_CONF anywhere the test fails: it needs a cluster.
func newSite(t *testing.T, env ...string) *site {
	t.Helper()
	bin, err := staticAssay()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: t.TempDir(), bin: bin, env: map[string]string{"NO_COLOR": "1"}}
	for _, name := range []string{"PATH", "HOME", "USER", "SLURM_CONF"} {
		if v, set := os.LookupEnv(name); set {
			s.env[name] = v
		}
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		s.env[name] = value
	}
	if s.env["SLURM_CONF"] == "" {
		t.Fatal("there is no cluster: SLURM_CONF is not set; run the tests under testdata/clusters/slurm/with")
	}
	return s
}

// manifest writes m.json, a manifest of bare entries for SLURM. slurm wins over the
// block that it begins with: partition main, 2 nodes, 5 minutes. A nil value takes
// a key out.
func (s *site) manifest(slurm map[string]any, workloads ...workload) {
	s.t.Helper()
	block := map[string]any{"partition": "main", "nodes": 2, "time": "5"}
	maps.Copy(block, slurm)
	maps.DeleteFunc(block, func(_ string, v any) bool { return v == nil })
	images, models := map[string]any{}, map[string]any{}
	for _, e := range workloads {
		images[e.name] = map[string]any{"docker_image": nil}
		m := map[string]any{"name": e.name, "command": []string{"bash", "-c", e.script}}
		maps.Copy(m, e.model)
		models[e.name] = m
	}
	data, err := json.MarshalIndent(map[string]any{
		"built_images": images, "built_models": models, "context": map[string]any{},
		"deployment_config": map[string]any{"target": "slurm", "slurm": block},
	}, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "m.json"), data, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// begun waits until ranks of a job have left their begin, and the scheduler has
// given it an id, which it returns.
func (s *site) begun(job string, attempt int, ranks ...int) (id string) {
	s.t.Helper()
	dir := s.attempt(job, attempt)
	for _, n := range ranks {
		path := filepath.Join(rundir.RankDir(dir, n), rundir.BeginFile)
		s.eventually("the begin of a rank, "+path, func() bool { return exists(path) })
	}
	s.eventually("the handle of job "+job, func() bool {
		l, err := rundir.ReadLaunch(s.attempt(job, 1))
		if err != nil || l.Handle == nil {
			return false
		}
		id = l.Handle.ID
		return true
	})
	return id
}

// nodeOf is SLURM's name of the node of a rank, as its begin says.
func (s *site) nodeOf(job string, attempt, rank int) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(rundir.RankDir(s.attempt(job, attempt), rank), rundir.BeginFile))
	if err != nil {
		s.t.Fatal(err)
	}
	var b evidence.Begin
	if err := json.Unmarshal(data, &b); err != nil {
		s.t.Fatal(err)
	}
	return b.Node
}

//go:build docker

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

	"assay/pkg/rundir"
)

// runnable is what tests of ranks in containers share: the static binary of this
// tree, and an image FROM scratch in the registry.
type runnable struct {
	bin    string
	image  string // name in the registry
	digest string // there
	id     string
}

// makeRunnable makes it once, in the directory of the engine that tests end with.
var makeRunnable = sync.OnceValues(func() (runnable, error) {
	shared, registry := os.Getenv("ASSAY_TEST_DOCKER"), os.Getenv("ASSAY_TEST_REGISTRY")
	if shared == "" || registry == "" {
		return runnable{}, errors.New("there is no Docker Engine: ASSAY_TEST_DOCKER is not set; run the tests under testdata/clusters/docker/with")
	}
	dir, err := os.MkdirTemp(shared, "assay-")
	if err != nil {
		return runnable{}, err
	}
	r := runnable{bin: filepath.Join(dir, "assay"), image: registry + "/box:run"}
	context := filepath.Join(dir, "context")
	for _, words := range [][]string{
		{"go", "build", "-o", r.bin, "assay/cmd/assay"},
		{filepath.Join("..", "..", "testdata", "clusters", "docker", "context"), context},
		{"docker", "build", "--quiet", "--network", "host", "--tag", r.image, context},
		{"docker", "push", "--quiet", r.image},
	} {
		if _, err := said(words...); err != nil {
			return r, err
		}
	}
	digest, err := said("docker", "image", "inspect", "--format", "{{index .RepoDigests 0}}", r.image)
	if err != nil {
		return r, err
	}
	_, r.digest, _ = strings.Cut(digest, "@")
	r.id, err = said("docker", "image", "inspect", "--format", "{{.Id}}", r.image)
	return r, err
})

// said runs a command and returns what it printed.
func said(words ...string) (string, error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.New(strings.Join(words, " ") + ": " + err.Error() + ": " + string(out))
	}
	return strings.TrimSpace(string(out)), nil
}

// dockerSite is a site whose ranks run in containers.
type dockerSite struct {
	*site
	runnable
}

func newDockerSite(t *testing.T) *dockerSite {
	t.Helper()
	r, err := makeRunnable()
	if err != nil {
		t.Fatal(err)
	}
	s := &dockerSite{site: &site{t: t, dir: t.TempDir(), bin: r.bin, env: map[string]string{"NO_COLOR": "1"}}, runnable: r}
	for _, name := range []string{"PATH", "HOME", "USER", "DOCKER_HOST", "DOCKER_CONFIG"} {
		if v, set := os.LookupEnv(name); set {
			s.env[name] = v
		}
	}
	t.Cleanup(func() {
		if left := s.containers(); t.Failed() {
			for _, id := range left {
				t.Logf("left: %s", s.tool("docker", "inspect", "--format", "{{.Name}} {{json .State}}", id))
				_, _ = said("docker", "rm", "--force", id)
			}
		} else if len(left) > 0 {
			t.Errorf("containers were left behind: %q", left)
		}
	})
	return s
}

// containers are the ids of those of the runs below the site.
func (s *dockerSite) containers() []string {
	s.t.Helper()
	var ours []string
	for _, id := range strings.Fields(s.tool("docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", "label=assay.nonce")) {
		dir, err := said("docker", "inspect", "--format", `{{index .Config.Labels "assay.dir"}}`, id)
		if err == nil && strings.HasPrefix(dir, s.dir+"/") { // else it is gone, or another test's
			ours = append(ours, id)
		}
	}
	return ours
}

// deployment is what manifests of these tests have in common: more wins.
type deployment map[string]any

// box writes m.json, whose workloads run in the image as shell scripts of their own
// names. What deploy has under built_images is put into every image, what it has
// under context is the context, the rest is the deployment_config.
func (s *dockerSite) box(deploy deployment, workloads ...workload) {
	s.t.Helper()
	config := map[string]any{"target": "local", "container_runtime": "docker"}
	maps.Copy(config, deploy)
	image := map[string]any{"docker_image": s.image, "docker_sha": s.digest}
	if more, ok := config["built_images"].(map[string]any); ok {
		maps.Copy(image, more)
	}
	context, _ := config["context"].(map[string]any)
	if context == nil {
		context = map[string]any{}
	}
	delete(config, "built_images")
	delete(config, "context")
	images, models := map[string]any{}, map[string]any{}
	for _, w := range workloads {
		s.write(w.name+".sh", "#!/bin/sh\n"+w.script+"\n", 0o755)
		images[w.name] = image
		m := map[string]any{"name": w.name, "scripts": w.name + ".sh"}
		maps.Copy(m, w.model)
		models[w.name] = m
	}
	data, err := json.MarshalIndent(map[string]any{"built_images": images, "built_models": models, "context": context, "deployment_config": config}, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("m.json", string(data), 0o644)
}

func (s *dockerSite) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// rankFile is a file of a rank of the first attempt of a job of the run "r".
func (s *dockerSite) rankFile(job string, rank int, name string) string {
	return filepath.Join(rundir.RankDir(s.attempt(job, 1), rank), name)
}

// awaitFile waits for a file of a rank.
func (s *dockerSite) awaitFile(job string, rank int, name string) {
	s.t.Helper()
	path := s.rankFile(job, rank, name)
	s.eventually("the file "+path, func() bool { return exists(path) })
}

// waits is a script that says that it is there, and goes on when a file named go
// lies beside the manifest.
const waits = `touch "$ASSAY_RESULTS_DIR/there"
until [ -e @/go ]; do sleep 0.05; done
`

// untilGo is a script that waits, and then goes on.
func (s *dockerSite) untilGo(then string) string {
	return strings.ReplaceAll(waits, "@", s.dir) + then
}

func (s *dockerSite) goOn() { s.write("go", "", 0o644) }

// twoRanks makes a model one of two ranks.
func twoRanks() map[string]any {
	return map[string]any{"distributed": map[string]any{"launcher": "none", "nproc_per_node": 2}}
}

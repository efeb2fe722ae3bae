//go:build k8s

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/deploy/k8s/k8stest"
)

// k8sSite is a user of the cluster in a directory of their own, with a namespace of
// their own. Nothing but the API is shared with the pods.
type k8sSite struct {
	*site
	*k8stest.Cluster
	namespace string
	context   map[string]any // of the manifest
	extra     map[string]any // of deployment_config
}

func newK8sSite(t *testing.T) *k8sSite {
	t.Helper()
	return k8sSiteIn(t, k8stest.Open(t).Namespace())
}

// k8sSiteIn is newK8sSite for a namespace that is there.
func k8sSiteIn(t *testing.T, namespace string) *k8sSite {
	t.Helper()
	c := k8stest.Open(t)
	env := map[string]string{"NO_COLOR": "1"}
	for _, kv := range c.Env() {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "USER", "KUBECONFIG":
			env[name] = value
		}
	}
	return &k8sSite{
		site: &site{t: t, dir: t.TempDir(), bin: builtAssay(t), env: env}, Cluster: c, namespace: namespace,
		context: map[string]any{}, extra: map[string]any{},
	}
}

// manifest writes m.json, a manifest of entries that run a bash script in the test
// box. k8s wins over the block that it begins with; a nil value takes a key out.
// distributed says how many ranks there are.
func (s *k8sSite) manifest(k8s map[string]any, ranks int, workloads ...workload) {
	s.t.Helper()
	block := map[string]any{
		"namespace": s.namespace, "runner_image": k8stest.ImageRunner, "image_pull_policy": "IfNotPresent",
		"cpu": "20m", "memory": "32Mi", "marker_grace": 15,
	}
	maps.Copy(block, k8s)
	maps.DeleteFunc(block, func(_ string, v any) bool { return v == nil })
	images, models := map[string]any{}, map[string]any{}
	for _, e := range workloads {
		image := k8stest.ImageTestbox
		if named, ok := e.model["image"].(string); ok {
			image = named
		}
		images[e.name] = map[string]any{"docker_image": image}
		m := map[string]any{"name": e.name, "command": []string{"bash", "-c", e.script}, "distributed": map[string]any{"launcher": "none", "nnodes": ranks, "nproc_per_node": 1}}
		maps.Copy(m, e.model)
		delete(m, "image")
		models[e.name] = m
	}
	deployment := map[string]any{"target": "k8s", "k8s": block}
	maps.Copy(deployment, s.extra)
	data, err := json.MarshalIndent(map[string]any{
		"built_images": images, "built_models": models, "context": s.context, "deployment_config": deployment,
	}, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "m.json"), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// kubectl runs kubectl in the namespace of the site.
func (s *k8sSite) kubectl(args ...string) string {
	s.t.Helper()
	return s.Kubectl(append([]string{"--namespace", s.namespace}, args...)...)
}

// podsOf are the names of the pods of a job of the run "r", by their states.
func (s *k8sSite) pods(selector string) []string {
	s.t.Helper()
	return strings.Fields(s.kubectl("get", "pods", "--selector", selector, "--output", "jsonpath={.items[*].metadata.name}"))
}

// builtAssay is the static binary of this tree: the runner image of the cluster has
// the same one.
func builtAssay(t *testing.T) string {
	t.Helper()
	bin, err := filepath.Abs("../../bin/assay")
	if err == nil {
		_, err = os.Stat(bin)
	}
	if err != nil {
		t.Fatalf("build it first, with make build: %v", err)
	}
	return bin
}

//go:build k8s

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/pkg/verdict"
)

// What a job is made of goes with it, and Kubernetes removes it by itself in the end.
func TestK8sObjectsBelongToTheJob(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.manifest(map[string]any{"cleanup": "never", "ttl_seconds_after_finished": 600}, 1, workload{name: "job", script: "echo performance: 1 ok"})
	s.runJSON().want(verdict.Pass)
	var all struct {
		Items []struct {
			Kind     string
			Metadata struct {
				Name            string
				OwnerReferences []struct{ Kind, Name string }
			}
			Spec struct{ TTLSecondsAfterFinished *int }
		}
	}
	out := s.kubectl("get", "jobs,pods,configmaps,secrets,services", "--output", "json", "--selector", "app.kubernetes.io/managed-by=assay")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	for _, o := range all.Items {
		if o.Kind == "Job" {
			if ttl := o.Spec.TTLSecondsAfterFinished; ttl == nil || *ttl != 600 {
				t.Errorf("the TTL is %v", ttl)
			}
			continue
		}
		if owners := o.Metadata.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Job" {
			t.Errorf("%s %s belongs to %v", o.Kind, o.Metadata.Name, owners)
		}
	}
	s.left("configmap/.*", "job.batch/.*", "pod/.*", "service/.*")
	s.kubectl("delete", "jobs", "--all")
	s.left()
}

// More is written than an archive holds, and more than the kubelet keeps: the log
// rotates while it is read.
func TestK8sMoreOutputThanIsKept(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	const lines = 50 << 10 // of 1 KiB
	script := fmt.Sprintf(`echo performance: 7 tps
		head -c 2000000 /dev/urandom >"$ASSAY_RESULTS_DIR/noise"; md5sum <"$ASSAY_RESULTS_DIR/noise" >"$ASSAY_RESULTS_DIR/sum"
		yes "$(printf '%%01022d' 0)" | head -n %d; echo end`, lines)
	s.manifest(nil, 1, workload{name: "job", script: script})
	r := s.runJSON()
	s.check(r, 0, "PASS benchmark 4", nil, []string{"RANK_NOTE rank 0 .*stdout .*"}, []string{"0 node1 ended 0"})
	dir := filepath.Join(s.attempt("job", 1), "ranks", "0")
	sum := strings.TrimSpace(s.tool("sh", "-c", "md5sum <"+filepath.Join(dir, "results", "noise")))
	want, err := os.ReadFile(filepath.Join(dir, "results", "sum"))
	if err != nil || sum != strings.TrimSpace(string(want)) {
		t.Errorf("results: %v, %s, want %s", err, sum, want)
	}
	stdout, err := os.ReadFile(filepath.Join(dir, "stdout"))
	if err != nil || !strings.HasPrefix(string(stdout), "performance: 7 tps\n") || !strings.HasSuffix(string(stdout), "\nend\n") || !strings.Contains(string(stdout), "bytes cut here") {
		t.Errorf("stdout: %v, %d bytes, %.60q … %.60q", err, len(stdout), stdout, stdout[max(len(stdout)-60, 0):])
	}
}

// What a ConfigMap cannot carry is refused before anything is made.
func TestK8sFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	for name, size := range map[string]int{"run.sh": 10, "weights.bin": 1 << 20} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(strings.Repeat("#", size)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.manifest(nil, 1, workload{name: "job", model: map[string]any{"scripts": "run.sh", "command": nil}})
	r := s.runJSON()
	if r.code != 4 {
		t.Fatalf("exit code %d, want 4\n%s\n%s", r.code, r.stdout, r.stderr)
	}
	s.same("what is said", []string{r.stderr}, []string{`.*more than the 900 KiB that pods can be given through a ConfigMap \(weights\.bin alone has 1024 KiB\): put them into the image, and set MODEL_DIR .*`})
	s.left()
}

func TestK8sResultsOnAClaim(t *testing.T) {
	t.Parallel()
	s := newK8sSite(t)
	s.Apply(s.namespace, s.filled(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: "{namespace}"}
spec: {capacity: {storage: 1Mi}, accessModes: [ReadWriteMany], storageClassName: "", hostPath: {path: "{dir}/volume", type: DirectoryOrCreate}, claimRef: {namespace: "{namespace}", name: claim}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteMany], storageClassName: "", resources: {requests: {storage: 1Mi}}}
`))
	t.Cleanup(func() { s.Kubectl("delete", "persistentvolume", s.namespace, "--wait=false") })
	s.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "persistentvolumeclaim/claim", "--timeout=60s")
	s.manifest(map[string]any{"results_pvc": "claim"}, 2, workload{name: "job", script: `echo "of $RANK" >"$ASSAY_RESULTS_DIR/file"; [ $RANK != 0 ] || echo performance: 1 ok`})
	s.check(s.runJSON(), 0, "PASS benchmark 4", nil, nil, []string{"0 node1 ended 0", "1 node1 ended 0"})
	for rank := range 2 {
		for _, dir := range []string{filepath.Join(s.dir, "volume", "r", "job", "1"), s.attempt("job", 1)} {
			data, err := os.ReadFile(filepath.Join(dir, "ranks", fmt.Sprint(rank), "results", "file"))
			if want := fmt.Sprintf("of %d\n", rank); err != nil || string(data) != want {
				t.Errorf("%s: %v, %q, want %q", dir, err, data, want)
			}
		}
	}
	s.left()
}

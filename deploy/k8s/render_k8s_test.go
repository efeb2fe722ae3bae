//go:build k8s

package k8s

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"assay/deploy/k8s/k8stest"
	"assay/pkg/plan"
	"assay/pkg/pod"
)

// rendering renders an attempt into a file that kubectl takes.
func rendering(t *testing.T, a plan.Attempt) (path string) {
	t.Helper()
	files, err := New(Options{Host: "login-1"}).Render(a)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), jobYAML)
	if err := os.WriteFile(path, yamlOf(t, files), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestK8sRenderIsAccepted hands every rendered case to the API server, which looks at
// it as if it were to be created, and at every field of it.
func TestK8sRenderIsAccepted(t *testing.T) {
	cluster := k8stest.Open(t)
	cluster.JobSet()
	namespace := cluster.Namespace()
	for path, archive := range archives(t, "testdata/render/*.txtar", 12) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a := attemptOf(t, archive)
			a.Job.K8s.Namespace = ""
			out := cluster.In(t).Kubectl("--namespace", namespace, "apply", "--dry-run=server", "--validate=strict", "--filename", rendering(t, a))
			for _, kind := range []string{"service/", "configmap/"} {
				if !strings.Contains(out, kind) {
					t.Errorf("no %s in %s", kind, out)
				}
			}
		})
	}
}

// TestK8sRenderOfHostileNames asks the API server about names and ids of every kind.
func TestK8sRenderOfHostileNames(t *testing.T) {
	cluster := k8stest.Open(t)
	namespace := cluster.Namespace()
	archive, err := txtar.ParseFile("testdata/render/minimal.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{
		"long":       strings.Repeat("a-long-name.", 6),
		"dashes":     "_-.-_",
		"upper":      "UPPER_lower.1",
		"dot at end": strings.Repeat("x", 62) + "." + "y",
	} {
		t.Run(name, func(t *testing.T) {
			a := attemptOf(t, archive)
			a.Job.ID, a.Number = id, 12
			a.Job.NNodes, a.Job.WorldSize = 65536, 65536
			a.Dir = "/srv/ra uns\t\"'$(x)\u00e9/1"
			cluster.In(t).Kubectl("--namespace", namespace, "apply", "--dry-run=server", "--validate=strict", "--filename", rendering(t, a))
		})
	}
}

// TestK8sRenderArrives runs a script in an image as it is. What the pod sees of
// arguments, variables and files is what the manifest says.
func TestK8sRenderArrives(t *testing.T) {
	cluster := k8stest.Open(t)
	namespace := cluster.Namespace()
	const script = `printf '<%s>' "$@"; echo
printf '<%s>' "$HOSTILE" "$RANK" "$MAD_MULTI_NODE_RUNNER"; echo
cd "$(dirname "$0")" && find . | sort && stat -c '%a %n' tool run.sh && cat 'üml äut.txt' && od -An -tx1 data.bin && ./tool
`
	args := []string{"$(HOME) $$ $$(X) $", "a b", "-n", "", "'\"`x`\\", "€"}
	hostile := "$(RANK) $$(RANK) ${X} \"'\\ \nline\n\t€ -n"
	archive := &txtar.Archive{Comment: []byte("exec s/tool\nbinary s/data.bin\n"), Files: []txtar.File{
		{Name: "build_manifest.json", Data: []byte(`{"built_images": {"bench": {"docker_image": "` + k8stest.ImageTestbox + `"}}, "built_models": {"bench": {"name": "bench", "scripts": "s"}},
			"context": {}, "deployment_config": {"target": "k8s", "k8s": {"wrapper": "none", "image_pull_policy": "Never"}, "distributed": {"launcher": "torchrun"}}}`)},
		{Name: "s/run.sh", Data: []byte(script)},
		{Name: "s/tool", Data: []byte("#!/bin/sh\necho tool runs\n")},
		{Name: "s/data.bin"},
		{Name: "s/üml äut.txt", Data: []byte("text\n")},
		{Name: "s/lib/deep/x.py", Data: []byte("x\n")},
	}}
	a := attemptOf(t, archive)
	a.Job.Program.Args, a.Job.Env = args, map[string]string{"HOSTILE": hostile}
	cluster.Kubectl("--namespace", namespace, "apply", "--filename", rendering(t, a))
	cluster.Await("the job is over", func() bool {
		out := cluster.Kubectl("--namespace", namespace, "get", "job", objectName(a), "--output", "jsonpath={.status.conditions[*].type}")
		return strings.Contains(out, "Complete") || strings.Contains(out, "Failed")
	})
	got := cluster.Kubectl("--namespace", namespace, "logs", "job/"+objectName(a), "--container", pod.Container)
	want := "<" + strings.Join(args, "><") + ">\n" +
		"<" + hostile + "><0><torchrun --standalone --nproc_per_node=1>\n" +
		".\n./data.bin\n./lib\n./lib/deep\n./lib/deep/x.py\n./run.sh\n./tool\n./üml äut.txt\n755 tool\n755 run.sh\ntext\n ff 00 01 0a\ntool runs"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestK8sRenderIsWhatIsKept reads back what the API server has of a job: what was
// rendered is all there, unchanged.
func TestK8sRenderIsWhatIsKept(t *testing.T) {
	cluster := k8stest.Open(t)
	namespace := cluster.Namespace()
	archive, err := txtar.ParseFile("testdata/render/everything.txtar")
	if err != nil {
		t.Fatal(err)
	}
	a := attemptOf(t, archive)
	a.Job.K8s.Namespace, a.Job.K8s.Queue = "", "nobody" // it stays suspended
	file := rendering(t, a)
	cluster.Kubectl("--namespace", namespace, "create", "--validate=strict", "--filename", file)
	// What is applied again is compared with what is there.
	out, err := cluster.Try("--namespace", namespace, "diff", "--filename", file)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	labels := cluster.Kubectl("--namespace", namespace, "get", "job", objectName(a), "--output", "jsonpath={.spec.template.metadata.labels}")
	for _, name := range []string{labelNonce, labelRun, labelJob, labelAttempt} {
		if !strings.Contains(labels, name) {
			t.Errorf("the pods have no label %s: %s", name, labels)
		}
	}
}

// TestK8sRenderFitsRestrictedNamespaces shows the pod of a job to a namespace that
// enforces the restricted profile, which takes it only where that was asked for.
func TestK8sRenderFitsRestrictedNamespaces(t *testing.T) {
	cluster := k8stest.Open(t)
	namespace := cluster.Namespace()
	cluster.Kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	archive, err := txtar.ParseFile("testdata/render/env_file.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, restricted := range []bool{false, true} {
		a := attemptOf(t, archive)
		a.Job.K8s.Restricted = restricted
		objects, err := New(Options{}).render(a)
		if err != nil {
			t.Fatal(err)
		}
		template := objects.Job.Spec.Template
		one := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		one.Name = "one"
		text, err := document(one)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "pod.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := cluster.Try("--namespace", namespace, "create", "--dry-run=server", "--filename", file)
		if refused := err != nil && strings.Contains(err.Error(), "violates PodSecurity"); refused == restricted || restricted && err != nil {
			t.Errorf("restricted %v: %s, %v", restricted, out, err)
		}
	}
}

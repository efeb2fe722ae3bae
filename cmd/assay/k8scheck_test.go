//go:build k8s

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/deploy/k8s/k8stest"
	"assay/pkg/exitcode"
)

// TestK8sCheck says what is wrong with a cluster or a manifest before anything is
// submitted. The code tells whose fault it is.
func TestK8sCheck(t *testing.T) {
	t.Parallel()
	type block = map[string]any
	for name, c := range map[string]struct {
		prepare func(*k8sSite)
		k8s     block
		code    exitcode.Code
		want    string
	}{
		"nothing": {code: exitcode.Pass, want: "this user may do all"},
		"no kubeconfig": {
			prepare: func(s *k8sSite) { s.env["KUBECONFIG"] = filepath.Join(s.dir, "nowhere") },
			code:    exitcode.Error, want: "name one in the k8s block or in KUBECONFIG",
		},
		"wrong context":     {k8s: block{"context": "elsewhere"}, code: exitcode.Error, want: `context "elsewhere" does not exist`},
		"missing namespace": {k8s: block{"namespace": "nowhere"}, code: exitcode.Invalid, want: "there is no namespace nowhere"},
		"no permission": {
			prepare: func(s *k8sSite) {
				s.env["KUBECONFIG"] = s.ServiceAccountConfig(s.namespace, "default", time.Hour)
			},
			code: exitcode.Error, want: "this user may not create jobs.batch in namespace",
		},
		"no runner image": {k8s: block{"runner_image": nil}, code: exitcode.Invalid, want: "no image is named that holds the assay"},
		"unbound claim": {
			prepare: func(s *k8sSite) {
				s.Apply(s.namespace, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: slow}\n"+
					"spec: {accessModes: [ReadWriteOnce], storageClassName: '', resources: {requests: {storage: 1Mi}}}\n")
			},
			k8s: block{"results_pvc": "slow"}, code: exitcode.Error, want: "no volume is bound to claim slow",
		},
		"too many GPUs": {k8s: block{"gpu_count": 8, "gpu_resource_name": "nvidia.com/gpu"}, code: exitcode.Pass, want: "nvidia.com/gpu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newK8sSite(t)
			if c.prepare != nil {
				c.prepare(s)
			}
			s.manifest(c.k8s, 2, workload{name: "t", script: figure, model: map[string]any{"image": k8stest.ImageTestbox}})
			r := s.assay("check", "-m", "m.json").exits(c.code)
			if !strings.Contains(r.stdout+r.stderr, c.want) {
				t.Errorf("it does not say %q:\n%s%s", c.want, r.stdout, r.stderr)
			}
		})
	}
}

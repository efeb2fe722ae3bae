package k8stest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFromEnv(t *testing.T) {
	whole := []string{"KUBECONFIG=/c/admin.kubeconfig", "ASSAY_TEST_K8S=/c"}
	c, err := fromEnv(whole)
	if err != nil {
		t.Fatal(err)
	}
	if c.Dir != "/c" || c.Kubeconfig != "/c/admin.kubeconfig" {
		t.Errorf("read %+v", c)
	}
	for i := range whole {
		part := append(append([]string{}, whole[:i]...), whole[i+1:]...)
		if _, err := fromEnv(part); err == nil || !strings.Contains(err.Error(), "make test-k8s") {
			t.Errorf("of %q alone: %v, want an error that says what to run", part, err)
		}
	}
}

func TestWithoutKubernetes(t *testing.T) {
	got := withoutKubernetes([]string{"PATH=/bin", "KUBECONFIG=/x", "KUBERNETES_SERVICE_HOST=10.0.0.1", "ASSAY_TEST_K8S=/c", "HOME=/h"})
	if d := cmp.Diff([]string{"PATH=/bin", "HOME=/h"}, got); d != "" {
		t.Error(d)
	}
}

func TestNewName(t *testing.T) {
	for test, want := range map[string]string{
		"TestK8sRanks":                   "t-ranks-",
		"TestK8sVerdicts/one_of_4 exits": "t-verdicts-one-of-4-exits-",
		"TestK8s/-":                      "t-",
		"TestK8s" + strings.Repeat("0123456789", 9): "t-" + strings.Repeat("0123456789", 4) + "-",
	} {
		name := newName(test)
		if rest, ok := strings.CutPrefix(name, want); !ok || len(rest) != 6 || strings.Contains(rest, "-") {
			t.Errorf("for %s: %q, want %s and six digits", test, name, want)
		}
		if name == newName(test) {
			t.Errorf("%q twice", name)
		}
	}
}
